import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import { ModelList } from './wire.ts'

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = link.baseUrl.replace(/\/+$/, '')

  async function call(path: string, signal: AbortSignal, body?: string): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const key = await link.apiKey()
    const response = await link.fetch(`${base}${path}`, {
      signal,
      headers: {
        accept: body === undefined ? 'application/json' : 'text/event-stream',
        ...(key !== undefined && { authorization: `Bearer ${key}` }), ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  // One generator and no `yield*`: every event passes through each of them, and a stream has tens of thousands.
  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    const decoder = new Decoder(link.name, request)
    let ended = false
    try {
      const response = await call('/responses', signal, encode(request))
      if (/html/i.test(response.header('content-type') ?? '')) {
        for await (const _ of response.chunks()) break
        throw new UpstreamFailure(link.name, `${link.name} answered with a web page: the base URL is wrong or a proxy is in the way`, { reason: 'malformed', retry: 'never' })
      }
      for await (const bytes of response.chunks()) {
        // After the last event the rest is read and dropped, so that the connection can be used again.
        if (ended) continue
        for (const event of decoder.feed(bytes)) yield event
        if (!decoder.done) continue
        const rest = decoder.finish()
        ended = true
        for (const event of rest) yield event
      }
      if (!ended) for (const event of decoder.finish()) yield event
    } catch (error) {
      // The answer is whole: how its connection ends does not matter.
      if (ended) return
      signal.throwIfAborted()
      throw error
    }
  }

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const data = await (await call('/models', signal)).json()
    try { return [...new Set(parse(ModelList, data).data.map(({ id }) => id))] } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, { reason: 'malformed', retry: 'never', cause })
    }
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    const found = await models(signal)
    return { model: found.includes(defaultModel) ? defaultModel : found[0] ?? defaultModel }
  }

  return { complete, models, probe }
}
