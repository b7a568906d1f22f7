import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { readStreamed } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { accessOf } from './access.ts'
import { Decoder } from './decode.ts'
import type { VendorConfig } from './driver.ts'
import { embedder } from './embed.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import type { Vendor } from './vendors.ts'
import { ModelList } from './wire.ts'

interface Sent {
  readonly body?: string
  readonly model?: string
  readonly request?: CompletionRequest
}

export async function createClient(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<ProviderClient> {
  const access = await accessOf(vendor, link)

  async function call(
    path: string,
    signal: AbortSignal,
    { body, model, request }: Sent = {},
  ): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const response = await link.fetch(await access.url(path, model, signal), {
      signal,
      headers: {
        ...vendor.headers,
        accept: request ? 'text/event-stream' : 'application/json',
        ...(await access.headers(signal, request)),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    if (response.status === 401) access.forget?.()
    throw await failureOf(link.name, response, Date.now())
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request, vendor), signal, () =>
      call('/chat/completions', signal, { body: encode(request, vendor), model: request.model, request }),
    )

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const response = await call('/models', signal)
    const data = await response.json()
    try {
      return [...new Set(parse(ModelList, Array.isArray(data) ? { data } : data).data.map(({ id }) => id))]
    } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, {
        reason: 'malformed',
        retry: 'never',
        cause,
      })
    }
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    if (!vendor.noModels) {
      const found = await models(signal)
      return { model: found.includes(vendor.defaultModel) ? vendor.defaultModel : (found[0] ?? vendor.defaultModel) }
    }
    // The shortest answer proves the address and the key as well.
    for await (const event of complete(
      {
        model: vendor.defaultModel,
        system: '',
        turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
        tools: [],
        maxTokens: 1,
      },
      signal,
    ))
      if (event.type === 'end') break
    return { model: vendor.defaultModel }
  }

  return {
    complete,
    probe,
    ...(!vendor.noModels && { models }),
    ...(!vendor.noEmbeddings && {
      embed: embedder(link.name, (path, signal, body, model) => call(path, signal, { body, model })),
    }),
  }
}
