import * as v from 'valibot'
import type { LineReader, ProgramEvent } from './lines.ts'

const Text = v.nullish(v.string())
const Count = v.nullish(v.number())
const Line = v.object({
  type: v.string(),
  item: v.nullish(v.looseObject({ type: Text, text: Text })),
  usage: v.nullish(
    v.object({ input_tokens: Count, cached_input_tokens: Count, output_tokens: Count, reasoning_output_tokens: Count }),
  ),
  error: v.nullish(v.object({ message: Text })),
  message: Text,
})

/** Reads the lines of `codex exec --json`: each text comes as a whole. */
export function createCodexReader(): LineReader {
  let texts = 0
  return (json) => {
    const read = v.safeParse(Line, json)
    if (!read.success) return []
    const { type, item, usage, error, message } = read.output
    if (type === 'item.completed' && item?.text) {
      if (item.type === 'reasoning') return [{ type: 'thinking', delta: item.text }]
      return item.type === 'agent_message'
        ? [{ type: 'text', delta: texts++ === 0 ? item.text : `\n\n${item.text}` }]
        : []
    }
    if (type === 'turn.failed') return [{ type: 'failed', message: error?.message ?? 'without a reason' }]
    // Also sent when a connection is retried.
    if (type === 'error') return [{ type: 'warning', message: message ?? 'without a reason' }]
    if (type !== 'turn.completed') return []
    const {
      input_tokens: input,
      output_tokens: output,
      cached_input_tokens: cachedInput,
      reasoning_output_tokens: thinking,
    } = usage ?? {}
    const done: ProgramEvent = {
      type: 'done',
      stop: 'done',
      usage:
        input == null || output == null
          ? undefined
          : { input, output, ...(cachedInput != null && { cachedInput }), ...(thinking != null && { thinking }) },
    }
    return [done]
  }
}
