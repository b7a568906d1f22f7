import { stableId } from 'svc/internal'
import type { Step } from '../definition.ts'
import { labelOf } from './position.ts'
import type { AttemptRow } from './schema.ts'

/** One step of those that run now. */
export interface Member {
  readonly step: Step
  readonly index: number
  readonly iteration: number
  readonly input: string
}
/** Its key is the same whenever this attempt is made again. */
export function newAttempt(
  runId: string,
  { step, index, iteration, input }: Member,
  attempt: number,
  now: number,
): AttemptRow {
  return {
    run_id: runId,
    step_index: index,
    iteration,
    attempt,
    key: stableId('workflow-step', runId, String(index), String(iteration), String(attempt)),
    step: labelOf(step, iteration),
    type: step.type,
    state: 'running',
    input,
    prompt: '',
    output: null,
    error: null,
    agent_id: null,
    agent_name: null,
    wait_state: null,
    wake_at: null,
    waits_for: null,
    woken: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    started_at: now,
    ended_at: null,
    revision: 0,
  }
}
