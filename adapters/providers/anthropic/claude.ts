/** How thinking is controlled in the models of a generation. */
export interface Thinking {
  /** `budget`: with a number of tokens; `adaptive`: the model decides; absent: it cannot think. */
  readonly on?: 'budget' | 'adaptive'
  /**
   * How thinking is switched off; absent when it is off by default. `low_effort`: it cannot be switched off, only kept
   * short.
   */
  readonly off?: 'disabled' | 'between_tools' | 'low_effort'
}

/**
 * The generation of a model, such as 4.5 for `claude-sonnet-4-5-20250929` and 3.7 for `claude-3-7-sonnet-latest`;
 * `undefined` when its id does not contain one. A date is not a generation.
 */
export function generationOf(model: string): number | undefined {
  const [, major, minor] = /claude-(?:[a-z]+-)*?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? []
  return major === undefined ? undefined : Number(`${major}.${minor ?? 0}`)
}

// Source: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, the table of
// models. The first matching row applies.
const ROWS: readonly { readonly pattern: RegExp; readonly from: number; readonly thinking: Thinking }[] = [
  { pattern: /claude-(fable|mythos)/, from: 0, thinking: { on: 'adaptive', off: 'low_effort' } },
  { pattern: /claude-opus/, from: 5.5, thinking: { on: 'adaptive', off: 'low_effort' } },
  { pattern: /claude-sonnet/, from: 5.5, thinking: { on: 'adaptive', off: 'between_tools' } },
  { pattern: /claude/, from: 5, thinking: { on: 'adaptive', off: 'disabled' } },
  { pattern: /claude/, from: 4.6, thinking: { on: 'adaptive' } },
  { pattern: /claude/, from: 3.7, thinking: { on: 'budget' } },
  { pattern: /claude/, from: 0, thinking: {} },
  // Models of other vendors that speak this format: they have the older form of thinking.
  { pattern: /^/, from: 0, thinking: { on: 'budget' } },
]
export function thinkingOf(model: string): Thinking {
  const generation = generationOf(model)
  const row = ROWS.find(({ pattern, from }) => pattern.test(model) && (generation ?? Infinity) >= from)
  return row?.thinking ?? {}
}

/** From 4.7 on a temperature is refused. A Claude without a generation in its id is taken for a new one. */
export function takesTemperature(model: string): boolean {
  return !/claude/.test(model) || (generationOf(model) ?? Infinity) < 4.7
}
/** From 4.5 on an answer can be constrained to a schema. */
export function takesSchema(model: string): boolean {
  return /claude/.test(model) && (generationOf(model) ?? Infinity) >= 4.5
}

/** The limit of an answer when the request has none: the API requires one. No higher than the model's own limit. */
export function defaultMaxTokens(model: string): number {
  const generation = generationOf(model)
  if (!/claude/.test(model)) return 8192
  if (generation === undefined || generation >= 3.7) return 32_000
  return generation >= 3.5 ? 8192 : 4096
}
