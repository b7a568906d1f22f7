import * as v from 'valibot'
import { toIso } from 'svc/internal'
import { RUN_STATES } from '../definition.ts'
import { StepView as DefinedStep } from '../definitions/schema.ts'
import { toStepView as toDefinedStep } from '../definitions/view.ts'
import { ATTEMPT_STATES } from './schema.ts'
import type { AttemptRow, RunListRow, RunRow } from './schema.ts'

const count = v.number()
const text = v.nullable(v.string())
const run = {
  id: v.string(),
  workflow_id: v.string(),
  workflow_name: v.string(),
  state: v.picklist(RUN_STATES),
  steps_completed: count,
  started_at: v.pipe(text, v.description('`null` until it begins.')),
  completed_at: text,
  created_at: v.string(),
  cause: v.pipe(v.string(), v.description('Who asked: `api`, `schedule <id>`, `agent <id>` and the like.')),
  error: text,
  parent_run_id: text,
  rerun_of: text,
}
export const RunItem = v.object(run)

export const StepView = v.object({
  step_name: v.pipe(v.string(), v.description('With ` (iter N)` in a loop.')),
  index: v.pipe(count, v.description('Of the step in the definition, from 0.')),
  type: v.string(),
  state: v.picklist(ATTEMPT_STATES),
  attempt: count,
  key: v.pipe(v.string(), v.description('The idempotency key of its effects; of an agent also the id of its turn.')),
  agent_id: text,
  agent_name: text,
  input: v.string(),
  prompt: v.string(),
  output: text,
  error: text,
  input_tokens: count,
  output_tokens: count,
  cost_usd: v.nullable(count),
  started_at: v.string(),
  completed_at: text,
  duration_ms: v.nullable(count),
  waits_until: text,
})
export const RunView = v.object({
  ...run,
  input: v.string(),
  output: text,
  steps: v.pipe(v.array(DefinedStep), v.description('Of the definition as it was when the run was asked for.')),
  step_results: v.array(StepView),
  input_tokens: count,
  output_tokens: count,
  cost_usd: v.pipe(v.nullable(count), v.description('`null` when the price of a step is not known.')),
  worked_ms: v.pipe(count, v.description('Without the time that it waited.')),
})
export const RunEvent = v.union([
  v.object({ type: v.literal('run'), run: RunItem }),
  v.object({ type: v.literal('step'), run_id: v.string(), step: StepView }),
])
export type RunEvent = v.InferOutput<typeof RunEvent>

const isoOf = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

export function toItem(row: RunListRow): v.InferOutput<typeof RunItem> {
  return {
    id: row.id,
    workflow_id: row.workflow_id,
    workflow_name: row.workflow_name,
    state: row.state,
    steps_completed: row.steps_completed,
    started_at: isoOf(row.started_at),
    completed_at: isoOf(row.completed_at),
    created_at: toIso(row.created_at),
    cause: row.cause,
    error: row.error,
    parent_run_id: row.parent_run_id,
    rerun_of: row.rerun_of,
  }
}
export function toStepView(row: AttemptRow): v.InferOutput<typeof StepView> {
  return {
    step_name: row.step,
    index: row.step_index,
    type: row.type,
    state: row.state,
    attempt: row.attempt,
    key: row.key,
    agent_id: row.agent_id,
    agent_name: row.agent_name,
    input: row.input,
    prompt: row.prompt,
    output: row.output,
    error: row.error,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: row.cost_usd,
    started_at: toIso(row.started_at),
    completed_at: isoOf(row.ended_at),
    duration_ms: row.ended_at === null ? null : row.ended_at - row.started_at,
    waits_until: row.state === 'waiting' ? isoOf(row.wake_at) : null,
  }
}
export function toView(row: RunRow, attempts: readonly AttemptRow[]): v.InferOutput<typeof RunView> {
  const sum = (read: (attempt: AttemptRow) => number): number =>
    attempts.reduce((total, attempt) => total + read(attempt), 0)
  const isPriced = attempts.every(({ cost_usd: cost }) => cost !== null)
  return {
    ...toItem(row),
    input: row.input,
    output: row.output,
    steps: row.definition.steps.map(toDefinedStep),
    step_results: attempts.map(toStepView),
    input_tokens: sum((attempt) => attempt.input_tokens),
    output_tokens: sum((attempt) => attempt.output_tokens),
    cost_usd: isPriced ? sum((attempt) => attempt.cost_usd ?? 0) : null,
    worked_ms: row.worked_ms,
  }
}
