import type { Step } from '../definition.ts'
import type { StepBody } from './schema.ts'

/** Interface 8. */
const DEFAULTS = { timeoutSecs: 120, maxRetries: 3, retryDelaySecs: 1, maxIterations: 5 }

/**
 * Steps with their defaults, and with what compatible services write in other ways. A step without a name is `step`, or
 * `step-<position>` when that is taken.
 */
export function readSteps(bodies: readonly StepBody[]): readonly Step[] {
  const taken = new Set(bodies.map(({ name }) => name))
  return bodies.map((body, index) => {
    const name = body.name ?? (taken.has('step') ? `step-${index + 1}` : 'step')
    taken.add(name)
    return { ...readStep(body), name }
  })
}

function readStep(body: StepBody): Omit<Step, 'name'> {
  return {
    type: body.type ?? 'agent',
    agent: readAgent(body),
    prompt: body.prompt ?? body.prompt_template ?? '{{input}}',
    with: body.with ?? {},
    timeoutSecs: body.timeout_secs ?? DEFAULTS.timeoutSecs,
    retryDelaySecs: body.retry_delay_secs ?? DEFAULTS.retryDelaySecs,
    outputVar: body.output_var,
    ...readMode(body),
    ...readErrorMode(body),
  }
}

function readMode({ mode, ...flat }: StepBody): Pick<Step, 'mode' | 'condition' | 'maxIterations' | 'until'> {
  const conditional = typeof mode === 'object' && 'conditional' in mode ? mode.conditional : undefined
  const loop = typeof mode === 'object' && 'loop' in mode ? mode.loop : undefined
  return {
    mode: typeof mode === 'string' ? mode : conditional ? 'conditional' : loop ? 'loop' : 'sequential',
    condition: flat.condition ?? conditional?.condition ?? '',
    maxIterations: flat.max_iterations ?? loop?.max_iterations ?? DEFAULTS.maxIterations,
    until: flat.until ?? loop?.until ?? '',
  }
}

function readErrorMode({ error_mode: mode, max_retries: retries }: StepBody): Pick<Step, 'errorMode' | 'maxRetries'> {
  const retry = typeof mode === 'object' ? mode.retry : undefined
  return {
    errorMode: typeof mode === 'string' ? mode : retry ? 'retry' : 'fail',
    maxRetries: retries ?? retry?.max_retries ?? DEFAULTS.maxRetries,
  }
}

function readAgent({ agent_id, agent_name, agent }: StepBody): Step['agent'] {
  const id = agent_id ?? agent?.id
  const name = agent_name ?? agent?.name
  if (id !== undefined && id !== '') return { id }
  return name === undefined || name === '' ? undefined : { name }
}
