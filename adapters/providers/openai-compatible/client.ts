import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { accessOf } from './access.ts'
import { Decoder } from './decode.ts'
import type { VendorConfig } from './driver.ts'
import { embedder } from './embed.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import type { Vendor } from './vendors.ts'
import { ModelList } from './wire.ts'

interface Sent { readonly body?: string; readonly model?: string; readonly request?: CompletionRequest }

export async function createClient(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<ProviderClient> {
  const access = await accessOf(vendor, link)

  async function call(path: string, signal: AbortSignal, { body, model, request }: Sent = {}): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const response = await link.fetch(await access.url(path, model, signal), {
      signal,
      headers: { ...vendor.headers, accept: request ? 'text/event-stream' : 'application/json', ...await access.headers(signal, request), ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    if (response.status === 401) access.forget?.()
    throw await failureOf(link.name, response, Date.now())
  }

  // One generator and no `yield*`: every event passes through each of them, and a stream has tens of thousands.
  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    const decoder = new Decoder(link.name, request, vendor)
    let ended = false
    try {
      const response = await call('/chat/completions', signal, { body: encode(request, vendor), model: request.model, request })
      const type = response.header('content-type') ?? ''
      if (/html/i.test(type)) {
        for await (const _ of response.chunks()) break
        throw new UpstreamFailure(link.name, `${link.name} answered with a web page: the base URL is wrong or a proxy is in the way`, { reason: 'malformed', retry: 'never' })
      }
      // A few answer a request for a stream with the whole at once.
      if (/application\/json/i.test(type)) {
        for (const event of decoder.feed(new TextEncoder().encode(`data: ${(await response.text()).replace(/\s*[\r\n]\s*/g, ' ')}\n\n`))) yield event
      } else {
        for await (const bytes of response.chunks()) {
          // After the end marker the rest is read and dropped, so that the connection can be used again.
          if (ended) continue
          for (const event of decoder.feed(bytes)) yield event
          if (!decoder.done) continue
          ended = true
          for (const event of decoder.finish()) yield event
        }
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
    const response = await call('/models', signal)
    const data = await response.json()
    try { return [...new Set(parse(ModelList, Array.isArray(data) ? { data } : data).data.map(({ id }) => id))] } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, { reason: 'malformed', retry: 'never', cause })
    }
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    if (!vendor.noModels) {
      const found = await models(signal)
      return { model: found.includes(vendor.defaultModel) ? vendor.defaultModel : found[0] ?? vendor.defaultModel }
    }
    // The shortest answer proves the address and the key as well.
    for await (const event of complete({ model: vendor.defaultModel, system: '', turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }], tools: [], maxTokens: 1 }, signal)) if (event.type === 'end') break
    return { model: vendor.defaultModel }
  }

  return {
    complete, probe, ...(!vendor.noModels && { models }),
    ...(!vendor.noEmbeddings && { embed: embedder(link.name, (path, signal, body, model) => call(path, signal, { body, model })) }),
  }
}
