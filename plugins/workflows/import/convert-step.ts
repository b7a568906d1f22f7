import { isObject, omitUndefined, Refusal } from 'svc/sdk'

type Fields = Readonly<Record<string, unknown>>

/** Have no counterpart here and change little. */
const IGNORED: ReadonlySet<string> = new Set(['depends_on', 'layout', 'id'])
const KNOWN: ReadonlySet<string> = new Set([
  'name',
  'type',
  'agent',
  'agent_id',
  'agent_name',
  'prompt',
  'prompt_template',
  'with',
  'mode',
  'timeout_secs',
  'error_mode',
  'max_retries',
  'retry_delay_secs',
  'output_var',
  'condition',
  'max_iterations',
  'until',
])

/** A step in the form of `StepBody`. Throws `invalid_request` for a mode that has no counterpart. */
export function convertStep(step: Fields, warnings: string[]): Fields {
  const name = typeof step.name === 'string' ? step.name : 'step'
  const converted: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(step)) {
    if (KNOWN.has(key)) converted[key] = value
    else if (!IGNORED.has(key)) warnings.push(`step "${name}": ${key} is left out`)
  }
  return { ...converted, ...convertErrorMode(step, name, warnings), ...convertMode(step, name) }
}

function convertErrorMode({ error_mode: mode }: Fields, name: string, warnings: string[]): Fields {
  if (typeof mode === 'string') return { error_mode: mode.toLowerCase() }
  if (!isObject(mode) || !isObject(mode.retry)) return {}
  const { max_retries: retries, backoff_ms: backoff, ...others } = mode.retry
  for (const key of Object.keys(others)) warnings.push(`step "${name}": error_mode.retry.${key} is left out`)
  return omitUndefined({
    error_mode: 'retry',
    max_retries: retries,
    retry_delay_secs: typeof backoff === 'number' ? Math.ceil(backoff / 1000) : undefined,
  })
}

function convertMode({ mode }: Fields, name: string): Fields {
  if (typeof mode === 'string') return { mode: mode.toLowerCase() }
  if (!isObject(mode)) return {}
  const [[kind, value] = ['', undefined]] = Object.entries(mode)
  const settings = isObject(value) ? value : {}
  if (kind === 'wait') return { mode: 'sequential', type: 'wait', with: { seconds: settings.duration_secs } }
  if (kind === 'approval') {
    const timeout = omitUndefined({ timeout_secs: settings.timeout_secs })
    return { mode: 'sequential', type: 'approval', with: timeout }
  }
  if (kind !== 'conditional' && kind !== 'loop')
    throw new Refusal(
      'invalid_request',
      `step "${name}": mode: "${kind}" has no counterpart; write it as a step with a condition`,
    )
  return {}
}
