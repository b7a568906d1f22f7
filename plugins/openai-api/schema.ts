import * as v from 'valibot'

const Part = v.variant('type', [
  v.object({ type: v.literal('text'), text: v.string() }),
  v.object({ type: v.literal('image_url'), image_url: v.object({ url: v.string() }) }),
])
const Message = v.object({ role: v.string(), content: v.optional(v.nullable(v.union([v.string(), v.array(Part)])), null) })
export type Part = v.InferOutput<typeof Part>
export type Message = v.InferOutput<typeof Message>

const tokens = v.pipe(v.number(), v.integer(), v.minValue(1))
export const CompletionBody = v.object({
  model: v.optional(v.nullable(v.string()), null),
  messages: v.array(Message),
  stream: v.optional(v.nullable(v.boolean()), false),
  temperature: v.optional(v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(2)))),
  max_tokens: v.optional(v.nullable(tokens)),
  max_completion_tokens: v.optional(v.nullable(tokens)),
})
export type CompletionBody = v.InferOutput<typeof CompletionBody>

const finish = v.picklist(['stop', 'length', 'content_filter'])
const usage = v.object({ prompt_tokens: v.number(), completion_tokens: v.number(), total_tokens: v.number() })
export const Completion = v.object({
  id: v.string(), object: v.literal('chat.completion'), created: v.number(), model: v.string(),
  choices: v.array(v.object({ index: v.number(), message: v.object({ role: v.literal('assistant'), content: v.string() }), finish_reason: finish })),
  usage,
})
export type Completion = v.InferOutput<typeof Completion>
export const Chunk = v.object({
  id: v.string(), object: v.literal('chat.completion.chunk'), created: v.number(), model: v.string(),
  choices: v.array(v.object({
    index: v.number(), delta: v.object({ role: v.optional(v.literal('assistant')), content: v.optional(v.string()) }), finish_reason: v.nullable(finish),
  })),
  usage: v.optional(usage),
})
export const ModelList = v.object({
  object: v.literal('list'),
  data: v.array(v.object({ id: v.string(), object: v.literal('model'), created: v.number(), owned_by: v.string() })),
})
