import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { STATUSES } from './statuses.ts'
import type { Status } from './statuses.ts'

const nullable = v.nullable(v.string())
/** A row of the table. */
export const StoredTask = v.object({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  labels: v.string(),
  status: v.picklist(STATUSES),
  assigned_to: nullable,
  created_by: v.string(),
  claimed_by: nullable,
  claimed_at: nullable,
  lease_until: nullable,
  attempts: v.number(),
  created_at: v.string(),
  completed_at: nullable,
  result: nullable,
  revision: v.number(),
})
export type StoredTask = v.InferOutput<typeof StoredTask>

/** A task as the API shows it. */
export const TaskView = v.object({
  ...v.omit(StoredTask, ['labels']).entries,
  labels: v.pipe(v.array(v.string()), v.description('Where its texts may come from, such as UntrustedAgent.')),
})
export type TaskView = v.InferOutput<typeof TaskView>
export const labelsOf = ({ labels }: Pick<StoredTask, 'labels'>): string[] =>
  v.parse(v.array(v.string()), readJson(labels))
export const toView = (task: StoredTask): TaskView => ({ ...task, labels: labelsOf(task) })

export const TaskParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid task ID'), v.toLowerCase()) })
const page = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
/** `running` is what the counts call those in progress too. */
const StatusFilter = v.pipe(
  v.picklist([...STATUSES, 'running']),
  v.transform((status): Status => (status === 'running' ? 'in_progress' : status)),
)
export const ListQuery = v.object({
  status: v.optional(StatusFilter),
  limit: v.optional(page),
  offset: v.optional(page),
})
export const TaskList = v.object({ tasks: v.array(TaskView), total: v.number() })
export const TaskCounts = v.object({
  total: v.number(),
  pending: v.number(),
  running: v.number(),
  in_progress: v.number(),
  completed: v.number(),
  failed: v.number(),
  cancelled: v.number(),
})
export const Retried = v.object({ status: v.literal('retried'), id: v.string() })
