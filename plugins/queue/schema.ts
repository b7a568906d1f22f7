import * as v from 'valibot'
import type { OwnedCount } from '../cluster/contract.ts'
import { STATES } from './states.ts'

const count = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
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
  created_at: count,
  due_at: count,
  /** Of one that runs: another one when somebody else has it. */
  claim_id: text,
  settled_at: v.nullable(count),
  error: text,
  origin: text,
})
export type StoredJob = v.InferOutput<typeof StoredJob>

export const Count = v.object({ count })
const sum = v.pipe(
  v.nullable(count),
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
export const NextDue = v.object({ due_at: v.nullable(count) })
/** `oldest_ms`: since when the job that is due first is due, in milliseconds; negative when it is due later. */
export const LaneCount = v.object({
  lane: v.string(),
  state: v.picklist(STATES),
  count,
  oldest_ms: v.nullable(count),
})
export type LaneCount = v.InferOutput<typeof LaneCount>
export const LaneName = v.object({ lane: v.string() })
const Owned = v.object({ owner: v.string(), count })
export const toOwned = (rows: readonly unknown[]): readonly OwnedCount[] =>
  v.parse(v.array(Owned), rows).map((row) => ({ ...row, what: 'jobs' }))
export const JobId = v.object({ id: v.string() })
