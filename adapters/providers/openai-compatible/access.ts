import { baseUrlOf, bearerToken } from 'svc/providers'
import type { ApiHeaders, CompletionRequest, ProviderLink } from 'svc/providers'
import type { VendorConfig } from './driver.ts'
import type { Vendor } from './vendors.ts'

/** The addresses of a vendor's methods and the headers that authenticate a request. */
export interface Access {
  /** The address of a path such as `/chat/completions`. */
  url(path: string, model: string | undefined, signal: AbortSignal): Promise<string>
  headers(signal: AbortSignal, completion: CompletionRequest | undefined): Promise<ApiHeaders>
  /** Drops cached tokens: the vendor does not accept them any more. */
  clear?(): void
}

export async function accessOf(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<Access> {
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
