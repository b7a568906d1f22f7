import * as v from 'valibot'
import { numberColumn } from 'svc/internal'
import type { OwnedCount } from '../cluster/contract.ts'
import { STATES } from './states.ts'

const text = v.nullable(v.string())
export const StoredJob = v.object({
  lane: v.string(),
  id: v.string(),
  payload: v.string(),
  state: v.picklist(STATES),
  group_key: text,
  agent_id: text,
  failures: v.number(),
  losses: v.number(),
  created_at: numberColumn,
  due_at: numberColumn,
  /** Of one that runs: another one when somebody else has it. */
  claim_id: text,
  settled_at: v.nullable(numberColumn),
  error: text,
  origin: text,
})
export type StoredJob = v.InferOutput<typeof StoredJob>

export const Count = v.object({ count: numberColumn })
const sum = v.pipe(
  v.nullable(numberColumn),
  v.transform((value) => value ?? 0),
)
/** Jobs of a lane that ended in the last minute and hour. */
export const Throughput = v.object({
  done_minute: sum,
  done_hour: sum,
  failed_minute: sum,
  failed_hour: sum,
})
export type Throughput = v.InferOutput<typeof Throughput>
export const NextDue = v.object({ due_at: v.nullable(numberColumn) })
/** `oldest_ms`: since when the job that is due first is due, in milliseconds; negative when it is due later. */
export const LaneCount = v.object({
  lane: v.string(),
  state: v.picklist(STATES),
  count: numberColumn,
  oldest_ms: v.nullable(numberColumn),
})
export type LaneCount = v.InferOutput<typeof LaneCount>
export const LaneName = v.object({ lane: v.string() })
const Owned = v.object({ owner: v.string(), count: numberColumn })
export const toOwned = (rows: readonly unknown[]): readonly OwnedCount[] =>
  v.parse(v.array(Owned), rows).map((row) => ({ ...row, what: 'jobs' }))
export const JobId = v.object({ id: v.string() })
