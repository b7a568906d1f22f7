import { hash } from 'node:crypto'
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionMessageParam,
  ChatCompletionToolMessageParam,
} from 'openai/resources/chat/completions'
import { plainText } from 'svc/providers'
import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import type { Quirks } from './quirks.ts'
import type { AssistantMessage, ThinkingFields } from './wire.ts'
import { readJson } from 'svc/sdk'

type RequestBody = Omit<ChatCompletionCreateParamsStreaming, 'messages'>
/** Mistral wants the name of the tool with its result. */
type ToolMessage = ChatCompletionToolMessageParam & { name?: string }

/** The body of a chat completion request. */
export function encode(request: CompletionRequest, quirks: Quirks): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat } = request
  const body: RequestBody = {
    ...request.extra,
    model,
    stream: true,
    ...(!quirks.noStreamOptions && { stream_options: { include_usage: true } }),
    ...(tools.length > 0 &&
      !quirks.noTools && {
        tools: tools.map(functionTool),
      }),
    ...(maxTokens !== undefined && { [quirks.maxTokensField ?? 'max_tokens']: maxTokens }),
    ...(temperature !== undefined &&
      !quirks.noTemperature?.some((start) => model.startsWith(start)) && { temperature }),
    ...(responseFormat && { response_format: format(responseFormat) }),
    ...thinking(request, quirks),
  }
  // Messages are added below, as text: those of earlier turns were encoded for an earlier request.
  const rest = JSON.stringify({ ...body, messages: undefined })
  let messages = system === '' ? '' : JSON.stringify({ role: 'system', content: system })
  // Only what belongs to the turn that goes on has to carry what was thought.
  const running =
    quirks.replay === 'reasoning_content' && request.thinking !== false
      ? turns.findLastIndex(({ role }) => role === 'user')
      : Infinity
  for (const [at, turn] of turns.entries()) {
    const text = encodeTurn(
      turn.role === 'assistant' && at > running && turn.calls.length > 0
        ? { ...turn, replay: turn.replay ?? '' }
        : turn,
      quirks,
    )
    messages += messages === '' ? text : `,${text}`
  }
  return `${rest.slice(0, -1)},"messages":[${messages}]}`
}

/** Encoded messages, which every later request of a conversation repeats. They live as long as their turns. */
const encodedTurns = new WeakMap<Turn, string>()
const MAX_CACHED_LENGTH = 20_000
function encodeTurn(turn: Turn, quirks: Quirks): string {
  // What is encoded for one vendor only is not cached.
  if (quirks.shortCallIds || (turn.role === 'assistant' && turn.replay !== undefined))
    return JSON.stringify(message(turn, quirks))
  let text = encodedTurns.get(turn)
  if (text !== undefined) return text
  text = JSON.stringify(message(turn, quirks))
  if (text.length <= MAX_CACHED_LENGTH) encodedTurns.set(turn, text)
  return text
}

function format(wanted: ResponseFormat): NonNullable<RequestBody['response_format']> {
  if (wanted.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = wanted
  return { type: 'json_schema', json_schema: { name, schema: { ...schema }, ...(strict !== undefined && { strict }) } }
}

/** The vendor's own switch for thinking, and nothing for a model that cannot think. */
function thinking({ model, thinking: wanted }: CompletionRequest, quirks: Quirks): object {
  if (wanted === undefined || !quirks.thinking) return {}
  const { models, on, off } = quirks.thinking
  return models === undefined || models.some((start) => model.startsWith(start)) ? (wanted ? on : off) : {}
}

function message(turn: Turn, quirks: Quirks): ChatCompletionMessageParam | AssistantMessage | ToolMessage {
  const idOf = (id: string): string =>
    quirks.shortCallIds && !/^[a-zA-Z0-9]{9}$/.test(id) ? hash('sha256', id).slice(0, 9) : id
  if (turn.role === 'tool')
    return {
      role: 'tool',
      tool_call_id: idOf(turn.callId),
      content: turn.text,
      ...(quirks.shortCallIds && { name: turn.tool }),
    }
  if (turn.role === 'assistant') {
    if (turn.calls.length === 0) return { role: 'assistant', content: turn.text }
    return {
      role: 'assistant',
      content: turn.text === '' ? null : turn.text,
      ...replayFields(turn.replay, quirks),
      tool_calls: turn.calls.map((call) => functionCall(call, idOf(call.id))),
    }
  }
  // Several vendors take a list of parts only from models that see.
  return { role: 'user', content: plainText(turn.parts) ?? turn.parts.map(part) }
}

/**
 * What the model thought, in the field it came in. Where that is lost, as after another model, a blank stands for it:
 * the vendor refuses a message without the field.
 */
function replayFields(replay: string | undefined, { replay: field }: Quirks): ThinkingFields {
  if (replay === undefined || field === undefined) return {}
  let value: unknown
  try {
    value = readJson(replay)
  } catch {
    value = undefined /* not from here */
  }
  if (field === 'reasoning_details') return Array.isArray(value) ? { reasoning_details: value } : {}
  return { reasoning_content: typeof value === 'string' && value !== '' ? value : ' ' }
}

function part(value: Part): ChatCompletionContentPart {
  if (value.type === 'text') return { type: 'text', text: value.text }
  return { type: 'image_url', image_url: { url: `data:${value.mime};base64,${value.base64}` } }
}

function functionCall({ name, args }: ToolCall, id: string): ChatCompletionMessageFunctionToolCall {
  return {
    id,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) },
  }
}
function functionTool({ name, description, input }: CompletionRequest['tools'][number]): ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description, parameters: schemaOf(input) } }
}

/** Parameters have to be an object schema, also those of a tool that takes nothing. */
function schemaOf(input: object): Record<string, unknown> {
  return 'type' in input && input.type === 'object'
    ? { properties: {}, ...input }
    : { type: 'object', properties: {}, ...input }
}
