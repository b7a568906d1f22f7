import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, baseUrlOf, chooseModel, collectPages, probeCompletion, readStreamed } from 'svc/providers'
import type { ApiHeaders, ProviderClient, ProviderLink } from 'svc/providers'
import { takesTemperature } from './claude.ts'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import type { Config } from './index.ts'
import { ModelList } from './wire.ts'

// Decision: the newer version has no temperature, so models that take one are called with the older version, which
// other vendors that speak this format know as well. Nothing else that is sent or read here differs between them.
// Source: https://platform.claude.com/docs/en/api/migration-2026-10-21
const OLDER_VERSION = '2023-06-01'
const NEWER_VERSION = '2026-10-21'

export function createClient(link: ProviderLink<Config>, defaultModel: string): ProviderClient {
  const base = `${baseUrlOf(link).replace(/\/v1$/, '')}/v1`
  const { config } = link
  const api = new ApiClient(link, {
    classifyFailure,
    async authenticate() {
      const key = await link.apiKey()
      return key === undefined ? {} : { 'x-api-key': key }
    },
  })
  const headersOf = (version: string): ApiHeaders => ({
    'anthropic-version': version,
    ...(config.betas.length > 0 && { 'anthropic-beta': config.betas.join(',') }),
  })

  const models = (signal: AbortSignal): Promise<readonly string[]> =>
    collectPages(async (cursor) => {
      const after = cursor === undefined ? '' : `&after_id=${encodeURIComponent(cursor)}`
      const list = await api.json(
        `${base}/models?limit=1000${after}`,
        { signal, headers: headersOf(OLDER_VERSION) },
        { schema: ModelList, what: 'a list of models' },
      )
      return { items: list.data.map(({ id }) => id), next: list.has_more ? list.last_id : undefined }
    })

  const complete: ProviderClient['complete'] = (request, signal) =>
    readStreamed(link.name, new Decoder(link.name, request), signal, () =>
      api.send(`${base}/messages`, {
        signal,
        accept: 'text/event-stream',
        headers: headersOf(takesTemperature(request.model) ? OLDER_VERSION : NEWER_VERSION),
        body: encode(request, config),
      }),
    )

  async function probe(signal: AbortSignal): Promise<{ readonly model: string }> {
    try {
      return { model: chooseModel(await models(signal), defaultModel) }
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
      // Other vendors that speak this format have no list of models.
      return probeCompletion(complete, defaultModel, signal)
    }
  }

  return { complete, probe, models }
}
