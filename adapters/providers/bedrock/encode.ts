import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import type { Config } from './index.ts'
import { modelOf } from './models.ts'
import type { Model } from './models.ts'
import { Replay } from './wire.ts'

const POINT = { cachePoint: { type: 'default' } }
const MIN_BUDGET = 1024
/** When a budget for thinking needs a limit and nobody names one. */
const USUAL_TOKENS = 32_000

/** The body of a request for an answer. */
export function encode(request: CompletionRequest, config: Config): string {
  const { system, turns, temperature, extra = {} } = request
  const model = modelOf(request.model)
  const cached = config.prompt_caching ? model.cached : undefined
  const { on, budget, fields } = think(request, model, config)
  const maxTokens = request.maxTokens ?? (budget === undefined ? undefined : USUAL_TOKENS)
  const inference = {
    ...(isObject(extra['inferenceConfig']) ? extra['inferenceConfig'] : {}),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined &&
      !on &&
      !model.noTemperature && { temperature: Math.min(1, Math.max(0, temperature)) }),
  }
  const additional = {
    ...(isObject(extra['additionalModelRequestFields']) ? extra['additionalModelRequestFields'] : {}),
    ...fields,
  }
  const tools = toolsOf(request)
  const rest = JSON.stringify({
    ...extra,
    messages: undefined,
    ...(system.trim() !== '' && { system: [{ text: system }, ...(cached ? [POINT] : [])] }),
    ...(tools.length > 0 && { toolConfig: { tools: [...tools, ...(cached === 'all' ? [POINT] : [])] } }),
    ...(Object.keys(inference).length > 0 && { inferenceConfig: inference }),
    ...(Object.keys(additional).length > 0 && { additionalModelRequestFields: additional }),
    ...(config.guardrail && {
      guardrailConfig: { guardrailIdentifier: config.guardrail.id, guardrailVersion: config.guardrail.version },
    }),
    ...form(request.responseFormat),
  })
  return `${wellFormed(rest).slice(0, -1)}${rest === '{}' ? '' : ','}"messages":[${messages(turns, cached !== undefined)}]}`
}

function think(
  { thinking, maxTokens = USUAL_TOKENS, turns }: CompletionRequest,
  model: Model,
  config: Config,
): { on: boolean; budget?: number; fields: object } {
  if (thinking === undefined || model.think === undefined) return { on: false, fields: {} }
  if (!thinking) return { on: false, fields: model.rest ?? {} }
  if (model.think === 'adaptive') return { on: true, fields: { thinking: { type: 'adaptive', display: 'summarized' } } }
  if (model.think !== 'budget') return { on: false, fields: model.think }
  const budget = Math.min(config.thinking_budget_tokens, Math.floor(maxTokens * 0.75))
  // With a budget every answer of the running turn has to begin with its thinking; where it is lost the turn ends
  // without.
  const running = turns.slice(turns.findLastIndex(({ role }) => role === 'user'))
  const thought = running.every((turn) => turn.role !== 'assistant' || 'reasoningContent' in (content(turn)[0] ?? {}))
  return budget < MIN_BUDGET || !thought
    ? { on: false, fields: {} }
    : { on: true, budget, fields: { thinking: { type: 'enabled', budget_tokens: budget } } }
}

/** A request that speaks of calls has to name tools, also when none is offered any more. */
function toolsOf({ tools, turns }: CompletionRequest): readonly object[] {
  if (tools.length > 0)
    return tools.map(({ name, description, input }) => ({
      toolSpec: {
        name,
        ...(description.trim() !== '' && { description }),
        inputSchema: { json: 'type' in input ? input : { type: 'object', ...input } },
      },
    }))
  const called = new Set(turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map(({ name }) => name) : [])))
  return [...called].map((name) => ({
    toolSpec: { name, description: 'Not offered any more.', inputSchema: { json: { type: 'object' } } },
  }))
}

// Decision: a schema is sent as it is; a model that cannot be held to one answers 400, so it is sent only when it is
// said to be strict.
function form(wanted: ResponseFormat | undefined): object {
  if (wanted?.type !== 'json_schema' || wanted.strict !== true) return {}
  return {
    outputConfig: {
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: wanted.name, schema: JSON.stringify(wanted.schema) } },
      },
    },
  }
}

/**
 * Roles take turns: results and what the user says after them are one message, results first. The last two messages
 * of the user end with a cache point.
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
    const content = results === '' || blocks === '' ? results + blocks : `${results},${blocks}`
    const point = role === 'user' && marks-- > 0 ? `,${JSON.stringify(POINT)}` : ''
    text = `{"role":"${role}","content":[${content}${point}]}${text === '' ? '' : ','}${text}`
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
        toolResult: {
          toolUseId: idOf(turn.callId),
          content: [{ text: turn.text.trim() === '' ? '(no output)' : turn.text }],
          ...(turn.failed && { status: 'error' }),
        },
      },
    ]
  const given =
    turn.replay === undefined
      ? undefined
      : Replay.read<object>(turn.replay, turn, {
          thought: (piece) => ({ reasoningContent: piece }),
          text: (text) => ({ text }),
          call,
        })
  return (given ?? [{ text: turn.text }, ...turn.calls.map(call)]).filter(
    (block) => !('text' in block) || String(block.text).trim() !== '',
  )
}
function part(value: Part): object {
  return value.type === 'text'
    ? { text: value.text }
    : {
        image: {
          format: value.mime.replace(/^image\/(jpg$)?/, (_, jpg) => (jpg ? 'jpeg' : '')),
          source: { bytes: value.base64 },
        },
      }
}
function call({ id, name, args }: ToolCall): object {
  return {
    toolUse: {
      toolUseId: idOf(id),
      name,
      input: isObject(args) ? args : args === undefined || args === null ? {} : { input: args },
    },
  }
}
/** Another provider's ids may hold what this one refuses. */
const idOf = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(-64) || 'call'

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
