import * as v from 'valibot'

/** Only the fields that are read. Vendors leave out, null and add as they like, so everything is optional. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

export const WireUsage = v.object({
  prompt_tokens: Count,
  completion_tokens: Count,
  prompt_tokens_details: v.nullish(v.object({ cached_tokens: Count })),
  completion_tokens_details: v.nullish(v.object({ reasoning_tokens: Count })),
  /** DeepSeek's name for what is cached. */
  prompt_cache_hit_tokens: Count,
})
export type WireUsage = v.InferOutput<typeof WireUsage>

const WireCall = v.object({
  index: v.nullish(v.number()),
  id: Text,
  function: v.nullish(
    v.object({ name: Text, arguments: v.nullish(v.union([v.string(), v.record(v.string(), v.unknown())])) }),
  ),
})
export type WireCall = v.InferOutput<typeof WireCall>
const Message = v.object({
  content: v.nullish(
    v.union([
      v.string(),
      v.array(v.looseObject({ type: Text, text: Text, thinking: v.nullish(v.array(v.looseObject({ text: Text }))) })),
    ]),
  ),
  reasoning_content: Text,
  reasoning: Text,
  /** OpenRouter: signed pieces of thinking, in the order to be given back. */
  reasoning_details: v.nullish(v.array(v.unknown())),
  refusal: Text,
  tool_calls: v.nullish(v.array(WireCall)),
})
export type Message = v.InferOutput<typeof Message>

export const WireError = v.object({ message: Text, code: v.nullish(v.union([v.string(), v.number()])), type: Text })
export type WireError = v.InferOutput<typeof WireError>

/** One chunk of a stream; also a whole answer, whose choices hold `message` in the place of `delta`. */
export const Chunk = v.object({
  choices: v.nullish(
    v.array(
      v.object({
        index: v.nullish(v.number()),
        delta: v.nullish(Message),
        message: v.nullish(Message),
        finish_reason: Text,
      }),
    ),
  ),
  usage: v.optional(v.unknown()),
  error: v.nullish(v.union([WireError, v.string()])),
})
export type Chunk = v.InferOutput<typeof Chunk>

export const ModelList = v.object({ data: v.array(v.object({ id: v.string() })) })
export const Failure = v.object({
  error: v.nullish(v.union([WireError, v.string()])),
  message: Text,
  detail: v.nullish(v.unknown()),
})
