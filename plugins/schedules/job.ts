import * as v from 'valibot'
import { flagColumn, jsonColumn, nullableColumn, numberColumn } from 'svc/internal'
import { DeliveryTarget } from '../result-delivery/contract.ts'
import { SKIP_REASONS } from './reasons.ts'
import type { SkipReason } from './reasons.ts'
import type { Timing } from './timing/timing.ts'

/** What a job does when it is due (API facts 2.5). */
export type Action =
  | {
      readonly kind: 'agent_turn'
      readonly message: string
      readonly model_override?: string | undefined
      readonly timeout_secs?: number | undefined
    }
  | { readonly kind: 'system_event'; readonly text: string }
  | {
      readonly kind: 'workflow'
      readonly workflow_id: string
      readonly input?: string | undefined
      readonly timeout_secs?: number | undefined
    }

/** What the action says, in words: a prompt, the text of an event, or the input of a workflow. */
export function textOf(action: Action): string {
  if (action.kind === 'agent_turn') return action.message
  return action.kind === 'system_event' ? action.text : (action.input ?? '')
}

/** A schedule or cron job: both are views of this. Times are milliseconds since 1970. */
export interface Job {
  readonly id: string
  readonly name: string
  readonly agentId: string
  readonly timing: Timing
  readonly action: Action
  readonly targets: readonly DeliveryTarget[]
  /** What becomes of a slot that nobody could run in time: nothing, or one late run for all of them. */
  readonly missed: 'skip' | 'once'
  /** What the agent's manifest says when absent. */
  readonly sessionMode: 'new' | 'persistent' | undefined
  /** Ends after its first success. */
  readonly oneShot: boolean
  readonly enabled: boolean
  readonly version: number
  readonly nextRun: number | undefined
  readonly lastRun: number | undefined
  /** `ok`, or `error: ` and why. */
  readonly lastStatus: string | undefined
  /** Slots that failed since the last success. */
  readonly failures: number
  readonly runs: number
  /** Why it is disabled or has ended. */
  readonly reason: string | undefined
  /** The agent that made it. */
  readonly createdBy: string | undefined
  /** The agents for which its turns work: that one, and those for which it worked. */
  readonly onBehalf: readonly string[]
  /** Daemons that the request for it came through: its turns came through as many. */
  readonly hops: number
  /** Where its text comes from, such as `ExternalNetwork`. */
  readonly labels: readonly string[]
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt: number | undefined
}

export type SlotKind = 'slot' | 'manual'
/** `open`: it waits or runs. */
export type SlotState = 'open' | 'done' | 'failed' | 'skipped' | 'cancelled'

/** One time a job was due, and what came of it. */
export interface Slot {
  readonly jobId: string
  readonly kind: SlotKind
  readonly slotAt: number
  /** It stands for all skipped slots up to this moment. */
  readonly untilAt: number | undefined
  readonly state: SlotState
  readonly reason: SkipReason | undefined
  readonly detail: string | undefined
  /** How much later than due it began. */
  readonly lateMs: number
  /** The job of the queue. */
  readonly runId: string
  readonly turnId: string | undefined
  readonly workflowRunId: string | undefined
  /** When its run of a workflow began. */
  readonly begunAt: number | undefined
  readonly result: string | undefined
  readonly error: string | undefined
  readonly createdAt: number
  readonly endedAt: number | undefined
}

/** Exact, for JSON columns that this plugin wrote. */
const StoredTiming: v.GenericSchema<unknown, Timing> = v.variant('kind', [
  v.object({ kind: v.literal('cron'), expr: v.string(), tz: v.string() }),
  v.object({ kind: v.literal('every'), every_secs: v.number(), from: v.number() }),
  v.object({ kind: v.literal('at'), at: v.number() }),
])
const StoredAction: v.GenericSchema<unknown, Action> = v.variant('kind', [
  v.object({
    kind: v.literal('agent_turn'),
    message: v.string(),
    model_override: v.optional(v.string()),
    timeout_secs: v.optional(v.number()),
  }),
  v.object({ kind: v.literal('system_event'), text: v.string() }),
  v.object({
    kind: v.literal('workflow'),
    workflow_id: v.string(),
    input: v.optional(v.string()),
    timeout_secs: v.optional(v.number()),
  }),
])
const text = nullableColumn(v.string())
/** The last moment that a date can be. */
const time = nullableColumn(v.pipe(numberColumn, v.maxValue(8.64e15)))

export const JobRow = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    agent_id: v.string(),
    timing: jsonColumn(StoredTiming),
    action: jsonColumn(StoredAction),
    targets: jsonColumn(v.array(DeliveryTarget)),
    missed: v.picklist(['skip', 'once']),
    session_mode: nullableColumn(v.picklist(['new', 'persistent'])),
    one_shot: flagColumn,
    enabled: flagColumn,
    version: numberColumn,
    next_run: time,
    last_run: time,
    last_status: text,
    failures: numberColumn,
    runs: numberColumn,
    reason: text,
    created_by: text,
    on_behalf: nullableColumn(jsonColumn(v.array(v.string()))),
    labels: jsonColumn(v.array(v.string())),
    hops: numberColumn,
    created_at: numberColumn,
    updated_at: numberColumn,
    ended_at: time,
  }),
  v.transform((row): Job => ({
    id: row.id,
    name: row.name,
    agentId: row.agent_id,
    timing: row.timing,
    action: row.action,
    targets: row.targets,
    missed: row.missed,
    sessionMode: row.session_mode,
    oneShot: row.one_shot,
    enabled: row.enabled,
    version: row.version,
    nextRun: row.next_run,
    lastRun: row.last_run,
    lastStatus: row.last_status,
    failures: row.failures,
    runs: row.runs,
    reason: row.reason,
    createdBy: row.created_by,
    onBehalf: row.on_behalf ?? (row.created_by === undefined ? [] : [row.created_by]),
    labels: row.labels,
    hops: row.hops,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  })),
)

export const SlotRow = v.pipe(
  v.object({
    job_id: v.string(),
    kind: v.picklist(['slot', 'manual']),
    slot_at: numberColumn,
    until_at: time,
    state: v.picklist(['open', 'done', 'failed', 'skipped', 'cancelled']),
    reason: nullableColumn(v.picklist(SKIP_REASONS)),
    detail: text,
    late_ms: numberColumn,
    run_id: v.string(),
    turn_id: text,
    workflow_run_id: text,
    begun_at: time,
    result: text,
    error: text,
    created_at: numberColumn,
    ended_at: time,
  }),
  v.transform((row): Slot => ({
    jobId: row.job_id,
    kind: row.kind,
    slotAt: row.slot_at,
    untilAt: row.until_at,
    state: row.state,
    reason: row.reason,
    detail: row.detail,
    lateMs: row.late_ms,
    runId: row.run_id,
    turnId: row.turn_id,
    workflowRunId: row.workflow_run_id,
    begunAt: row.begun_at,
    result: row.result,
    error: row.error,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  })),
)
export const Count = v.object({ count: numberColumn })
export const NextDue = v.object({ next_run: nullableColumn(numberColumn) })
