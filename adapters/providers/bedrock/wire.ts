import * as v from 'valibot'
import { replayFormat } from 'svc/providers'

/** Only the fields that are read. */
const Count = v.nullish(v.number())
export const WireUsage = v.object({
  inputTokens: Count,
  outputTokens: Count,
  cacheReadInputTokens: Count,
  cacheWriteInputTokens: Count,
})
export type WireUsage = v.InferOutput<typeof WireUsage>

const Delta = v.union([
  v.object({ text: v.string() }),
  v.object({ toolUse: v.object({ input: v.string() }) }),
  v.object({
    reasoningContent: v.union([
      v.object({ text: v.string() }),
      v.object({ signature: v.string() }),
      v.object({ redactedContent: v.string() }),
    ]),
  }),
  v.record(v.string(), v.unknown()),
])
export type Delta = v.InferOutput<typeof Delta>

/** Payloads of the events of a stream. Unknown types are ignored; a known type in another form is malformed. */
export const events = {
  messageStart: v.object({ role: v.string() }),
  contentBlockStart: v.object({
    contentBlockIndex: v.number(),
    start: v.nullish(v.object({ toolUse: v.nullish(v.object({ toolUseId: v.string(), name: v.string() })) })),
  }),
  contentBlockDelta: v.object({ contentBlockIndex: v.number(), delta: Delta }),
  messageStop: v.object({ stopReason: v.string() }),
  metadata: v.object({ usage: v.optional(v.unknown()) }),
} as const

export const Failure = v.object({
  message: v.nullish(v.string()),
  Message: v.nullish(v.string()),
  __type: v.nullish(v.string()),
})
export const Models = v.object({ modelSummaries: v.array(v.object({ modelId: v.string() })) })
export const Profiles = v.object({
  inferenceProfileSummaries: v.array(v.object({ inferenceProfileId: v.string() })),
  nextToken: v.nullish(v.string()),
})

/** Signed thinking, which has to be sent back unchanged. `redactedContent` is Base64. */
const Thought = v.union([
  v.object({ reasoningText: v.object({ text: v.string(), signature: v.optional(v.string()) }) }),
  v.object({ redactedContent: v.string() }),
])
export type Thought = v.InferOutput<typeof Thought>
export const Replay = replayFormat(Thought)
