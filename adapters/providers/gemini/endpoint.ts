import type { ProviderLink } from 'svc/providers'

/** Where the methods of a model are, and what opens them. */
export interface Endpoint {
  /**
   * The address of a method, such as `streamGenerateContent`. `model` is the id as it was asked for. Rejects when it
   * cannot be known.
   */
  method(model: string, method: string, signal: AbortSignal): Promise<string>
  /** Where the models are listed. */
  models(signal: AbortSignal): Promise<string>
  /** What proves who calls. Asked for before each request. */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>
  /** What was used to prove it is not accepted any more. */
  forget(): void
  /** How texts are embedded: many in one request of one method, or `predict` of the platform. */
  readonly embedding: 'batch' | 'predict'
  /** Whether a list of models proves the key too. */
  readonly lists: boolean
}

/** The id as one or more segments of a path: tuned models have a folder of their own. */
export const pathOf = (model: string): string => model.split('/').map(encodeURIComponent).join('/')

/** The Gemini API, with the key in a header: in the address it would be in every log on its way. */
export function keyEndpoint(link: ProviderLink<unknown>): Endpoint {
  const base = link.baseUrl.replace(/\/+$/, '')
  const root = /\/v\d+(?:alpha|beta)?\d*$/.test(base) ? base : `${base}/v1beta`
  return {
    embedding: 'batch',
    lists: true,
    method: async (model, method) =>
      `${root}/${/^(?:models|tunedModels)\//.test(model) ? pathOf(model) : `models/${pathOf(model)}`}:${method}`,
    models: async () => `${root}/models`,
    async headers() {
      const key = await link.apiKey()
      return key === undefined ? {} : { 'x-goog-api-key': key }
    },
    forget() {},
  }
}
