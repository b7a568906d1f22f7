import * as v from 'valibot'
import { STATUSES } from './statuses.ts'
import type { Status } from './statuses.ts'

export const MAX_TITLE = 512
const nullable = v.nullable(v.string())
/** A task as the API shows it. */
export const TaskView = v.object({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  labels: v.pipe(v.array(v.string()), v.description('Where its texts may come from, such as UntrustedAgent.')),
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
  wake: v.pipe(v.boolean(), v.description('Whether the agent it is for gets a turn.')),
  turn_id: v.pipe(nullable, v.description('The turn that was begun for it.')),
})
export type TaskView = v.InferOutput<typeof TaskView>

export const TaskParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid task ID'), v.toLowerCase()) })
const page = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
/** `running` is what the counts call those in progress too. */
const StatusFilter = v.pipe(
  v.picklist([...STATUSES, 'running']),
  v.transform((status): Status => (status === 'running' ? 'in_progress' : status)),
)
export const ListQuery = v.object({
  status: v.optional(StatusFilter),
  assigned_to: v.optional(v.string()),
  created_by: v.optional(v.string()),
  claimed_by: v.optional(v.string()),
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
export const TaskAnswer = v.object({ status: v.string(), id: v.string() })

const title = v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(MAX_TITLE))
const assignee = v.pipe(v.string(), v.maxLength(256), v.description('Id or name of an agent.'))
export const PostBody = v.object({
  title,
  description: v.optional(v.string(), ''),
  assigned_to: v.nullish(assignee),
  wake: v.optional(v.pipe(v.boolean(), v.description('Whether it gets a turn; plugins.tasks.wake_assignee decides.'))),
})
export const PatchBody = v.object({
  title: v.optional(title),
  description: v.optional(v.string()),
  assigned_to: v.pipe(v.nullish(assignee), v.description('null: any agent may claim it.')),
  status: v.optional(v.picklist(['pending', 'completed', 'failed', 'cancelled'])),
  result: v.optional(v.string()),
})
export type PatchBody = v.InferOutput<typeof PatchBody>
