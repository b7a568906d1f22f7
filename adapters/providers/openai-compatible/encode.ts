import { hash } from 'node:crypto'
import { plainText } from 'svc/providers'
import type { CompletionRequest, Part, ResponseFormat, Turn } from 'svc/providers'
import type { Quirks } from './vendors.ts'
import { readJson } from 'svc/sdk'

/** The body of a chat completion request. */
export function encode(request: CompletionRequest, quirks: Quirks): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat } = request
  const rest = JSON.stringify({
    ...request.extra,
    model,
    // These come below, as text: what was said before is the same as last time, and was written then.
    messages: undefined,
    stream: true,
    ...(!quirks.noStreamOptions && { stream_options: { include_usage: true } }),
    ...(tools.length > 0 &&
      !quirks.noTools && {
        tools: tools.map(({ name, description, input }) => ({
          type: 'function',
          function: { name, description, parameters: schemaOf(input) },
        })),
      }),
    ...(maxTokens !== undefined && { [quirks.maxTokensField ?? 'max_tokens']: maxTokens }),
    ...(temperature !== undefined &&
      !quirks.noTemperature?.some((start) => model.startsWith(start)) && { temperature }),
    ...(responseFormat && { response_format: format(responseFormat) }),
    ...thinking(request, quirks),
  })
  let messages = system === '' ? '' : JSON.stringify({ role: 'system', content: system })
  // Only what belongs to the turn that goes on has to carry what was thought.
  const running =
    quirks.replay === 'reasoning_content' && request.thinking !== false
      ? turns.findLastIndex(({ role }) => role === 'user')
      : Infinity
  for (const [at, turn] of turns.entries()) {
    const text = written(
      turn.role === 'assistant' && at > running && turn.calls.length > 0
        ? { ...turn, replay: turn.replay ?? '' }
        : turn,
      quirks,
    )
    messages += messages === '' ? text : `,${text}`
  }
  return `${rest.slice(0, -1)},"messages":[${messages}]}`
}

/** Texts of messages that were sent before and will be sent again; they go with their turns. */
const texts = new WeakMap<Turn, string>()
const MAX_KEPT = 20_000
function written(turn: Turn, quirks: Quirks): string {
  // Those that want what no other vendor does are written each time.
  if (quirks.shortCallIds || (turn.role === 'assistant' && turn.replay !== undefined))
    return JSON.stringify(message(turn, quirks))
  let text = texts.get(turn)
  if (text !== undefined) return text
  text = JSON.stringify(message(turn, quirks))
  if (text.length <= MAX_KEPT) texts.set(turn, text)
  return text
}

function format(wanted: ResponseFormat): object {
  if (wanted.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = wanted
  return { type: 'json_schema', json_schema: { name, schema, ...(strict !== undefined && { strict }) } }
}

/** Each vendor says it in its own way; a model that cannot think is not told. */
function thinking({ model, thinking: wanted }: CompletionRequest, quirks: Quirks): object {
  if (wanted === undefined || !quirks.thinking) return {}
  const { models, on, off } = quirks.thinking
  return models === undefined || models.some((start) => model.startsWith(start)) ? (wanted ? on : off) : {}
}

function message(turn: Turn, quirks: Quirks): object {
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
      ...replayed(turn.replay, quirks),
      tool_calls: turn.calls.map(({ id, name, args }) => ({
        id: idOf(id),
        type: 'function',
        function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) },
      })),
    }
  }
  // Several vendors take a list of parts only from models that see.
  return { role: 'user', content: plainText(turn.parts) ?? turn.parts.map(part) }
}

/** What the model thought, in the field it came in. Where that is lost, as after another model, a blank stands for it: a field that is not there is refused. */
function replayed(replay: string | undefined, { replay: field }: Quirks): object {
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

function part(value: Part): object {
  if (value.type === 'text') return { type: 'text', text: value.text }
  return { type: 'image_url', image_url: { url: `data:${value.mime};base64,${value.base64}` } }
}

/** Parameters have to be an object schema, also those of a tool that takes nothing. */
function schemaOf(input: object): object {
  return 'type' in input && input.type === 'object'
    ? { properties: {}, ...input }
    : { type: 'object', properties: {}, ...input }
}
