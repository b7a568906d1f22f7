/** How a family of models departs from the common fields of Converse. */
export interface Model {
  /** Which parts of a request may be marked for the prompt cache. */
  readonly cached?: 'all' | 'no-tools'
  /** `budget`: with a number of tokens; `adaptive`: the model decides; an object: the fields that switch it on. */
  readonly thinkingOn?: 'budget' | 'adaptive' | object
  /** The fields that switch thinking off; absent where it is off by default. */
  readonly thinkingOff?: object
  /** It refuses a temperature. */
  readonly noTemperature?: true
}
interface Row extends Model {
  readonly pattern: RegExp
  readonly from?: number
}

const DISABLED = { thinking: { type: 'disabled' } }
const LOW_EFFORT = { output_config: { effort: 'low' } }
// Sources: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html,
// claude-messages-adaptive-thinking.html and
// https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting. The first matching row applies.
const ROWS: readonly Row[] = [
  {
    pattern: /claude-(fable|mythos)/,
    cached: 'all',
    thinkingOn: 'adaptive',
    thinkingOff: LOW_EFFORT,
    noTemperature: true,
  },
  {
    pattern: /claude-opus/,
    from: 5.5,
    cached: 'all',
    thinkingOn: 'adaptive',
    thinkingOff: LOW_EFFORT,
    noTemperature: true,
  },
  {
    pattern: /claude-sonnet/,
    from: 5.5,
    cached: 'all',
    thinkingOn: 'adaptive',
    thinkingOff: { thinking: { type: 'between_tools' } },
    noTemperature: true,
  },
  { pattern: /claude/, from: 5, cached: 'all', thinkingOn: 'adaptive', thinkingOff: DISABLED, noTemperature: true },
  { pattern: /claude/, from: 4.7, cached: 'all', thinkingOn: 'adaptive', noTemperature: true },
  { pattern: /claude/, from: 4.6, cached: 'all', thinkingOn: 'adaptive' },
  { pattern: /claude/, from: 3.7, cached: 'all', thinkingOn: 'budget' },
  { pattern: /claude-3-5-haiku|claude-3-5-sonnet-20241022/, cached: 'all' },
  {
    pattern: /amazon\.nova-2/,
    cached: 'no-tools',
    thinkingOn: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } },
  },
  { pattern: /amazon\.nova/, cached: 'no-tools' },
  { pattern: /openai\.gpt-oss/, thinkingOn: { reasoning_effort: 'high' }, thinkingOff: { reasoning_effort: 'low' } },
]

/** The generation of a Claude, such as 4.5 for `us.anthropic.claude-sonnet-4-5-20250929-v1:0`; not its date. */
function generationOf(model: string): number {
  const [, major, minor] = /claude-(?:[a-z]+-)*?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? []
  return major === undefined ? 0 : Number(`${major}.${minor ?? 0}`)
}
/** The row of a model; empty for an ARN of an inference profile, which does not name its model. */
export function modelOf(id: string): Model {
  return ROWS.find(({ pattern, from = 0 }) => pattern.test(id) && generationOf(id) >= from) ?? {}
}
