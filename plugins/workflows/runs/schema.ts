import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import { RUN_STATES } from '../definition.ts'
import type { Workflow } from '../definition.ts'

/** 64-bit columns come as text from PostgreSQL. */
const count = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
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
  worked_ms: count,
  depth: v.number(),
  hops: v.number(),
  parent_run_id: text,
  parent_key: text,
  rerun_of: text,
  revision: v.number(),
  created_at: count,
  started_at: v.nullable(count),
  completed_at: v.nullable(count),
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
  wake_at: v.nullable(count),
  waits_for: text,
  woken: v.number(),
  input_tokens: count,
  output_tokens: count,
  cost_usd: v.nullable(count),
  started_at: count,
  ended_at: v.nullable(count),
  revision: v.number(),
})
export type AttemptRow = v.InferOutput<typeof AttemptRow>

export const Count = v.object({ count })
export const VariableRow = v.object({ name: v.string(), value: v.string() })
