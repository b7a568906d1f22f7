import * as v from 'valibot'
import { numberColumn } from 'svc/internal'
import { isObject } from 'svc/sdk'
import { RUN_STATES } from '../definition.ts'
import type { Workflow } from '../definition.ts'

const text = v.nullable(v.string())

/** `cancelled`: the run ended while it ran or waited. */
export const ATTEMPT_STATES = ['running', 'waiting', 'completed', 'failed', 'skipped', 'cancelled'] as const

const summary = {
  id: v.string(),
  workflow_id: v.string(),
  workflow_name: v.string(),
  input: v.string(),
  cause: v.string(),
  state: v.picklist(RUN_STATES),
  step_index: v.number(),
  output: text,
  error: text,
  steps_completed: v.number(),
  worked_ms: numberColumn,
  depth: v.number(),
  hops: v.number(),
  parent_run_id: text,
  parent_key: text,
  rerun_of: text,
  revision: v.number(),
  created_at: numberColumn,
  started_at: v.nullable(numberColumn),
  completed_at: v.nullable(numberColumn),
}
/** A run without its definition, for lists. */
export const RunListRow = v.object(summary)
export type RunListRow = v.InferOutput<typeof RunListRow>

export const RunRow = v.object({
  ...summary,
  definition: v.pipe(
    v.string(),
    v.parseJson(),
    v.custom<Workflow>((value) => isObject(value) && Array.isArray(value['steps'])),
  ),
  iteration: v.number(),
  step_input: v.string(),
  epoch: v.number(),
  asker: v.nullable(
    v.pipe(
      v.string(),
      v.parseJson(),
      v.object({ agentId: v.string(), turnId: v.optional(v.string()), sessionId: v.optional(v.string()) }),
    ),
  ),
})
export type RunRow = v.InferOutput<typeof RunRow>

export const AttemptRow = v.object({
  run_id: v.string(),
  step_index: v.number(),
  iteration: v.number(),
  attempt: v.number(),
  key: v.string(),
  step: v.string(),
  type: v.string(),
  state: v.picklist(ATTEMPT_STATES),
  input: v.string(),
  prompt: v.string(),
  output: text,
  error: text,
  agent_id: text,
  agent_name: text,
  wait_state: text,
  wake_at: v.nullable(numberColumn),
  waits_for: text,
  woken: v.number(),
  input_tokens: numberColumn,
  output_tokens: numberColumn,
  cost_usd: v.nullable(numberColumn),
  started_at: numberColumn,
  ended_at: v.nullable(numberColumn),
  revision: v.number(),
})
export type AttemptRow = v.InferOutput<typeof AttemptRow>

export const Count = v.object({ count: numberColumn })
export const VariableRow = v.object({ name: v.string(), value: v.string() })
