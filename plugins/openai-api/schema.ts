import type { CompletionUsage } from 'openai/resources/completions'
import type {
  ChatCompletion,
  ChatCompletionAssistantMessageParam,
  ChatCompletionChunk,
  ChatCompletionContentPartImage,
  ChatCompletionContentPartRefusal,
  ChatCompletionContentPartText,
  ChatCompletionCreateParams,
  ChatCompletionMessage,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionRole,
} from 'openai/resources/chat/completions'
import type { Model as OpenAIModel } from 'openai/resources/models'
import type { ResponseFormatJSONSchema } from 'openai/resources/shared'
import * as v from 'valibot'
import type { FieldsOf } from 'svc/providers'

/** What this API adds to OpenAI's answers. */
interface OwnFields {
  /** What of the request had no effect. */
  warnings?: string[]
}
/** As most servers of this API name it. */
interface ThinkingFields {
  /** What the model thought. */
  reasoning_content?: string
}

const Part = v.variant(
  'type',
  [
    v.object({ type: v.literal('text'), text: v.string() } satisfies FieldsOf<ChatCompletionContentPartText>),
    v.object({
      type: v.literal('image_url'),
      image_url: v.object({ url: v.string() } satisfies FieldsOf<ChatCompletionContentPartImage.ImageURL>),
    } satisfies FieldsOf<ChatCompletionContentPartImage>),
    v.object({ type: v.literal('refusal'), refusal: v.string() } satisfies FieldsOf<ChatCompletionContentPartRefusal>),
  ],
  'only text and image_url parts are known here',
)
const Call = v.object({
  function: v.optional(
    v.object({
      name: v.string(),
      arguments: v.optional(v.string(), ''),
    } satisfies FieldsOf<ChatCompletionMessageFunctionToolCall.Function>),
  ),
} satisfies FieldsOf<ChatCompletionMessageFunctionToolCall>)
const Message = v.object({
  role: v.picklist(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: v.optional(v.nullable(v.union([v.string(), v.array(Part)])), null),
  tool_calls: v.optional(v.nullable(v.array(Call))),
  name: v.optional(v.nullable(v.string())),
} satisfies FieldsOf<Omit<ChatCompletionAssistantMessageParam, 'role'> & { role: ChatCompletionRole }>)
export type Part = v.InferOutput<typeof Part>
export type Message = v.InferOutput<typeof Message>

const tokens = v.pipe(v.number(), v.integer(), v.minValue(1))
const JsonSchema = v.object({
  name: v.optional(v.string(), 'answer'),
  schema: v.optional(v.record(v.string(), v.unknown()), {}),
  strict: v.optional(v.nullable(v.boolean())),
} satisfies FieldsOf<ResponseFormatJSONSchema.JSONSchema>)
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
} satisfies FieldsOf<ChatCompletionCreateParams>)
export type CompletionBody = v.InferOutput<typeof CompletionBody>

const finish = v.picklist(['stop', 'length', 'content_filter'])
const usage = v.object({
  prompt_tokens: v.number(),
  completion_tokens: v.number(),
  total_tokens: v.number(),
} satisfies FieldsOf<CompletionUsage>)
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
        reasoning_content: v.optional(v.string()),
      } satisfies FieldsOf<ChatCompletionMessage & ThinkingFields>),
      finish_reason: finish,
    } satisfies FieldsOf<ChatCompletion.Choice>),
  ),
  usage,
  warnings,
} satisfies FieldsOf<ChatCompletion & OwnFields>)
export type Completion = v.InferOutput<typeof Completion>
export const Chunk = v.object({
  id: v.string(),
  object: v.literal('chat.completion.chunk'),
  created: v.number(),
  model: v.string(),
  choices: v.array(
    v.object({
      index: v.number(),
      delta: v.object({
        role: v.optional(v.literal('assistant')),
        content: v.optional(v.string()),
      } satisfies FieldsOf<ChatCompletionChunk.Choice.Delta>),
      finish_reason: v.nullable(finish),
    } satisfies FieldsOf<ChatCompletionChunk.Choice>),
  ),
  usage: v.optional(usage),
  warnings,
} satisfies FieldsOf<ChatCompletionChunk & OwnFields>)
export const Model = v.object({
  id: v.string(),
  object: v.literal('model'),
  created: v.number(),
  owned_by: v.string(),
} satisfies FieldsOf<OpenAIModel>)
export const ModelList = v.object({ object: v.literal('list'), data: v.array(Model) })
export const ModelParams = v.object({ id: v.string() })
