import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { Usage } from 'svc/providers'
import type { LineReader, ProgramEvent } from './lines.ts'

const Text = v.nullish(v.string())
const Count = v.nullish(v.number())
const Line = v.object({
  type: v.string(),
  subtype: Text,
  parent_tool_use_id: Text,
  event: v.nullish(
    v.object({
      type: v.string(),
      delta: v.nullish(v.object({ type: Text, text: Text, thinking: Text, stop_reason: Text })),
    }),
  ),
  message: v.nullish(
    v.object({
      model: Text,
      stop_reason: Text,
      content: v.nullish(v.union([v.string(), v.array(v.looseObject({ type: Text, text: Text, thinking: Text }))])),
    }),
  ),
  error: v.nullish(v.union([v.string(), v.object({ message: Text, type: Text })])),
  errors: v.nullish(v.array(v.unknown())),
  is_error: v.nullish(v.boolean()),
  api_error_status: Count,
  stop_reason: Text,
  result: Text,
  usage: v.nullish(
    v.object({
      input_tokens: Count,
      output_tokens: Count,
      cache_creation_input_tokens: Count,
      cache_read_input_tokens: Count,
    }),
  ),
})
type Line = v.InferOutput<typeof Line>

const STOPS: Readonly<Record<string, 'length' | 'refused'>> = { max_tokens: 'length', refusal: 'refused' }

/**
 * Reads the lines of Claude Code, which Qwen Code writes as well. With partial messages each text comes in pieces and
 * then once more as a whole. `cacheBesideInput`: cached tokens are not part of the input tokens.
 */
export function createClaudeReader(cacheBesideInput: boolean): LineReader {
  let isStreamed = false
  let stop: 'done' | 'length' | 'refused' = 'done'
  const setStop = (reason: string | null | undefined): void => {
    if (reason) stop = STOPS[reason] ?? 'done'
  }

  function readMessage({ message, error }: Line): readonly ProgramEvent[] {
    // Messages of the program itself come once more in the result.
    if (isStreamed || error || message?.model === '<synthetic>' || typeof message?.content === 'string') return []
    setStop(message?.stop_reason)
    return (message?.content ?? []).flatMap(({ type, text, thinking }) =>
      deltaOf(type === 'text' ? text : undefined, type === 'thinking' ? thinking : undefined),
    )
  }
  function readStreamEvent({ event }: Line): readonly ProgramEvent[] {
    if (event?.type === 'message_delta') setStop(event.delta?.stop_reason)
    const events = deltaOf(event?.delta?.text, event?.delta?.thinking)
    isStreamed ||= events.length > 0
    return events
  }
  function readResult(line: Line): ProgramEvent {
    if (line.is_error || line.subtype?.startsWith('error'))
      return {
        type: 'failed',
        message: errorText(line),
        ...(line.api_error_status != null && { status: line.api_error_status }),
      }
    setStop(line.stop_reason)
    return { type: 'done', stop, usage: readUsage(line.usage, cacheBesideInput) }
  }

  return (json) => {
    const parsed = v.safeParse(Line, json)
    // Lines of a subagent are no part of the answer.
    if (!parsed.success || parsed.output.parent_tool_use_id) return []
    const line = parsed.output
    if (line.type === 'assistant') return readMessage(line)
    if (line.type === 'result') return [readResult(line)]
    return line.type === 'stream_event' ? readStreamEvent(line) : []
  }
}

function deltaOf(text: string | null | undefined, thinking: string | null | undefined): readonly ProgramEvent[] {
  if (text) return [{ type: 'text', delta: text }]
  return thinking ? [{ type: 'thinking', delta: thinking }] : []
}

function errorText({ result, error, errors, subtype }: Line): string {
  const message = typeof error === 'string' ? error : error?.message
  const details = errors?.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('; ')
  return result || message || details || subtype || 'without a reason'
}

function readUsage(usage: Line['usage'], cacheBesideInput: boolean): Usage | undefined {
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: cachedInput } = usage ?? {}
  if (input == null || output == null) return undefined
  const cacheWrite = usage?.cache_creation_input_tokens ?? 0
  return omitUndefined({
    input: cacheBesideInput ? input + cacheWrite + (cachedInput ?? 0) : input,
    output,
    cachedInput: cachedInput ?? undefined,
    cacheWrite: cacheBesideInput && cacheWrite > 0 ? cacheWrite : undefined,
  })
}
