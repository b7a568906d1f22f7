import { hash } from 'node:crypto'
import * as v from 'valibot'
import type { JobState } from '../contract.ts'
import type { StoredJob } from '../schema.ts'

/**
 * In `data` of a row. `settled`: claims that were ended properly; every other one was lost. Negative in a job of the
 * other driver that was lost before. `losses`: those that were counted already.
 */
const Data = v.object({
  id: v.string(),
  payload: v.string(),
  group: v.optional(v.string()),
  agent: v.optional(v.string()),
  origin: v.optional(v.string()),
  created: v.number(),
  failures: v.number(),
  settled: v.number(),
  losses: v.number(),
})
export type Data = v.InferOutput<typeof Data>

/** A job as `fetch` of pg-boss gives it. */
export const Fetched = v.object({
  name: v.string(),
  data: Data,
  retryCount: v.number(),
  heartbeatSeconds: v.nullish(v.number()),
})

const ROW_STATES = ['created', 'retry', 'active', 'completed', 'failed', 'cancelled'] as const
const STATES: Readonly<Record<(typeof ROW_STATES)[number], JobState>> = {
  created: 'pending',
  retry: 'pending',
  active: 'running',
  completed: 'done',
  failed: 'dead',
  cancelled: 'cancelled',
}
/** `output.value` is what pg-boss writes when the heartbeats of a job are missing. */
const Output = v.object({ error: v.optional(v.string()), value: v.optional(v.unknown()) })
export const Row = v.object({
  name: v.string(),
  data: Data,
  state: v.picklist(ROW_STATES),
  retry_count: v.number(),
  start_after: v.date(),
  started_on: v.nullable(v.date()),
  completed_on: v.nullable(v.date()),
  output: v.nullable(Output),
})
type Row = v.InferOutput<typeof Row>

/** What JSON in PostgreSQL refuses: a zero character, half of a surrogate pair. */
export const clean = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')
/** The id of a row, which pg-boss wants to be a UUID. */
export const rowId = (id: string): string => hash('sha256', clean(id)).slice(0, 32)
/** pg-boss counts the claims of a job, so the number of a claim is its own. */
export const attemptOf = ({ claim_id: claim }: StoredJob): number => Number(claim)
/** The states of rows that mean a state. */
export const rowStates = (state: JobState): readonly string[] => ROW_STATES.filter((each) => STATES[each] === state)

export function toStored(row: Row): StoredJob {
  const { data } = row
  const state = STATES[row.state]
  const claims = row.started_on === null ? 0 : row.retry_count + 1
  return {
    ...common(data),
    lane: row.name,
    state,
    losses: claims - data.settled - (state === 'running' ? 1 : 0),
    due_at: row.start_after.getTime(),
    claim_id: state === 'running' ? String(row.retry_count) : null,
    settled_at: row.completed_on?.getTime() ?? null,
    error: row.output?.error ?? (row.output?.value === undefined ? null : 'the daemon that worked on it stopped'),
  }
}

/** What `fetch` of pg-boss gave. */
export interface Claimed {
  readonly job: StoredJob
  /** Whether the claim before it was lost. */
  readonly wasLost: boolean
  /** Seconds without a heartbeat after which this claim is lost: a lease of whoever added the job. */
  readonly heartbeatSecs: number | undefined
}
export function toClaimed({ name, data, retryCount, heartbeatSeconds }: v.InferOutput<typeof Fetched>): Claimed {
  const losses = retryCount - data.settled
  const job: StoredJob = {
    ...common(data),
    lane: name,
    state: 'running',
    losses,
    due_at: data.created,
    claim_id: String(retryCount),
    settled_at: null,
    error: null,
  }
  return { job, wasLost: losses > data.losses, heartbeatSecs: heartbeatSeconds ?? undefined }
}

const common = ({ id, payload, group, agent, origin, created, failures }: Data) => ({
  id,
  payload,
  group_key: group ?? null,
  agent_id: agent ?? null,
  origin: origin ?? null,
  created_at: created,
  failures,
})
