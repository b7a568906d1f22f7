import * as v from 'valibot'

/** What the events of a streamed answer hold. */
export const Chunk = v.looseObject({ content: v.string() })
export const ToolUse = v.looseObject({ tool: v.string() })
export const ToolResult = v.looseObject({
  tool: v.string(),
  input: v.optional(v.unknown()),
  is_error: v.optional(v.boolean(), false),
})
export const Done = v.looseObject({
  stop: v.optional(v.string()),
  usage: v.optional(v.looseObject({ input_tokens: v.number(), output_tokens: v.number() })),
  cost_usd: v.nullish(v.number()),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
})
export const Problem = v.looseObject({
  content: v.optional(v.string()),
  message: v.optional(v.string()),
  error: v.optional(v.union([v.string(), v.looseObject({ message: v.string() })])),
})
export const Phase = v.looseObject({
  phase: v.string(),
  detail: v.nullish(v.string()),
  retry_at: v.nullish(v.string()),
  attempt: v.nullish(v.number()),
})

/** What the answer waits for, in words. `isUnusual`: it does not happen with every answer. */
export function describePhase(phase: v.InferOutput<typeof Phase>): {
  readonly text: string
  readonly isUnusual: boolean
} {
  const { phase: name, detail, retry_at: at, attempt } = phase
  const why = detail ? `: ${detail}` : ''
  const when = at ? ` at ${at.slice(11, 19)} UTC` : ''
  switch (name) {
    case 'waiting_for_model':
      return { text: `waiting for the model${detail ? ` (${detail})` : ''}`, isUnusual: false }
    case 'streaming':
      return { text: 'answering', isUnusual: false }
    case 'retrying':
      return { text: `trying again${when}${attempt ? `, attempt ${attempt}` : ''}${why}`, isUnusual: true }
    case 'circuit_open':
      return { text: `the provider is left alone for now, trying again${when}${why}`, isUnusual: true }
    default:
      return { text: `${name.replaceAll('_', ' ')}${why}`, isUnusual: false }
  }
}
