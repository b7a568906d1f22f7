import { embeddableText, embeddingUsage } from 'svc/providers'
import type { ApiClient, EmbeddingRequest, Embeddings, ProviderClient } from 'svc/providers'
import type { Endpoint } from './endpoint.ts'
import { EmbeddingBatch, Predictions } from './wire.ts'

const accept = '*/*'
const expected = { what: 'vectors', retry: 'later' } as const

/** Embeds texts. The caller keeps each request within Google's limits. */
export function createEmbedder(endpoint: Endpoint, api: ApiClient): NonNullable<ProviderClient['embed']> {
  return endpoint.embedding === 'batch'
    ? (request, signal) => embedBatch(endpoint, api, request, signal)
    : (request, signal) => predict(endpoint, api, request, signal)
}

/** All texts in one request, with the Gemini API. */
async function embedBatch(
  endpoint: Endpoint,
  api: ApiClient,
  { model, texts, purpose }: EmbeddingRequest,
  signal: AbortSignal,
): Promise<Embeddings> {
  const requests = texts.map((text) => ({
    model: `models/${model.replace(/^models\//, '')}`,
    content: { parts: [{ text: textOf(text) }] },
    ...taskOf(model, purpose, 'taskType'),
  }))
  const { embeddings, usageMetadata } = await api.json(
    await endpoint.methodUrl(model, 'batchEmbedContents', signal),
    { signal, accept, body: JSON.stringify({ requests }) },
    { schema: EmbeddingBatch, ...expected },
  )
  return {
    vectors: embeddings.map(({ values }) => Float32Array.from(values)),
    usage: embeddingUsage(usageMetadata?.promptTokenCount, texts),
  }
}

/** With Vertex AI, whose models of the Gemini family take one text in a request. */
async function predict(
  endpoint: Endpoint,
  api: ApiClient,
  { model, texts, purpose }: EmbeddingRequest,
  signal: AbortSignal,
): Promise<Embeddings> {
  const vectors: Float32Array[] = []
  let input: number | undefined = 0
  const size = model.startsWith('gemini') ? 1 : texts.length
  for (let at = 0; at < texts.length; at += size) {
    const instances = texts
      .slice(at, at + size)
      .map((text) => ({ content: textOf(text), ...taskOf(model, purpose, 'task_type') }))
    const { predictions } = await api.json(
      await endpoint.methodUrl(model, 'predict', signal),
      { signal, accept, body: JSON.stringify({ instances }) },
      { schema: Predictions, ...expected },
    )
    for (const { embeddings } of predictions) {
      vectors.push(Float32Array.from(embeddings.values))
      const tokens = embeddings.statistics?.token_count
      input = tokens == null || input === undefined ? undefined : input + tokens
    }
  }
  return { vectors, usage: embeddingUsage(input, texts) }
}

const textOf = (text: string): string => embeddableText(text).toWellFormed()
/** Only the first generation takes the purpose as a field; later ones read it from the text. */
function taskOf(model: string, purpose: EmbeddingRequest['purpose'], field: 'taskType' | 'task_type'): object {
  return purpose !== undefined && /(?:gemini|text)-(?:multilingual-)?embedding-00\d/.test(model)
    ? { [field]: `RETRIEVAL_${purpose.toUpperCase()}` }
    : {}
}
