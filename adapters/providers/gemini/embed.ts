import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateTokens } from 'svc/providers'
import type { EmbeddingRequest, Embeddings, ProviderClient } from 'svc/providers'
import type { Endpoint } from './endpoint.ts'
import { EmbeddingBatch, Predictions } from './wire.ts'

type Call = (url: string, signal: AbortSignal, body: string) => Promise<OutboundResponse>

/** Embeds texts; the caller sees to it that no request holds more than Google takes. */
export function embedder(endpoint: Endpoint, name: string, call: Call): NonNullable<ProviderClient['embed']> {
  async function batch({ model, texts, purpose }: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings> {
    const requests = texts.map((text) => ({
      model: `models/${model.replace(/^models\//, '')}`,
      content: { parts: [{ text: textOf(text) }] },
      ...taskOf(model, purpose, 'taskType'),
    }))
    const { embeddings, usageMetadata } = await read(
      EmbeddingBatch,
      await call(await endpoint.method(model, 'batchEmbedContents', signal), signal, JSON.stringify({ requests })),
    )
    const input = usageMetadata?.promptTokenCount
    return {
      vectors: embeddings.map(({ values }) => Float32Array.from(values)),
      usage: input == null ? estimated(texts) : { input },
    }
  }

  /** The platform's models of the Gemini family take one text a request. */
  async function predict({ model, texts, purpose }: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings> {
    const vectors: Float32Array[] = []
    let input = 0
    let counted = true
    const size = model.startsWith('gemini') ? 1 : texts.length
    for (let at = 0; at < texts.length; at += size) {
      const instances = texts
        .slice(at, at + size)
        .map((content) => ({ content: textOf(content), ...taskOf(model, purpose, 'task_type') }))
      const { predictions } = await read(
        Predictions,
        await call(await endpoint.method(model, 'predict', signal), signal, JSON.stringify({ instances })),
      )
      for (const {
        embeddings: { values, statistics },
      } of predictions) {
        vectors.push(Float32Array.from(values))
        if (statistics?.token_count == null) counted = false
        else input += statistics.token_count
      }
    }
    return { vectors, usage: counted ? { input } : estimated(texts) }
  }

  async function read<T extends typeof EmbeddingBatch | typeof Predictions>(schema: T, response: OutboundResponse) {
    const data = await response.json()
    try {
      return parse(schema, data)
    } catch (cause) {
      throw new UpstreamFailure(name, `${name} sent vectors that cannot be read`, {
        reason: 'malformed',
        retry: 'later',
        cause,
      })
    }
  }
  return endpoint.embedding === 'batch' ? batch : predict
}

/** Nobody embeds nothing; a blank has a vector. */
const textOf = (text: string): string => (text === '' ? ' ' : text.toWellFormed())
/** Only the first generation is told what a text is for; later ones read it from the text. */
function taskOf(model: string, purpose: EmbeddingRequest['purpose'], field: 'taskType' | 'task_type'): object {
  return purpose !== undefined && /(?:gemini|text)-(?:multilingual-)?embedding-00\d/.test(model)
    ? { [field]: `RETRIEVAL_${purpose.toUpperCase()}` }
    : {}
}
const estimated = (texts: readonly string[]): Embeddings['usage'] => ({
  input: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
  estimated: true,
})
