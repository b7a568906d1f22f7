import { toIso } from 'svc/internal'
import { textOf } from './job.ts'
import type { Job, Slot } from './job.ts'
import type { JobShapes } from './route-views.ts'

const at = (ms: number | undefined): string | null => (ms === undefined ? null : toIso(ms))

/** A cron expression as it is, another timing as an object. */
function scheduleOf({ timing }: Job) {
  if (timing.kind === 'cron') return timing.expr
  if (timing.kind === 'at') return { kind: timing.kind, at: toIso(timing.at) }
  return { kind: timing.kind, every_secs: timing.every_secs }
}

function common(job: Job) {
  return {
    id: job.id,
    name: job.name,
    agent_id: job.agentId,
    schedule: scheduleOf(job),
    tz: job.timing.kind === 'cron' ? job.timing.tz : null,
    prompt: textOf(job.action),
    action: job.action,
    workflow_id: job.action.kind === 'workflow' ? job.action.workflow_id : null,
    enabled: job.enabled,
    one_shot: job.oneShot,
    missed: job.missed,
    session_mode: job.sessionMode ?? null,
    delivery: job.targets[0] ?? ({ kind: 'none' } as const),
    delivery_targets: [...job.targets],
    created_by: job.createdBy ?? null,
    created_at: toIso(job.createdAt),
    updated_at: toIso(job.updatedAt),
    last_run: at(job.lastRun),
    next_run: at(job.nextRun),
    last_status: job.lastStatus ?? null,
    consecutive_errors: job.failures,
    runs: job.runs,
    reason: job.reason ?? null,
    ended_at: at(job.endedAt),
  }
}

export function toSchedule(job: Job) {
  return { ...common(job), cron: job.timing.kind === 'cron' ? job.timing.expr : null, message: textOf(job.action) }
}
export const toCronJob = common

export const scheduleShapes: JobShapes = {
  item: toSchedule,
  list: (jobs, total) => ({ schedules: jobs.map(toSchedule), total }),
  changed: (job) => ({ ...toSchedule(job), status: 'updated', schedule_id: job.id }),
  removed: (id) => ({ status: 'removed', schedule_id: id }),
  enabled: toSchedule,
}
export const cronShapes: JobShapes = {
  item: toCronJob,
  list: (jobs, total) => ({ jobs: jobs.map(toCronJob), total }),
  changed: toCronJob,
  removed: (id) => ({ status: 'deleted', job_id: id }),
  enabled: ({ id, enabled, nextRun }) => ({ id, enabled, next_run: at(nextRun) }),
}

export function toSlot(slot: Slot) {
  return {
    slot: toIso(slot.slotAt),
    until: at(slot.untilAt),
    kind: slot.kind,
    state: slot.state,
    reason: slot.reason ?? null,
    detail: slot.detail ?? null,
    late_ms: slot.lateMs,
    turn_id: slot.turnId ?? null,
    workflow_run_id: slot.workflowRunId ?? null,
    result: slot.result ?? null,
    error: slot.error ?? null,
    created_at: toIso(slot.createdAt),
    ended_at: at(slot.endedAt),
  }
}
/** What changes by itself. */
export const MEASURED = [
  'updated_at',
  'last_run',
  'next_run',
  'last_status',
  'consecutive_errors',
  'runs',
  'reason',
  'ended_at',
]
