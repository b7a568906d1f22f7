import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { readStreamed } from 'svc/providers'
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
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request), signal, () => call('/responses', signal, encode(request)))

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const data = await (await call('/models', signal)).json()
    try {
      return [...new Set(parse(ModelList, data).data.map(({ id }) => id))]
    } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, {
        reason: 'malformed',
        retry: 'never',
        cause,
      })
    }
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    const found = await models(signal)
    return { model: found.includes(defaultModel) ? defaultModel : (found[0] ?? defaultModel) }
  }

  return { complete, models, probe }
}
