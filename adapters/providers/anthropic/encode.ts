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
import { takesSchema, takesTemperature, thinkingOf, defaultMaxTokens } from './claude.ts'
import type { Config } from './index.ts'
import { Replay } from './wire.ts'
import { isSupportedSchema } from './schema.ts'

const MARK = { cache_control: { type: 'ephemeral' } }
const MIN_BUDGET = 1024

/** The body of a message request. */
export function encode(request: CompletionRequest, config: Config): string {
  const { model, system, turns, tools, temperature, extra = {} } = request
  const isCached = config.prompt_caching
  const maxTokens = request.maxTokens ?? defaultMaxTokens(model)
  const thinking = thinkingFields(request, maxTokens, config)
  const output = {
    ...(isObject(extra['output_config']) ? extra['output_config'] : {}),
    ...thinking.output,
    ...formatField(request.responseFormat, model),
  }
  const rest = JSON.stringify({
    ...extra,
    model,
    max_tokens: maxTokens,
    stream: true,
    // Messages are appended below as text: those of earlier turns were encoded for an earlier request.
    messages: undefined,
    // What rarely changes comes first: tools, then the system prompt, each marked for the prompt cache.
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, input }, index) => ({
        name,
        description,
        input_schema: objectSchema(input),
        ...(isCached && index === tools.length - 1 && MARK),
      })),
    }),
    ...(system.trim() !== '' && { system: isCached ? [{ type: 'text', text: system, ...MARK }] : system }),
    ...(temperature !== undefined &&
      !thinking.on &&
      takesTemperature(model) && { temperature: Math.min(1, Math.max(0, temperature)) }),
    ...(thinking.field && { thinking: thinking.field }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
  })
  return `${wellFormedJson(rest).slice(0, -1)},"messages":[${messages(turns, isCached)}]}`
}

/**
 * The fields that switch thinking on or off. Thinking counts towards the limit of the answer, so with a small limit it
 * stays off.
 */
function thinkingFields(
  { model, thinking, turns }: CompletionRequest,
  maxTokens: number,
  config: Config,
): { on: boolean; field?: object; output?: object } {
  const { on, off } = thinkingOf(model)
  if (thinking === undefined) return { on: false }
  if (thinking && on === 'adaptive') return { on: true, field: { type: 'adaptive', display: 'summarized' } }
  if (thinking && on === 'budget') {
    const budget = Math.min(config.thinking_budget_tokens, Math.floor(maxTokens * 0.75))
    // With a budget, every answer of the current turn has to begin with its thinking. Where that is lost, the turn
    // goes on without thinking.
    return budget < MIN_BUDGET ||
      !turns
        .slice(turns.findLastIndex(({ role }) => role === 'user'))
        .every((turn) => turn.role !== 'assistant' || beginsWithThinking(turn))
      ? { on: false }
      : { on: true, field: { type: 'enabled', budget_tokens: budget } }
  }
  if (thinking || off === undefined) return { on: false }
  return off === 'low_effort' ? { on: false, output: { effort: 'low' } } : { on: false, field: { type: off } }
}
function beginsWithThinking(turn: Extract<Turn, { role: 'assistant' }>): boolean {
  return (
    turn.replay !== undefined &&
    Replay.read(turn.replay, turn, { thought: () => true, text: () => false, call: () => false })?.[0] === true
  )
}

function formatField(format: ResponseFormat | undefined, model: string): object {
  // The API has no format for JSON without a schema, and refuses schemas with keywords it does not support.
  return format?.type === 'json_schema' && takesSchema(model) && isSupportedSchema(format.schema)
    ? { format: { type: 'json_schema', schema: format.schema } }
    : {}
}

const turnCache = new TurnCache()

function messages(turns: readonly Turn[], isCached: boolean): string {
  const encoded = alternatingMessages(turns, (turn) => turnCache.get(turn, encodeTurn))
  return encodeMessages(encoded, (content) =>
    isCached ? `${content.slice(0, -1)},"cache_control":${JSON.stringify(MARK.cache_control)}}` : content,
  )
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
        type: 'tool_result',
        tool_use_id: callId(turn.callId),
        ...(turn.text !== '' && { content: turn.text }),
        ...(turn.failed && { is_error: true }),
      },
    ]
  const replayed =
    turn.replay === undefined
      ? undefined
      : Replay.read<object>(turn.replay, turn, { thought: (piece) => piece, text: textBlock, call })
  return (replayed ?? [textBlock(turn.text), ...turn.calls.map(call)]).filter(
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
    id: callId(id),
    name,
    input: objectArguments(args),
  }
}
/** Ids of another provider may contain characters that this one refuses. */
const callId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
