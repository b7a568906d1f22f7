import { hash } from 'node:crypto'
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionMessageParam,
  ChatCompletionToolMessageParam,
} from 'openai/resources/chat/completions'
import { jsonArguments, objectSchema, plainText, TurnCache } from 'svc/providers'
import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import type { Quirks } from './quirks.ts'
import type { AssistantMessage, ThinkingFields } from './wire.ts'
import { readJson } from 'svc/sdk'

type RequestBody = Omit<ChatCompletionCreateParamsStreaming, 'messages'>
/** Mistral requires the name of the tool with its result. */
type ToolMessage = ChatCompletionToolMessageParam & { name?: string }

/** The body of a chat completion request. */
export function encode(request: CompletionRequest, quirks: Quirks): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat } = request
  const body: RequestBody = {
    ...request.extra,
    model,
    stream: true,
    ...(!quirks.noStreamOptions && { stream_options: { include_usage: true } }),
    ...(maxTokens !== undefined && { [quirks.maxTokensField ?? 'max_tokens']: maxTokens }),
    ...(temperature !== undefined &&
      !quirks.noTemperature?.some((start) => model.startsWith(start)) && { temperature }),
    ...(responseFormat && { response_format: format(responseFormat) }),
    ...thinkingFields(request, quirks),
  }
  // Tools and messages are added below, as text: most were encoded for an earlier request.
  const hasTools = tools.length > 0 && !quirks.noTools
  const rest = JSON.stringify({ ...body, ...(hasTools && { tools: undefined }), messages: undefined })
  const messages = system === '' ? [] : [JSON.stringify({ role: 'system', content: system })]
  // Only answers of the current turn have to carry their thinking.
  const currentTurn =
    quirks.replay === 'reasoning_content' && request.thinking !== false
      ? turns.findLastIndex(({ role }) => role === 'user')
      : Infinity
  turns.forEach((turn, at) => {
    const replays = turn.role === 'assistant' && at > currentTurn && turn.calls.length > 0
    messages.push(encodeTurn(replays ? { ...turn, replay: turn.replay ?? '' } : turn, quirks))
  })
  // Joined once: a text put together with `+` is copied again when it becomes bytes, and this one is long.
  const parts = [rest.slice(0, -1)]
  if (hasTools) parts.push(',"tools":', encodeTools(tools))
  parts.push(',"messages":[')
  messages.forEach((each, at) => parts.push(at === 0 ? '' : ',', each))
  parts.push(']}')
  return parts.join('')
}

/** An agent's list of tools stays the same from turn to turn. */
const encodedTools = new WeakMap<CompletionRequest['tools'], string>()
function encodeTools(tools: CompletionRequest['tools']): string {
  let encoded = encodedTools.get(tools)
  if (encoded === undefined) encodedTools.set(tools, (encoded = JSON.stringify(functionTools(tools))))
  return encoded
}

const turnCache = new TurnCache()
function encodeTurn(turn: Turn, quirks: Quirks): string {
  const encodeMessage = (): string => JSON.stringify(message(turn, quirks))
  // The cache is shared by all vendors, so it only holds what is the same for all of them.
  const isVendorSpecific = quirks.shortCallIds || (turn.role === 'assistant' && turn.replay !== undefined)
  return isVendorSpecific ? encodeMessage() : turnCache.get(turn, encodeMessage)
}

function format(responseFormat: ResponseFormat): NonNullable<RequestBody['response_format']> {
  if (responseFormat.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = responseFormat
  return { type: 'json_schema', json_schema: { name, schema: { ...schema }, ...(strict !== undefined && { strict }) } }
}

/** The vendor's own switch for thinking; nothing for a model that cannot think. */
function thinkingFields({ model, thinking }: CompletionRequest, quirks: Quirks): object {
  if (thinking === undefined || !quirks.thinking) return {}
  const { models, on, off } = quirks.thinking
  const canThink = models === undefined || models.some((prefix) => model.startsWith(prefix))
  if (!canThink) return {}
  return thinking ? on : off
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
  // Several vendors accept a list of parts only for models that take images.
  return { role: 'user', content: plainText(turn.parts) ?? turn.parts.map(part) }
}

/**
 * The thinking of an answer, in the field it came in. Where it is lost, as after another model, a blank is sent: the
 * vendor refuses a message without the field.
 */
function replayFields(replay: string | undefined, { replay: field }: Quirks): ThinkingFields {
  if (replay === undefined || field === undefined) return {}
  let value: unknown
  try {
    value = readJson(replay)
  } catch {
    value = undefined /* the replay of another provider */
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
    function: { name, arguments: jsonArguments(args) },
  }
}
/** In one loop: an agent may have a hundred tools, and every request has them. */
function functionTools(tools: CompletionRequest['tools']): ChatCompletionFunctionTool[] {
  const encoded: ChatCompletionFunctionTool[] = []
  for (const { name, description, input } of tools)
    encoded.push({ type: 'function', function: { name, description, parameters: objectSchema(input) } })
  return encoded
}
