import * as v from 'valibot'

/** Only the fields that are read; Google adds fields as it likes. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

/** One part of an answer. Loose, because it may have to be sent back unchanged. */
export const WirePart = v.looseObject({
  text: Text,
  thought: v.nullish(v.boolean()),
  thoughtSignature: Text,
  functionCall: v.nullish(
    v.looseObject({ id: Text, name: v.string(), args: v.nullish(v.record(v.string(), v.unknown())) }),
  ),
})
export type WirePart = v.InferOutput<typeof WirePart>

export const WireStatus = v.object({
  code: Count,
  message: Text,
  status: Text,
  details: v.nullish(
    v.array(
      v.looseObject({
        '@type': Text,
        reason: Text,
        retryDelay: Text,
        violations: v.nullish(v.array(v.looseObject({ quotaId: Text }))),
      }),
    ),
  ),
})
export type WireStatus = v.InferOutput<typeof WireStatus>

export const WireUsage = v.object({
  promptTokenCount: Count,
  candidatesTokenCount: Count,
  totalTokenCount: Count,
  cachedContentTokenCount: Count,
  thoughtsTokenCount: Count,
  toolUsePromptTokenCount: Count,
})

/** One event of a stream. An answer that is not a stream has the same form. */
export const Chunk = v.object({
  candidates: v.nullish(
    v.array(
      v.object({
        index: Count,
        content: v.nullish(v.object({ parts: v.nullish(v.array(WirePart)) })),
        finishReason: Text,
        finishMessage: Text,
      }),
    ),
  ),
  promptFeedback: v.nullish(v.object({ blockReason: Text, blockReasonMessage: Text })),
  usageMetadata: v.nullish(v.unknown()),
  error: v.nullish(WireStatus),
})

export const Failure = v.object({ error: WireStatus })
export const ModelPage = v.object({
  models: v.nullish(
    v.array(v.object({ name: v.string(), supportedGenerationMethods: v.nullish(v.array(v.string())) })),
  ),
  publisherModels: v.nullish(v.array(v.object({ name: v.string() }))),
  nextPageToken: Text,
})
const Values = v.array(v.number())
export const EmbeddingBatch = v.object({
  embeddings: v.array(v.object({ values: Values })),
  usageMetadata: v.nullish(v.object({ promptTokenCount: Count })),
})
export const Predictions = v.object({
  predictions: v.array(
    v.object({ embeddings: v.object({ values: Values, statistics: v.nullish(v.object({ token_count: Count })) }) }),
  ),
})
