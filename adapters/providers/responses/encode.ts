import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import { Replay } from './wire.ts'

/** Models that think, which take no temperature. `chat` models of these families do not. */
const thinks = (model: string): boolean => /^(?:o[1-9]|gpt-[5-9]|codex)/.test(model) && !/chat/.test(model)

/** The API refuses a lower limit. */
const MIN_TOKENS = 16

/** The body of a request for a response. */
export function encode(request: CompletionRequest): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat, thinking } = request
  return JSON.stringify({
    ...request.extra,
    model,
    stream: true,
    // The vendor keeps nothing: what was thought comes along, sealed.
    store: false,
    ...(system !== '' && { instructions: system }),
    input: turns.flatMap(items),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, input }) => ({
        type: 'function',
        name,
        description,
        parameters: schemaOf(input),
        strict: false,
      })),
    }),
    ...(maxTokens !== undefined && { max_output_tokens: Math.max(MIN_TOKENS, maxTokens) }),
    ...(thinks(model)
      ? {
          include: ['reasoning.encrypted_content'],
          ...(thinking !== undefined && {
            reasoning: thinking ? { effort: 'high', summary: 'auto' } : { effort: 'low' },
          }),
        }
      : temperature !== undefined && { temperature }),
    ...(responseFormat && { text: { format: format(responseFormat) } }),
  })
}

function format(wanted: ResponseFormat): object {
  if (wanted.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = wanted
  return { type: 'json_schema', name, schema, ...(strict !== undefined && { strict }) }
}

function items(turn: Turn): readonly object[] {
  if (turn.role === 'user') return [{ role: 'user', content: turn.parts.map(part) }]
  if (turn.role === 'tool') return [{ type: 'function_call_output', call_id: turn.callId, output: turn.text }]
  const replayed =
    turn.replay === undefined
      ? undefined
      : Replay.read<object>(turn.replay, turn, { thought: (piece) => piece, text: said, call: called })
  return replayed ?? [...(turn.text === '' ? [] : [said(turn.text)]), ...turn.calls.map(called)]
}
const said = (text: string): object => ({ role: 'assistant', content: [{ type: 'output_text', text }] })
const called = ({ id, name, args }: ToolCall): object => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
})

function part(value: Part): object {
  if (value.type === 'text') return { type: 'input_text', text: value.text }
  return { type: 'input_image', detail: 'auto', image_url: `data:${value.mime};base64,${value.base64}` }
}

/** Parameters have to be an object schema, also those of a tool that takes nothing. */
function schemaOf(input: object): object {
  return 'type' in input && input.type === 'object'
    ? { properties: {}, ...input }
    : { type: 'object', properties: {}, ...input }
}
