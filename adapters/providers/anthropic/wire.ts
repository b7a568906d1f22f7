import * as v from 'valibot'
import { replayFormat } from 'svc/providers'

/** Only the fields that are read. Unknown events and blocks are accepted, as the vendor requires. */
const Count = v.nullish(v.number())
export const WireUsage = v.object({
  input_tokens: Count,
  output_tokens: Count,
  cache_read_input_tokens: Count,
  cache_creation_input_tokens: Count,
  output_tokens_details: v.nullish(v.object({ thinking_tokens: Count })),
})
export type WireUsage = v.InferOutput<typeof WireUsage>

export const WireError = v.object({ type: v.nullish(v.string()), message: v.nullish(v.string()) })
export type WireError = v.InferOutput<typeof WireError>
export const Failure = v.object({ error: v.nullish(v.union([WireError, v.string()])) })

const Unknown = v.object({ type: v.string() })
const Block = v.union([
  v.object({ type: v.literal('text'), text: v.optional(v.string(), '') }),
  v.object({
    type: v.literal('thinking'),
    thinking: v.optional(v.string(), ''),
    signature: v.optional(v.string(), ''),
  }),
  v.object({ type: v.literal('redacted_thinking'), data: v.string() }),
  v.object({ type: v.literal('tool_use'), id: v.string(), name: v.string(), input: v.unknown() }),
  Unknown,
])
export type Block = v.InferOutput<typeof Block>
const Delta = v.union([
  v.object({ type: v.literal('text_delta'), text: v.string() }),
  v.object({ type: v.literal('thinking_delta'), thinking: v.string() }),
  v.object({ type: v.literal('signature_delta'), signature: v.string() }),
  v.object({ type: v.literal('input_json_delta'), partial_json: v.string() }),
  Unknown,
])
export type Delta = v.InferOutput<typeof Delta>

/** Events of a stream. Unknown types are ignored; a known type in another form is malformed. */
export const events = {
  message_start: v.object({ message: v.object({ usage: v.optional(v.unknown()) }) }),
  content_block_start: v.object({ index: v.number(), content_block: Block }),
  content_block_delta: v.object({ index: v.number(), delta: Delta }),
  message_delta: v.object({ delta: v.object({ stop_reason: v.nullish(v.string()) }), usage: v.optional(v.unknown()) }),
  error: v.object({ error: v.union([WireError, v.string()]) }),
} as const

/** An answer that is not a stream. */
export const Message = v.object({
  type: v.literal('message'),
  content: v.array(Block),
  stop_reason: v.nullish(v.string()),
  usage: v.optional(v.unknown()),
})

export const ModelList = v.object({
  data: v.array(v.object({ id: v.string() })),
  has_more: v.optional(v.boolean(), false),
  last_id: v.nullish(v.string()),
})

/** Signed thinking, which has to be sent back unchanged. */
const Thought = v.variant('type', [
  v.object({ type: v.literal('thinking'), thinking: v.string(), signature: v.string() }),
  v.object({ type: v.literal('redacted_thinking'), data: v.string() }),
])
export type Thought = v.InferOutput<typeof Thought>
export const Replay = replayFormat(Thought)
