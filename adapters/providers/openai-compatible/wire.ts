import type { CompletionUsage } from 'openai/resources/completions'
import type {
  ChatCompletion,
  ChatCompletionAssistantMessageParam,
  ChatCompletionChunk,
} from 'openai/resources/chat/completions'
import type { CreateEmbeddingResponse, Embedding } from 'openai/resources/embeddings'
import type { TranscriptionSegment, TranscriptionVerbose } from 'openai/resources/audio/transcriptions'
import type { Image, ImagesResponse } from 'openai/resources/images'
import type { Model } from 'openai/resources/models'
import type { ErrorObject } from 'openai/resources/shared'
import * as v from 'valibot'
import type { FieldsOf } from 'svc/providers'

/** Thinking, as compatible vendors add it to OpenAI's messages. */
export interface ThinkingFields {
  reasoning_content?: string
  reasoning?: string
  /** OpenRouter: signed pieces of thinking, to be sent back in this order. */
  reasoning_details?: unknown[]
}
export type Delta = ChatCompletionChunk.Choice.Delta & ThinkingFields
export type AssistantMessage = ChatCompletionAssistantMessageParam & ThinkingFields
/** `prompt_cache_hit_tokens` is DeepSeek's name for the cached tokens. */
type VendorUsage = CompletionUsage & { prompt_cache_hit_tokens?: number }
type VendorChunk = ChatCompletionChunk & { error?: ErrorObject }

/** Only the fields that are read. Vendors omit fields or set them to null, so everything is optional. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

export const WireUsage = v.object({
  prompt_tokens: Count,
  completion_tokens: Count,
  prompt_tokens_details: v.nullish(
    v.object({ cached_tokens: Count } satisfies FieldsOf<CompletionUsage.PromptTokensDetails>),
  ),
  completion_tokens_details: v.nullish(
    v.object({ reasoning_tokens: Count } satisfies FieldsOf<CompletionUsage.CompletionTokensDetails>),
  ),
  prompt_cache_hit_tokens: Count,
} satisfies FieldsOf<VendorUsage>)
export type WireUsage = v.InferOutput<typeof WireUsage>

const WireCall = v.object({
  index: v.nullish(v.number()),
  id: Text,
  function: v.nullish(
    v.object({
      name: Text,
      arguments: v.nullish(v.union([v.string(), v.record(v.string(), v.unknown())])),
    } satisfies FieldsOf<ChatCompletionChunk.Choice.Delta.ToolCall.Function>),
  ),
} satisfies FieldsOf<ChatCompletionChunk.Choice.Delta.ToolCall>)
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
  reasoning_details: v.nullish(v.array(v.unknown())),
  refusal: Text,
  tool_calls: v.nullish(v.array(WireCall)),
} satisfies FieldsOf<Delta>)
export type Message = v.InferOutput<typeof Message>

export const WireError = v.object({
  message: Text,
  code: v.nullish(v.union([v.string(), v.number()])),
  type: Text,
} satisfies FieldsOf<ErrorObject>)
export type WireError = v.InferOutput<typeof WireError>

/** One chunk of a stream, or a whole answer, whose choices have `message` instead of `delta`. */
export const Chunk = v.object({
  choices: v.nullish(
    v.array(
      v.object({
        index: v.nullish(v.number()),
        delta: v.nullish(Message),
        message: v.nullish(Message),
        finish_reason: Text,
      } satisfies FieldsOf<ChatCompletionChunk.Choice & ChatCompletion.Choice>),
    ),
  ),
  usage: v.optional(v.unknown()),
  error: v.nullish(v.union([WireError, v.string()])),
} satisfies FieldsOf<VendorChunk>)
export type Chunk = v.InferOutput<typeof Chunk>

export const Vectors = v.object({
  data: v.array(
    v.object({ index: v.nullish(v.number()), embedding: v.array(v.number()) } satisfies FieldsOf<Embedding>),
  ),
  usage: v.nullish(
    v.object({ prompt_tokens: Count, total_tokens: Count } satisfies FieldsOf<CreateEmbeddingResponse.Usage>),
  ),
} satisfies FieldsOf<CreateEmbeddingResponse>)

/** Of pictures and transcriptions; `prompt_…` and `completion_tokens` are Mistral's names. */
const MediaUsage = v.object({
  input_tokens: Count,
  output_tokens: Count,
  prompt_tokens: Count,
  completion_tokens: Count,
  seconds: Count,
  prompt_audio_seconds: v.nullish(v.unknown()),
})
export type WireMediaUsage = v.InferOutput<typeof MediaUsage>
export const Images = v.object({
  data: v.nullish(v.array(v.object({ b64_json: Text } satisfies FieldsOf<Image>))),
  usage: v.nullish(MediaUsage),
} satisfies FieldsOf<ImagesResponse>)
export const Transcript = v.object({
  text: v.string(),
  // A text where the model does not tell it.
  duration: v.nullish(v.unknown()),
  segments: v.nullish(
    v.array(
      v.object({ start: v.number(), end: v.number(), text: v.string() } satisfies FieldsOf<TranscriptionSegment>),
    ),
  ),
  usage: v.nullish(MediaUsage),
} satisfies FieldsOf<TranscriptionVerbose>)

const Models = v.array(v.object({ id: v.string() } satisfies FieldsOf<Model>))
/** A few vendors send the list alone, without an object around it. */
export const ModelList = v.union([
  Models,
  v.pipe(
    v.object({ data: Models }),
    v.transform(({ data }) => data),
  ),
])
export const Failure = v.object({
  error: v.nullish(v.union([WireError, v.string()])),
  message: Text,
  detail: v.nullish(v.unknown()),
})
