/** How a family of models is asked for what Converse has no common field for. */
export interface Model {
  /** Which parts of a request may be marked for the prompt cache. */
  readonly cached?: 'all' | 'no-tools'
  /** `budget`: as many tokens as it is given; `adaptive`: as much as it wants. Otherwise the fields that ask for it. */
  readonly think?: 'budget' | 'adaptive' | object
  /** The fields that keep it from thinking; absent where it only thinks when asked to. */
  readonly rest?: object
  /** It refuses a temperature. */
  readonly noTemperature?: true
}
interface Row extends Model {
  readonly named: RegExp
  readonly from?: number
}

const nothing = { thinking: { type: 'disabled' } }
const least = { output_config: { effort: 'low' } }
// Sources: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html,
// claude-messages-adaptive-thinking.html and
// https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting. The first row that fits counts.
const rows: readonly Row[] = [
  { named: /claude-(fable|mythos)/, cached: 'all', think: 'adaptive', rest: least, noTemperature: true },
  { named: /claude-opus/, from: 5.5, cached: 'all', think: 'adaptive', rest: least, noTemperature: true },
  {
    named: /claude-sonnet/,
    from: 5.5,
    cached: 'all',
    think: 'adaptive',
    rest: { thinking: { type: 'between_tools' } },
    noTemperature: true,
  },
  { named: /claude/, from: 5, cached: 'all', think: 'adaptive', rest: nothing, noTemperature: true },
  { named: /claude/, from: 4.7, cached: 'all', think: 'adaptive', noTemperature: true },
  { named: /claude/, from: 4.6, cached: 'all', think: 'adaptive' },
  { named: /claude/, from: 3.7, cached: 'all', think: 'budget' },
  { named: /claude-3-5-haiku|claude-3-5-sonnet-20241022/, cached: 'all' },
  {
    named: /amazon\.nova-2/,
    cached: 'no-tools',
    think: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } },
  },
  { named: /amazon\.nova/, cached: 'no-tools' },
  { named: /openai\.gpt-oss/, think: { reasoning_effort: 'high' }, rest: { reasoning_effort: 'low' } },
]

/** The generation of a Claude, such as 4.5 for `us.anthropic.claude-sonnet-4-5-20250929-v1:0`; a date is none. */
function generationOf(model: string): number {
  const [, major, minor] = /claude-(?:[a-z]+-)*?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? []
  return major === undefined ? 0 : Number(`${major}.${minor ?? 0}`)
}
/** What is known of a model; an ARN of an inference profile that does not name its model is taken as it comes. */
export function modelOf(id: string): Model {
  return rows.find(({ named, from = 0 }) => named.test(id) && generationOf(id) >= from) ?? {}
}
