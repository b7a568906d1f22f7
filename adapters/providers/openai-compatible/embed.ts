import type { EmbeddingCreateParams } from 'openai/resources/embeddings'
import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateTokens } from 'svc/providers'
import type { ProviderClient } from 'svc/providers'
import { Vectors } from './wire.ts'

/** Embeds texts through `/embeddings`; the caller sees to it that no request holds more than the vendor takes. */
export function embedder(
  name: string,
  call: (path: string, signal: AbortSignal, body: string, model: string) => Promise<OutboundResponse>,
): NonNullable<ProviderClient['embed']> {
  return async ({ model, texts }, signal) => {
    // Vendors refuse an empty text; a blank has a vector everywhere.
    const body: EmbeddingCreateParams = { model, input: texts.map((text) => (text === '' ? ' ' : text)) }
    const response = await call('/embeddings', signal, JSON.stringify(body), model)
    const read = v.safeParse(Vectors, await response.json())
    if (!read.success)
      throw new UpstreamFailure(name, `${name} sent vectors that cannot be read`, {
        reason: 'malformed',
        retry: 'later',
      })
    const { data, usage } = read.output
    const input = usage?.prompt_tokens ?? usage?.total_tokens
    return {
      // Those that number their vectors need not send them in order.
      vectors: data
        .toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
        .map(({ embedding }) => Float32Array.from(embedding)),
      usage:
        input == null
          ? { input: texts.reduce((sum, text) => sum + estimateTokens(text), 0), estimated: true }
          : { input },
    }
  }
}
