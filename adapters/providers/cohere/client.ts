import {
  ApiClient,
  baseUrlOf,
  bearerToken,
  chooseModel,
  collectPages,
  embeddableText,
  embeddingUsage,
  readStreamed,
} from 'svc/providers'
import type { EmbeddingRequest, Embeddings, ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import { ModelPage, Vectors } from './wire.ts'

const common = { accept: '*/*', headers: { 'x-client-name': 'svc' } }

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = baseUrlOf(link)
  // Only the first version of the API lists models.
  const modelsUrl = `${base.replace(/\/v2$/, '/v1')}/models?page_size=1000&endpoint=chat`
  const api = new ApiClient(link, { classifyFailure, authenticate: () => bearerToken(link) })

  const models = (signal: AbortSignal): Promise<readonly string[]> =>
    collectPages(async (cursor) => {
      const url = cursor === undefined ? modelsUrl : `${modelsUrl}&page_token=${encodeURIComponent(cursor)}`
      const page = await api.json(url, { ...common, signal }, { schema: ModelPage, what: 'a list of models' })
      return { items: page.models.map(({ name }) => name), next: page.next_page_token }
    })

  async function embed(
    { model, texts, purpose = 'document' }: EmbeddingRequest,
    signal: AbortSignal,
  ): Promise<Embeddings> {
    const body = JSON.stringify({
      model,
      texts: texts.map(embeddableText),
      input_type: `search_${purpose}`,
      embedding_types: ['float'],
      truncate: 'END',
    })
    const { embeddings, meta } = await api.json(
      `${base}/embed`,
      { ...common, signal, body },
      { schema: Vectors, what: 'vectors' },
    )
    return {
      vectors: embeddings.float.map((values) => Float32Array.from(values)),
      usage: embeddingUsage(meta?.billed_units?.input_tokens, texts),
    }
  }

  return {
    models,
    embed,
    complete: (request, signal) =>
      readStreamed(link.name, new Decoder(link.name, request), signal, () =>
        api.send(`${base}/chat`, { ...common, signal, body: encode(request) }),
      ),
    probe: async (signal) => ({ model: chooseModel(await models(signal), defaultModel) }),
  }
}
