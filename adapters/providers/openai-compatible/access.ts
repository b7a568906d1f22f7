import type { CompletionRequest, ProviderLink } from 'svc/providers'
import type { VendorConfig } from './driver.ts'
import type { Vendor } from './vendors.ts'

export type Headers = Readonly<Record<string, string>>
/** Where a vendor's methods are and what opens them. */
export interface Access {
  /** The address of a path such as `/chat/completions`. */
  url(path: string, model: string | undefined, signal: AbortSignal): Promise<string>
  /** What proves who calls, asked for before each request. */
  headers(signal: AbortSignal, request: CompletionRequest | undefined): Promise<Headers>
  /** What was used to prove it is not accepted any more. */
  forget?(): void
}

export async function accessOf(vendor: Vendor, link: ProviderLink<VendorConfig>): Promise<Access> {
  if (vendor.access === 'azure') return azure(link)
  if (vendor.access === 'copilot') return (await import('./copilot.ts')).copilot(link)
  const base = link.baseUrl.replace(/\/+$/, '')
  return {
    url: async (path) => `${base}${path}`,
    async headers() {
      const key = await link.apiKey()
      return key === undefined ? {} : { authorization: `Bearer ${key}` }
    },
  }
}

/**
 * A resource of Azure OpenAI. A model is a deployment there. Without a version the address is that of the API that
 * follows OpenAI's; with
 * one each deployment has an address of its own. Source:
 * https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
 */
function azure(link: ProviderLink<VendorConfig>): Access {
  const base = link.baseUrl.replace(/\/+$/, '')
  const { api_version: version } = link.config
  const root = base.replace(/\/openai(?:\/v1)?$/, '')
  return {
    async url(path, model) {
      if (version === undefined) return `${root}/openai/v1${path}`
      return `${root}/openai${model === undefined ? '' : `/deployments/${encodeURIComponent(model)}`}${path}?api-version=${version}`
    },
    async headers() {
      const key = await link.apiKey()
      return key === undefined ? {} : { 'api-key': key }
    },
  }
}
