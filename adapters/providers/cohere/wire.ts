import * as v from 'valibot'

/** Only the fields that are read. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

const Tokens = v.nullish(v.object({ input_tokens: Count, output_tokens: Count }))
export const WireUsage = v.object({ billed_units: Tokens, tokens: Tokens, cached_tokens: Count })
export type WireUsage = v.InferOutput<typeof WireUsage>

const Call = v.object({ id: Text, function: v.nullish(v.object({ name: Text, arguments: Text })) })
export type WireCall = v.InferOutput<typeof Call>
/** Start events have arrays here, which an object schema without required fields would accept. */
const Message = v.object({
  content: v.nullish(v.union([v.array(v.unknown()), v.object({ text: Text, thinking: Text })])),
  tool_plan: Text,
  tool_calls: v.nullish(v.union([v.array(v.unknown()), Call])),
})
/** One event of a stream. */
export const StreamEvent = v.object({
  type: v.string(),
  index: Count,
  delta: v.nullish(
    v.object({ message: v.nullish(Message), finish_reason: Text, error: Text, usage: v.nullish(v.unknown()) }),
  ),
})
export type StreamEvent = v.InferOutput<typeof StreamEvent>

export const Failure = v.object({ message: v.nullish(v.string()) })
export const ModelPage = v.object({
  models: v.array(v.object({ name: v.string(), endpoints: v.nullish(v.array(v.string())) })),
  next_page_token: Text,
})
export const Vectors = v.object({
  embeddings: v.object({ float: v.array(v.array(v.number())) }),
  meta: v.nullish(v.object({ billed_units: Tokens })),
})
