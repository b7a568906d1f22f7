import * as v from 'valibot'
import type { LineReader } from './lines.ts'

const Text = v.nullish(v.string())
const Count = v.nullish(v.number())
const Line = v.object({
  type: v.string(),
  role: Text,
  content: Text,
  status: Text,
  severity: Text,
  message: Text,
  error: v.nullish(v.object({ message: Text })),
  stats: v.nullish(v.object({ input_tokens: Count, output_tokens: Count, cached: Count })),
})

/** Reads a line of `gemini --output-format stream-json`. */
export const readGeminiLine: LineReader = (json) => {
  const read = v.safeParse(Line, json)
  if (!read.success) return []
  const { type, role, content, status, severity, message, error, stats } = read.output
  if (type === 'message') return role === 'assistant' && content ? [{ type: 'text', delta: content }] : []
  if (type === 'error')
    return severity === 'warning' ? [] : [{ type: 'warning', message: message ?? 'without a reason' }]
  if (type !== 'result') return []
  if (status === 'error') return [{ type: 'failed', message: error?.message ?? 'without a reason' }]
  const { input_tokens: input, output_tokens: output, cached: cachedInput } = stats ?? {}
  return [
    {
      type: 'done',
      stop: 'done',
      usage:
        input == null || output == null ? undefined : { input, output, ...(cachedInput != null && { cachedInput }) },
    },
  ]
}
