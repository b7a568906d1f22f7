import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

export const Statuses = ['pending', 'in_progress', 'completed', 'failed'] as const
export type Status = (typeof Statuses)[number]

export const Limits = fileOnly(
  'bounds what agents put on each other',
  v.object({
    claim_ttl_secs: fields.integer(
      'Seconds an agent may work on a task before another one may claim it.',
      600,
      1,
      604_800,
    ),
    max_attempts: fields.integer('Claims of a task that was never finished after which it has failed.', 3, 1, 100),
    retention_days: fields.integer('Days for which finished tasks are kept; 0 keeps them.', 7, 0, 3650),
    max_open: fields.integer('Tasks that may wait or be worked on at the same time.', 10_000, 1, 1_000_000),
    sweep_interval_secs: fields.integer(
      'Seconds between two searches for claims and tasks that are too old.',
      30,
      1,
      3600,
    ),
  }),
)
export type Limits = v.InferOutput<typeof Limits>

const nullable = v.nullable(v.string())
export const TaskRow = v.object({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  status: v.picklist(Statuses),
  assigned_to: nullable,
  created_by: v.string(),
  claimed_by: nullable,
  claimed_at: nullable,
  lease_until: nullable,
  attempts: v.number(),
  created_at: v.string(),
  completed_at: nullable,
  result: nullable,
})
export type TaskRow = v.InferOutput<typeof TaskRow>

export const TaskParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid task ID'), v.toLowerCase()) })
const page = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
/** `running` is what the counts call those in progress too. */
const StatusFilter = v.pipe(
  v.picklist([...Statuses, 'running']),
  v.transform((status): Status => (status === 'running' ? 'in_progress' : status)),
)
export const ListQuery = v.object({
  status: v.optional(StatusFilter),
  limit: v.optional(page),
  offset: v.optional(page),
})
export const TaskList = v.object({ tasks: v.array(TaskRow), total: v.number() })
export const TaskCounts = v.object({
  total: v.number(),
  pending: v.number(),
  running: v.number(),
  in_progress: v.number(),
  completed: v.number(),
  failed: v.number(),
})
export const Retried = v.object({ status: v.literal('retried'), id: v.string() })
