/** How the models of a generation think. */
export interface Thinking {
  /** `budget`: as many tokens as it is given; `adaptive`: as much as it wants; absent: not at all. */
  readonly on?: 'budget' | 'adaptive'
  /**
   * What has to be said to keep it from thinking; absent when it only thinks when asked to. `least`: it cannot be
   * kept from it, only held to little.
   */
  readonly off?: 'disabled' | 'between_tools' | 'least'
}

/**
 * The number of a model's generation, such as 4.5 for `claude-sonnet-4-5-20250929` and 3.7 for
 * `claude-3-7-sonnet-latest`; `undefined`
 * when its id does not say. A date is no generation.
 */
export function generationOf(model: string): number | undefined {
  const [, major, minor] = /claude-(?:[a-z]+-)*?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? []
  return major === undefined ? undefined : Number(`${major}.${minor ?? 0}`)
}

// Source: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, the table of models. The
// first row that fits counts.
const rows: readonly { readonly named: RegExp; readonly from: number; readonly thinking: Thinking }[] = [
  { named: /claude-(fable|mythos)/, from: 0, thinking: { on: 'adaptive', off: 'least' } },
  { named: /claude-opus/, from: 5.5, thinking: { on: 'adaptive', off: 'least' } },
  { named: /claude-sonnet/, from: 5.5, thinking: { on: 'adaptive', off: 'between_tools' } },
  { named: /claude/, from: 5, thinking: { on: 'adaptive', off: 'disabled' } },
  { named: /claude/, from: 4.6, thinking: { on: 'adaptive' } },
  { named: /claude/, from: 3.7, thinking: { on: 'budget' } },
  { named: /claude/, from: 0, thinking: {} },
  // Others speak this wire too; what they have of thinking is the older form.
  { named: /^/, from: 0, thinking: { on: 'budget' } },
]
export function thinkingOf(model: string): Thinking {
  const generation = generationOf(model)
  const row = rows.find(({ named, from }) => named.test(model) && (generation ?? Infinity) >= from)
  return row?.thinking ?? {}
}

/** From 4.7 on a temperature is refused. A Claude whose id tells no generation is taken for a new one. */
export function takesTemperature(model: string): boolean {
  return !/claude/.test(model) || (generationOf(model) ?? Infinity) < 4.7
}
/** From 4.5 on an answer can be held to a schema. */
export function takesSchema(model: string): boolean {
  return /claude/.test(model) && (generationOf(model) ?? Infinity) >= 4.5
}

/**
 * Limit of an answer when nobody names one; the API demands one. Below every model's own limit, which is 4,096 for
 * the oldest.
 */
export function usualMaxTokens(model: string): number {
  const generation = generationOf(model)
  if (!/claude/.test(model)) return 8192
  if (generation === undefined || generation >= 3.7) return 32_000
  return generation >= 3.5 ? 8192 : 4096
}
