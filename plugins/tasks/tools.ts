import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import { toView } from './schema.ts'
import { STATUSES } from './statuses.ts'
import type { LazyTasks } from './service.ts'

/** Security facts 1.2: another agent wrote the text of a task, from unknown sources; and all agents read it. */
const written = { refuses: ['Secret'] } as const
const read = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const taskId = v.pipe(v.string(), v.minLength(1), v.maxLength(64))

export function taskTools(tasks: LazyTasks): readonly AnyTool[] {
  return [postTool(tasks), claimTool(tasks), completeTool(tasks), listTool(tasks), statusTool(tasks)]
}

function postTool(tasks: LazyTasks): AnyTool {
  return defineTool({
    ...written,
    name: 'task_post',
    risk: 'write',
    description:
      'Put a task into the queue that all agents share, for one agent or for any. Answers JSON with its task_id.',
    input: v.object({
      title: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(512)),
      description: v.string(),
      assigned_to: v.optional(
        v.pipe(
          v.string(),
          v.maxLength(256),
          v.description('Id or name of an agent; any agent may take it when absent'),
        ),
      ),
    }),
    async run({ title, description, assigned_to: assignedTo }, { agentId, labels }) {
      const { id } = await (await tasks()).post({ title, description, assignedTo, agentId, labels })
      return JSON.stringify({ task_id: id })
    },
  })
}

function claimTool(tasks: LazyTasks): AnyTool {
  return defineTool({
    ...read,
    name: 'task_claim',
    risk: 'write',
    polls: true,
    description:
      'Take the oldest task that waits for you or for anyone. Finish it with task_complete in time, or another ' +
      'agent gets it. Answers JSON.',
    input: v.object({}),
    async run(_, { agentId }) {
      const task = await (await tasks()).claim(agentId)
      return task
        ? JSON.stringify({
            task_id: task.id,
            title: task.title,
            description: task.description,
            created_by: task.created_by,
            finish_before: task.lease_until,
          })
        : 'No task is waiting.'
    },
  })
}

function completeTool(tasks: LazyTasks): AnyTool {
  return defineTool({
    ...written,
    name: 'task_complete',
    risk: 'write',
    description: 'Finish a task that you claimed.',
    input: v.object({ task_id: taskId, result: v.string() }),
    async run(input, { agentId }) {
      await (await tasks()).complete(input.task_id, agentId, input.result)
      return 'Completed.'
    },
  })
}

function listTool(tasks: LazyTasks): AnyTool {
  return defineTool({
    ...read,
    name: 'task_list',
    risk: 'read',
    polls: true,
    description: 'The tasks of the queue, the newest first: at most 100. Answers JSON.',
    input: v.object({ status: v.optional(v.picklist(STATUSES)) }),
    async run(input) {
      const found = await (await tasks()).list({ status: input.status }, 100, 0)
      return JSON.stringify({
        ...found,
        tasks: found.tasks.map(({ id, title, status, assigned_to, claimed_by, created_at }) => ({
          task_id: id,
          title,
          status,
          assigned_to,
          claimed_by,
          created_at,
        })),
      })
    },
  })
}

function statusTool(tasks: LazyTasks): AnyTool {
  return defineTool({
    ...read,
    name: 'task_status',
    risk: 'read',
    polls: true,
    description: 'All about one task, with its result. Answers JSON.',
    input: v.object({ task_id: taskId }),
    async run(input) {
      return JSON.stringify(toView(await (await tasks()).require(input.task_id)))
    },
  })
}
