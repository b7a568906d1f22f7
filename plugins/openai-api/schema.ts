import * as v from 'valibot'

const Part = v.variant(
  'type',
  [
    v.object({ type: v.literal('text'), text: v.string() }),
    v.object({ type: v.literal('image_url'), image_url: v.object({ url: v.string() }) }),
    v.object({ type: v.literal('refusal'), refusal: v.string() }),
  ],
  'only text and image_url parts are known here',
)
const Call = v.object({ function: v.optional(v.object({ name: v.string(), arguments: v.optional(v.string(), '') })) })
const Message = v.object({
  role: v.picklist(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: v.optional(v.nullable(v.union([v.string(), v.array(Part)])), null),
  tool_calls: v.optional(v.nullable(v.array(Call))),
  name: v.optional(v.nullable(v.string())),
})
export type Part = v.InferOutput<typeof Part>
export type Message = v.InferOutput<typeof Message>

const tokens = v.pipe(v.number(), v.integer(), v.minValue(1))
const JsonSchema = v.object({
  name: v.optional(v.string(), 'answer'),
  schema: v.optional(v.record(v.string(), v.unknown()), {}),
  strict: v.optional(v.nullable(v.boolean())),
})
/** Clients send much that is not known here, and what they send must not be refused for it. */
export const CompletionBody = v.looseObject({
  model: v.optional(v.nullable(v.string()), null),
  messages: v.array(Message),
  stream: v.optional(v.nullable(v.boolean()), false),
  temperature: v.optional(v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(2)))),
  max_tokens: v.optional(v.nullable(tokens)),
  max_completion_tokens: v.optional(v.nullable(tokens)),
  response_format: v.optional(
    v.nullable(
      v.variant('type', [
        v.object({ type: v.literal('text') }),
        v.object({ type: v.literal('json_object') }),
        v.object({ type: v.literal('json_schema'), json_schema: JsonSchema }),
      ]),
    ),
  ),
  /** Whose conversation it is: one session of the agent for each. */
  user: v.optional(v.nullable(v.pipe(v.string(), v.maxLength(512)))),
  n: v.optional(v.nullable(v.pipe(v.number(), v.integer()))),
  tools: v.optional(v.nullable(v.array(v.unknown()))),
  functions: v.optional(v.nullable(v.array(v.unknown()))),
  tool_choice: v.optional(v.unknown()),
  function_call: v.optional(v.unknown()),
})
export type CompletionBody = v.InferOutput<typeof CompletionBody>

const finish = v.picklist(['stop', 'length', 'content_filter'])
const usage = v.object({ prompt_tokens: v.number(), completion_tokens: v.number(), total_tokens: v.number() })
/** What of the request had no effect. */
const warnings = v.optional(v.array(v.string()))
export const Completion = v.object({
  id: v.string(),
  object: v.literal('chat.completion'),
  created: v.number(),
  model: v.string(),
  choices: v.array(
    v.object({
      index: v.number(),
      message: v.object({
        role: v.literal('assistant'),
        content: v.string(),
        /** What the model thought, as most servers of this API name it. */
        reasoning_content: v.optional(v.string()),
      }),
      finish_reason: finish,
    }),
  ),
  usage,
  warnings,
})
export type Completion = v.InferOutput<typeof Completion>
export const Chunk = v.object({
  id: v.string(),
  object: v.literal('chat.completion.chunk'),
  created: v.number(),
  model: v.string(),
  choices: v.array(
    v.object({
      index: v.number(),
      delta: v.object({ role: v.optional(v.literal('assistant')), content: v.optional(v.string()) }),
      finish_reason: v.nullable(finish),
    }),
  ),
  usage: v.optional(usage),
  warnings,
})
export const Model = v.object({ id: v.string(), object: v.literal('model'), created: v.number(), owned_by: v.string() })
export const ModelList = v.object({ object: v.literal('list'), data: v.array(Model) })
export const ModelParams = v.object({ id: v.string() })
