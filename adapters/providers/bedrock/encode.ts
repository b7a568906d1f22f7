import { isObject } from 'svc/sdk'
import {
  alternatingMessages,
  encodeMessages,
  objectArguments,
  objectSchema,
  TurnCache,
  wellFormedJson,
} from 'svc/providers'
import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import type { Config } from './index.ts'
import { modelOf } from './models.ts'
import type { Model } from './models.ts'
import { Replay } from './wire.ts'

const CACHE_POINT = { cachePoint: { type: 'default' } }
const MIN_BUDGET = 1024
/** The limit of an answer that a thinking budget needs, when the request has none. */
const DEFAULT_MAX_TOKENS = 32_000

/** The body of a ConverseStream request. */
export function encode(request: CompletionRequest, config: Config): string {
  const { system, turns, temperature, extra = {} } = request
  const model = modelOf(request.model)
  const cached = config.prompt_caching ? model.cached : undefined
  const { on, budget, fields } = thinkingFields(request, model, config)
  const maxTokens = request.maxTokens ?? (budget === undefined ? undefined : DEFAULT_MAX_TOKENS)
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
    ...(system.trim() !== '' && { system: [{ text: system }, ...(cached ? [CACHE_POINT] : [])] }),
    ...(tools.length > 0 && { toolConfig: { tools: [...tools, ...(cached === 'all' ? [CACHE_POINT] : [])] } }),
    ...(Object.keys(inference).length > 0 && { inferenceConfig: inference }),
    ...(Object.keys(additional).length > 0 && { additionalModelRequestFields: additional }),
    ...(config.guardrail && {
      guardrailConfig: { guardrailIdentifier: config.guardrail.id, guardrailVersion: config.guardrail.version },
    }),
    ...formatField(request.responseFormat),
  })
  const separator = rest === '{}' ? '' : ','
  return `${wellFormedJson(rest).slice(0, -1)}${separator}"messages":[${messages(turns, cached !== undefined)}]}`
}

function thinkingFields(
  { thinking, maxTokens = DEFAULT_MAX_TOKENS, turns }: CompletionRequest,
  model: Model,
  config: Config,
): { on: boolean; budget?: number; fields: object } {
  if (thinking === undefined || model.thinkingOn === undefined) return { on: false, fields: {} }
  if (!thinking) return { on: false, fields: model.thinkingOff ?? {} }
  if (model.thinkingOn === 'adaptive')
    return { on: true, fields: { thinking: { type: 'adaptive', display: 'summarized' } } }
  if (model.thinkingOn !== 'budget') return { on: false, fields: model.thinkingOn }
  const budget = Math.min(config.thinking_budget_tokens, Math.floor(maxTokens * 0.75))
  // With a budget, every answer of the current turn has to begin with its thinking. Where that is lost, the turn goes
  // on without thinking.
  const currentTurn = turns.slice(turns.findLastIndex(({ role }) => role === 'user'))
  const hasThinking = currentTurn.every(
    (turn) => turn.role !== 'assistant' || 'reasoningContent' in (contentBlocks(turn)[0] ?? {}),
  )
  return budget < MIN_BUDGET || !hasThinking
    ? { on: false, fields: {} }
    : { on: true, budget, fields: { thinking: { type: 'enabled', budget_tokens: budget } } }
}

/** A request that contains calls has to declare tools, also when none is offered any more. */
function toolsOf({ tools, turns }: CompletionRequest): readonly object[] {
  if (tools.length > 0)
    return tools.map(({ name, description, input }) => ({
      toolSpec: {
        name,
        ...(description.trim() !== '' && { description }),
        inputSchema: { json: objectSchema(input) },
      },
    }))
  const called = new Set(turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map(({ name }) => name) : [])))
  return [...called].map((name) => ({
    toolSpec: { name, description: 'Not offered any more.', inputSchema: { json: { type: 'object' } } },
  }))
}

// Decision: a schema is only sent when it is strict, because models that cannot be constrained to one answer 400.
function formatField(format: ResponseFormat | undefined): object {
  if (format?.type !== 'json_schema' || format.strict !== true) return {}
  return {
    outputConfig: {
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: format.name, schema: JSON.stringify(format.schema) } },
      },
    },
  }
}

const turnCache = new TurnCache()

function messages(turns: readonly Turn[], isCached: boolean): string {
  const encoded = alternatingMessages(turns, (turn) => turnCache.get(turn, encodeTurn))
  return encodeMessages(encoded, (content) => (isCached ? `${content},${JSON.stringify(CACHE_POINT)}` : content))
}
function encodeTurn(turn: Turn): string {
  return wellFormedJson(
    contentBlocks(turn)
      .map((block) => JSON.stringify(block))
      .join(','),
  )
}

/** The vendor refuses blank text blocks, so they are left out. */
function contentBlocks(turn: Turn): readonly object[] {
  if (turn.role === 'user')
    return turn.parts.filter((part) => part.type === 'image' || part.text.trim() !== '').map(part)
  if (turn.role === 'tool')
    return [
      {
        toolResult: {
          toolUseId: callId(turn.callId),
          content: [{ text: turn.text.trim() === '' ? '(no output)' : turn.text }],
          ...(turn.failed && { status: 'error' }),
        },
      },
    ]
  const replayed =
    turn.replay === undefined
      ? undefined
      : Replay.read<object>(turn.replay, turn, {
          thought: (piece) => ({ reasoningContent: piece }),
          text: (text) => ({ text }),
          call,
        })
  return (replayed ?? [{ text: turn.text }, ...turn.calls.map(call)]).filter(
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
      toolUseId: callId(id),
      name,
      input: objectArguments(args),
    },
  }
}
/** Ids of another provider may contain characters that this one refuses. */
const callId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(-64) || 'call'
