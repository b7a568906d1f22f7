import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import { takesSchema, takesTemperature, thinkingOf, usualMaxTokens } from './claude.ts'
import type { Config } from './index.ts'
import { Replay } from './wire.ts'
import { constrains } from './schema.ts'

const MARK = { cache_control: { type: 'ephemeral' } }
const MIN_BUDGET = 1024

/** The body of a request for an answer. */
export function encode(request: CompletionRequest, config: Config): string {
  const { model, system, turns, tools, temperature, extra = {} } = request
  const cached = config.prompt_caching
  const maxTokens = request.maxTokens ?? usualMaxTokens(model)
  const thinking = think(request, maxTokens, config)
  const output = {
    ...(isObject(extra['output_config']) ? extra['output_config'] : {}),
    ...thinking.output,
    ...form(request.responseFormat, model),
  }
  const rest = JSON.stringify({
    ...extra,
    model,
    max_tokens: maxTokens,
    stream: true,
    // These come below, as text: what was said before is the same as last time, and was written then.
    messages: undefined,
    // What is the same for a long time stands first: tools, then the system prompt, each a place up to which the
    // cache may reach.
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, input }, index) => ({
        name,
        description,
        input_schema: schemaOf(input),
        ...(cached && index === tools.length - 1 && MARK),
      })),
    }),
    ...(system.trim() !== '' && { system: cached ? [{ type: 'text', text: system, ...MARK }] : system }),
    ...(temperature !== undefined &&
      !thinking.on &&
      takesTemperature(model) && { temperature: Math.min(1, Math.max(0, temperature)) }),
    ...(thinking.field && { thinking: thinking.field }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
  })
  return `${wellFormed(rest).slice(0, -1)},"messages":[${messages(turns, cached)}]}`
}

/**
 * How thinking is asked for, or kept off. Thinking counts towards the answer's limit, so a limit that is too small
 * goes without.
 */
function think(
  { model, thinking, turns }: CompletionRequest,
  maxTokens: number,
  config: Config,
): { on: boolean; field?: object; output?: object } {
  const { on, off } = thinkingOf(model)
  if (thinking === undefined) return { on: false }
  if (thinking && on === 'adaptive') return { on: true, field: { type: 'adaptive', display: 'summarized' } }
  if (thinking && on === 'budget') {
    const budget = Math.min(config.thinking_budget_tokens, Math.floor(maxTokens * 0.75))
    // With a budget every answer of the running turn has to begin with its thinking; where it is lost the turn ends
    // without.
    return budget < MIN_BUDGET ||
      !turns
        .slice(turns.findLastIndex(({ role }) => role === 'user'))
        .every((turn) => turn.role !== 'assistant' || thought(turn))
      ? { on: false }
      : { on: true, field: { type: 'enabled', budget_tokens: budget } }
  }
  if (thinking || off === undefined) return { on: false }
  return off === 'least' ? { on: false, output: { effort: 'low' } } : { on: false, field: { type: off } }
}
function thought(turn: Extract<Turn, { role: 'assistant' }>): boolean {
  return (
    turn.replay !== undefined &&
    Replay.read(turn.replay, turn, { thought: () => true, text: () => false, call: () => false })?.[0] === true
  )
}

function form(wanted: ResponseFormat | undefined, model: string): object {
  // Plain JSON without a schema cannot be asked for; nor can a schema with what the vendor's grammar does not know.
  return wanted?.type === 'json_schema' && takesSchema(model) && constrains(wanted.schema)
    ? { format: { type: 'json_schema', schema: wanted.schema } }
    : {}
}

/**
 * Roles take turns: results and what the user says after them are one message, results first. With the cache on, the
 * last two messages of
 * the user are marked: the newest for the next request, the one before because the last request wrote up to there.
 */
function messages(turns: readonly Turn[], cached: boolean): string {
  const spoken: { readonly role: 'user' | 'assistant'; blocks: string; results: string }[] = []
  for (const turn of turns) {
    const blocks = encodeTurn(turn)
    if (blocks === '') continue
    const role = turn.role === 'assistant' ? 'assistant' : 'user'
    let last = spoken.at(-1)
    if (last?.role !== role) spoken.push((last = { role, blocks: '', results: '' }))
    if (turn.role === 'tool') last.results += last.results === '' ? blocks : `,${blocks}`
    else last.blocks += last.blocks === '' ? blocks : `,${blocks}`
  }
  let marks = cached ? 2 : 0
  let text = ''
  for (const { role, blocks, results } of spoken.toReversed()) {
    let content = results === '' || blocks === '' ? results + blocks : `${results},${blocks}`
    if (role === 'user' && marks-- > 0) content = `${content.slice(0, -1)},"cache_control":{"type":"ephemeral"}}`
    text = `{"role":"${role}","content":[${content}]}${text === '' ? '' : ','}${text}`
  }
  return text
}

/** Texts of turns that were sent before and will be sent again; they go with their turns. */
const texts = new WeakMap<Turn, string>()
const MAX_KEPT = 20_000
function encodeTurn(turn: Turn): string {
  let text = texts.get(turn)
  if (text !== undefined) return text
  text = wellFormed(
    content(turn)
      .map((block) => JSON.stringify(block))
      .join(','),
  )
  if (text.length <= MAX_KEPT) texts.set(turn, text)
  return text
}

/** Blocks of text that say nothing are refused, so there are none. */
function content(turn: Turn): readonly object[] {
  if (turn.role === 'user')
    return turn.parts.filter((part) => part.type === 'image' || part.text.trim() !== '').map(part)
  if (turn.role === 'tool')
    return [
      {
        type: 'tool_result',
        tool_use_id: idOf(turn.callId),
        ...(turn.text !== '' && { content: turn.text }),
        ...(turn.failed && { is_error: true }),
      },
    ]
  const given =
    turn.replay === undefined
      ? undefined
      : Replay.read<object>(turn.replay, turn, { thought: (piece) => piece, text: textBlock, call })
  return (given ?? [textBlock(turn.text), ...turn.calls.map(call)]).filter(
    (block) => !('text' in block) || String(block.text).trim() !== '',
  )
}
const textBlock = (text: string): object => ({ type: 'text', text })
function part(value: Part): object {
  return value.type === 'text'
    ? textBlock(value.text)
    : { type: 'image', source: { type: 'base64', media_type: value.mime, data: value.base64 } }
}
function call({ id, name, args }: ToolCall): object {
  return {
    type: 'tool_use',
    id: idOf(id),
    name,
    input: isObject(args) ? args : args === undefined || args === null ? {} : { input: args },
  }
}
/** Another provider's ids may hold what this one refuses. */
const idOf = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'

function schemaOf(input: object): object {
  return 'type' in input && input.type === 'object' ? input : { type: 'object', properties: {}, ...input }
}
/**
 * Half of a character outside the basic plane makes the whole body unreadable for the vendor, also where JSON escapes
 * it.
 */
function wellFormed(json: string): string {
  return json.includes('\\ud')
    ? json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (found) => (found === '\\\\' ? found : '\ufffd'))
    : json
}
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
