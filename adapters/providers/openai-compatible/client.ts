import { ApiClient, chooseModel, probeCompletion, readStreamed } from 'svc/providers'
import type { ProviderClient, ProviderLink } from 'svc/providers'
import { accessOf } from './access.ts'
import { Decoder } from './decode.ts'
import type { VendorConfig } from './driver.ts'
import { createEmbedder } from './embed.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import type { Vendor } from './vendors.ts'
import { ModelList } from './wire.ts'

export async function createClient(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<ProviderClient> {
  const access = await accessOf(vendor, link)
  const headers = vendor.headers ?? {}
  const api = new ApiClient(link, {
    classifyFailure,
    authenticate: (_url, { signal, completion }) => access.headers(signal, completion),
    onUnauthorized: () => access.clear?.(),
  })

  const complete: ProviderClient['complete'] = (request, signal) =>
    readStreamed(link.name, new Decoder(link.name, request, vendor), signal, async () => {
      signal.throwIfAborted()
      const url = await access.url('/chat/completions', request.model, signal)
      const body = encode(request, vendor)
      return api.send(url, { signal, headers, accept: 'text/event-stream', body, completion: request })
    })

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted()
    const url = await access.url('/models', undefined, signal)
    const list = await api.json(url, { signal, headers }, { schema: ModelList, what: 'a list of models' })
    return [...new Set(list.map(({ id }) => id))]
  }

  return {
    complete,
    async probe(signal) {
      if (vendor.noModels) return probeCompletion(complete, vendor.defaultModel, signal)
      return { model: chooseModel(await models(signal), vendor.defaultModel) }
    },
    ...(!vendor.noModels && { models }),
    ...(!vendor.noEmbeddings && { embed: createEmbedder(api, access, headers) }),
  }
}
