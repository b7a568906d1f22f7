import * as v from 'valibot'
import type { Usage } from 'svc/providers'
import type { LineReader, Said } from './lines.ts'

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

/**
 * The lines of Claude Code, which Qwen Code writes as well. With partial messages each text comes in pieces and then
 * once more as a whole.
 */
export function claudeLines(cachedApart: boolean): LineReader {
  let streamed = false
  let stop: 'done' | 'length' | 'refused' = 'done'
  const stopped = (reason: string | null | undefined): void => {
    if (reason) stop = reason === 'max_tokens' ? 'length' : reason === 'refusal' ? 'refused' : 'done'
  }

  function whole({ message, error }: Line): readonly Said[] {
    // What the program itself says in the model's place is told again in the result.
    if (streamed || error || message?.model === '<synthetic>' || typeof message?.content === 'string') return []
    stopped(message?.stop_reason)
    return (message?.content ?? []).flatMap(({ type, text, thinking }): Said[] =>
      type === 'text' && text
        ? [{ type: 'text', delta: text }]
        : type === 'thinking' && thinking
          ? [{ type: 'thinking', delta: thinking }]
          : [],
    )
  }
  return (json) => {
    const read = v.safeParse(Line, json)
    // Lines of an agent below the one that answers are no part of the answer.
    if (!read.success || read.output.parent_tool_use_id) return []
    const line = read.output
    if (line.type === 'assistant') return whole(line)
    if (line.type === 'result') return [resultOf(line)]
    if (line.type !== 'stream_event') return []
    const { delta } = line.event ?? {}
    if (line.event?.type === 'message_delta') stopped(delta?.stop_reason)
    const said: Said | undefined = delta?.text
      ? { type: 'text', delta: delta.text }
      : delta?.thinking
        ? { type: 'thinking', delta: delta.thinking }
        : undefined
    if (!said) return []
    streamed = true
    return [said]
  }

  function resultOf({
    is_error,
    subtype,
    api_error_status: status,
    result,
    error,
    errors,
    usage,
    stop_reason,
  }: Line): Said {
    if (is_error || subtype?.startsWith('error')) {
      const told =
        result ||
        (typeof error === 'string' ? error : error?.message) ||
        errors?.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('; ') ||
        subtype
      return { type: 'failed', message: told ?? 'without a reason', ...(status != null && { status }) }
    }
    stopped(stop_reason)
    const {
      input_tokens: plain,
      output_tokens: output,
      cache_creation_input_tokens: written,
      cache_read_input_tokens: cached,
    } = usage ?? {}
    if (plain == null || output == null) return { type: 'done', stop, usage: undefined }
    const counted: Usage = {
      input: cachedApart ? plain + (written ?? 0) + (cached ?? 0) : plain,
      output,
      ...(cached != null && { cachedInput: cached }),
      ...(cachedApart && written ? { cacheWrite: written } : {}),
    }
    return { type: 'done', stop, usage: counted }
  }
}
