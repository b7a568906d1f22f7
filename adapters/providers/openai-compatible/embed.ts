import type { EmbeddingCreateParams } from 'openai/resources/embeddings'
import { embeddableText, embeddingUsage } from 'svc/providers'
import type { ApiClient, ApiHeaders, ProviderClient } from 'svc/providers'
import type { Access } from './client.ts'
import { Vectors } from './wire.ts'

/** Embeds texts through `/embeddings`. The caller keeps each request within the vendor's limits. */
export function createEmbedder(
  api: ApiClient,
  access: Access,
  headers: ApiHeaders,
): NonNullable<ProviderClient['embed']> {
  return async ({ model, texts }, signal) => {
    signal.throwIfAborted()
    const url = await access.url('/embeddings', model, signal)
    const body: EmbeddingCreateParams = { model, input: texts.map(embeddableText) }
    const { data, usage } = await api.json(
      url,
      { signal, headers, body: JSON.stringify(body) },
      { schema: Vectors, what: 'vectors', retry: 'later' },
    )
    return {
      // Vendors that number their vectors need not send them in order.
      vectors: data
        .toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
        .map(({ embedding }) => Float32Array.from(embedding)),
      usage: embeddingUsage(usage?.prompt_tokens ?? usage?.total_tokens, texts),
    }
  }
}
