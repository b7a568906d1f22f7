import { ApiClient, baseUrlOf, bearerToken, chooseModel, readStreamed } from 'svc/providers'
import type { ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import { ModelList } from './wire.ts'

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = baseUrlOf(link)
  const api = new ApiClient(link, { classifyFailure, authenticate: () => bearerToken(link) })

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const list = await api.json(`${base}/models`, { signal }, { schema: ModelList, what: 'a list of models' })
    return [...new Set(list.data.map(({ id }) => id))]
  }

  return {
    models,
    complete: (request, signal) =>
      readStreamed(link.name, new Decoder(link.name, request), signal, () =>
        api.send(`${base}/responses`, { signal, accept: 'text/event-stream', body: encode(request) }),
      ),
    probe: async (signal) => ({ model: chooseModel(await models(signal), defaultModel) }),
  }
}
