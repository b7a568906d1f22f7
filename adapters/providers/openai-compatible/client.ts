import { ApiClient, baseUrlOf, bearerToken, chooseModel, probeCompletion, readStreamed } from 'svc/providers'
import type { ApiHeaders, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import type { VendorConfig } from './driver.ts'
import { createEmbedder } from './embed.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import { createMedia } from './media.ts'
import type { Vendor } from './vendors.ts'
import { ModelList } from './wire.ts'

/** The addresses of a vendor's methods and the headers that authenticate a request. */
export interface Access {
  /** The address of a path such as `/chat/completions`. */
  url(path: string, model: string | undefined, signal: AbortSignal): Promise<string>
  headers(signal: AbortSignal, completion: CompletionRequest | undefined): Promise<ApiHeaders>
  /** Drops cached tokens: the vendor does not accept them any more. */
  clear?(): void
}

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
    ...createMedia({ name: link.name, api, access, headers, vendor }),
  }
}

async function accessOf(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<Access> {
  if (vendor.access === 'azure') return azure(link)
  if (vendor.access === 'copilot') return (await import('./copilot.ts')).copilot(link)
  const base = baseUrlOf(link)
  return { url: async (path) => `${base}${path}`, headers: () => bearerToken(link) }
}

/**
 * A resource of Azure OpenAI, where a model is a deployment. Without an API version requests go to the API that
 * follows OpenAI's; with one, each deployment has an address of its own.
 * Source: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
 */
function azure(link: ProviderLink<VendorConfig>): Access {
  const { api_version: version } = link.config
  const root = baseUrlOf(link).replace(/\/openai(?:\/v1)?$/, '')
  return {
    async url(path, model) {
      if (version === undefined) return `${root}/openai/v1${path}`
      const deployment = model === undefined ? '' : `/deployments/${encodeURIComponent(model)}`
      return `${root}/openai${deployment}${path}?api-version=${version}`
    },
    async headers() {
      const key = await link.apiKey()
      return key === undefined ? {} : { 'api-key': key }
    },
  }
}
