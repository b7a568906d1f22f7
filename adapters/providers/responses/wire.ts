import type { Model } from 'openai/resources/models'
import type {
  Response as OpenAIResponse,
  ResponseErrorEvent,
  ResponseFunctionToolCall,
  ResponseOutputItemDoneEvent,
  ResponseReasoningItem,
  ResponseReasoningSummaryTextDeltaEvent,
  ResponseUsage,
} from 'openai/resources/responses/responses'
import type { ErrorObject } from 'openai/resources/shared'
import * as v from 'valibot'
import type { FieldsOf } from 'svc/providers'
import { replayFormat } from 'svc/providers'

/** Every event has some of these fields. */
type AnyEvent = Omit<
  ResponseErrorEvent & ResponseReasoningSummaryTextDeltaEvent & ResponseOutputItemDoneEvent,
  'type'
> & {
  type: string
  response: OpenAIResponse
  error: ErrorObject
}

/** Only the fields that are read. Other vendors that speak this format omit fields or set them to null. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

export const WireUsage = v.object({
  input_tokens: Count,
  output_tokens: Count,
  input_tokens_details: v.nullish(
    v.object({
      cached_tokens: Count,
      cache_write_tokens: Count,
    } satisfies FieldsOf<ResponseUsage.InputTokensDetails>),
  ),
  output_tokens_details: v.nullish(
    v.object({ reasoning_tokens: Count } satisfies FieldsOf<ResponseUsage.OutputTokensDetails>),
  ),
} satisfies FieldsOf<ResponseUsage>)
export type WireUsage = v.InferOutput<typeof WireUsage>

export const WireError = v.object({
  message: Text,
  code: v.nullish(v.union([v.string(), v.number()])),
  type: Text,
} satisfies FieldsOf<ErrorObject>)
export type WireError = v.InferOutput<typeof WireError>

/** Encrypted thinking, which only the vendor can read. */
export const Thought = v.object({
  type: v.literal('reasoning'),
  id: v.string(),
  encrypted_content: v.string(),
  summary: v.array(v.object({ type: v.literal('summary_text'), text: v.string() })),
} satisfies FieldsOf<ResponseReasoningItem>)
export type Thought = v.InferOutput<typeof Thought>
export const Replay = replayFormat(Thought)

const Item = v.looseObject({
  type: v.string(),
  call_id: Text,
  name: Text,
  arguments: Text,
} satisfies FieldsOf<ResponseFunctionToolCall>)
export type Item = v.InferOutput<typeof Item>

export const Response = v.object({
  usage: v.optional(v.unknown()),
  error: v.nullish(WireError),
  incomplete_details: v.nullish(v.object({ reason: Text } satisfies FieldsOf<OpenAIResponse.IncompleteDetails>)),
} satisfies FieldsOf<OpenAIResponse>)

/** One event of a stream. `message` and `code` are top-level fields of the event `error`. */
export const StreamEvent = v.object({
  type: v.string(),
  output_index: Count,
  summary_index: Count,
  delta: Text,
  item: v.nullish(Item),
  response: v.nullish(Response),
  error: v.nullish(WireError),
  message: Text,
  code: v.nullish(v.union([v.string(), v.number()])),
} satisfies FieldsOf<AnyEvent>)
export type StreamEvent = v.InferOutput<typeof StreamEvent>

export const ModelList = v.object({ data: v.array(v.object({ id: v.string() } satisfies FieldsOf<Model>)) })
export const Failure = v.object({ error: v.nullish(v.union([WireError, v.string()])) })
