import * as v from 'valibot'
import { CronParams, CronView, ScheduleParams, ScheduleView } from './body.ts'
import type { Job } from './job.ts'

/** How a job looks in the answers of one view. */
export interface JobShapes {
  item(job: Job): object
  list(jobs: readonly Job[], total: number): unknown
  changed(job: Job): unknown
  removed(id: string): unknown
  enabled(job: Job): unknown
}
/** One of the two ways to see the jobs. */
export interface JobView {
  readonly path: `/${string}`
  /** Such as `schedule`. */
  readonly noun: string
  readonly code: 'schedule_not_found' | 'cron_job_not_found'
  readonly params: v.GenericSchema<Record<string, unknown>, { readonly id: string }>
  /** Summary, description and body of the route that makes one. */
  readonly make: string
  readonly required: string
  readonly example: object
  readonly item: v.GenericSchema
  readonly listed: v.GenericSchema
  readonly changed: v.GenericSchema
  readonly removed: v.GenericSchema
  readonly enabled: v.GenericSchema
  /** Imported on first use. */
  readonly shapes: () => Promise<JobShapes>
}

export const schedules: JobView = {
  path: '/api/schedules',
  noun: 'schedule',
  code: 'schedule_not_found',
  params: ScheduleParams,
  make: 'Ask an agent something at certain times',
  required:
    '`agent_id`, `cron` and `prompt` are required. `cron` has five fields (minute, hour, day of the month, month, ' +
    'day of the week) in the time zone `tz`; `schedule` may be `{kind: "every", every_secs}` or `{kind: "at", at}` ' +
    'instead. Every slot runs once. `missed` says what becomes of slots at which the daemon did not run.',
  example: { agent_id: 'assistant', cron: '30 9 * * MON-FRI', tz: 'Europe/Berlin', prompt: 'What is new?' },
  item: ScheduleView,
  listed: v.object({ schedules: v.array(ScheduleView), total: v.number() }),
  changed: v.looseObject({ ...ScheduleView.entries, status: v.literal('updated'), schedule_id: v.string() }),
  removed: v.object({ status: v.literal('removed'), schedule_id: v.string() }),
  enabled: ScheduleView,
  shapes: async () => (await import('./views.ts')).scheduleShapes,
}

export const cronJobs: JobView = {
  path: '/api/cron/jobs',
  noun: 'cron job',
  code: 'cron_job_not_found',
  params: CronParams,
  make: 'Make a cron job',
  required: '`agent_id`, `schedule` and `prompt` (or `action`) are required. See `POST /api/schedules`.',
  example: { name: 'news', schedule: '0 9 * * *', agent_id: 'assistant', prompt: 'What is new?' },
  item: CronView,
  listed: v.object({ jobs: v.array(CronView), total: v.number() }),
  changed: CronView,
  removed: v.object({ status: v.literal('deleted'), job_id: v.string() }),
  enabled: v.object({ id: v.string(), enabled: v.boolean(), next_run: v.nullable(v.string()) }),
  shapes: async () => (await import('./views.ts')).cronShapes,
}
