import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateTokens } from 'svc/providers'
import type { ProviderClient } from 'svc/providers'

const Vectors = v.object({
  data: v.array(v.object({ index: v.nullish(v.number()), embedding: v.array(v.number()) })),
  usage: v.nullish(v.object({ prompt_tokens: v.nullish(v.number()), total_tokens: v.nullish(v.number()) })),
})

/** Embeds texts through `/embeddings`; the caller sees to it that no request holds more than the vendor takes. */
export function embedder(
  name: string,
  call: (path: string, signal: AbortSignal, body: string, model: string) => Promise<OutboundResponse>,
): NonNullable<ProviderClient['embed']> {
  return async ({ model, texts }, signal) => {
    // Nobody embeds nothing; a blank has a vector everywhere.
    const response = await call(
      '/embeddings',
      signal,
      JSON.stringify({ model, input: texts.map((text) => (text === '' ? ' ' : text)) }),
      model,
    )
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
