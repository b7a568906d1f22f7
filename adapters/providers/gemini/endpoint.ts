import { baseUrlOf } from 'svc/providers'
import type { ApiHeaders, ProviderLink } from 'svc/providers'

/** The addresses of generateContent, and the headers that authenticate a request. */
export interface Endpoint {
  /** The address of a method such as `streamGenerateContent`. `model` is the id as it was requested. */
  methodUrl(model: string, method: string, signal: AbortSignal): Promise<string>
  modelsUrl(signal: AbortSignal): Promise<string>
  headers(signal: AbortSignal): Promise<ApiHeaders>
  /** Drops cached credentials: the vendor does not accept them any more. */
  clear(): void
  /** How texts are embedded: many in one request, or with `predict` of Vertex AI. */
  readonly embedding: 'batch' | 'predict'
  /** Whether a list of models proves the key too. */
  readonly modelsProveKey: boolean
}

/** The id as path segments: tuned models have a folder of their own. */
export const modelPath = (model: string): string => model.split('/').map(encodeURIComponent).join('/')

/** The base URL with an API version, unless it ends with one. */
export const versionedUrl = (base: string, version: string): string =>
  /\/v\d+(?:alpha|beta)?\d*$/.test(base) ? base : `${base}/${version}`

/** The Gemini API. The key goes into a header: in the address it would be in every log on its way. */
export function keyEndpoint(link: ProviderLink<unknown>): Endpoint {
  const root = versionedUrl(baseUrlOf(link), 'v1beta')
  return {
    embedding: 'batch',
    modelsProveKey: true,
    async methodUrl(model, method) {
      const path = /^(?:models|tunedModels)\//.test(model) ? modelPath(model) : `models/${modelPath(model)}`
      return `${root}/${path}:${method}`
    },
    modelsUrl: async () => `${root}/models`,
    async headers() {
      const key = await link.apiKey()
      return key === undefined ? {} : { 'x-goog-api-key': key }
    },
    clear() {},
  }
}
