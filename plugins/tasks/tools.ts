import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { LazyRuntime } from './runtime.ts'
import { MAX_TITLE } from './schema.ts'
import { STATUSES } from './statuses.ts'

/** Security facts 1.2: another agent wrote the text of a task, from unknown sources; and others read it. */
const written = { refuses: ['Secret'] } as const
const read = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const id = v.pipe(v.string(), v.minLength(1), v.maxLength(64))
const MAX_LISTED = 100
const ofTask = v.object({ task_id: id })

export function taskTools(runtime: LazyRuntime): readonly AnyTool[] {
  return [
    postTool(runtime),
    claimTool(runtime),
    completeTool(runtime),
    listTool(runtime),
    statusTool(runtime),
    cancelTool(runtime),
    retryTool(runtime),
  ]
}

function postTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...written,
    name: 'task_post',
    risk: 'write',
    description:
      'Put a task into the queue that all agents share, for one agent or for any. An agent that is named begins to ' +
      'work on it; task_status has its result. Answers JSON with the task_id.',
    input: v.object({
      title: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(MAX_TITLE)),
      description: v.string(),
      assigned_to: v.optional(
        v.pipe(
          v.string(),
          v.maxLength(256),
          v.description('Id or name of an agent; any agent may take it when absent'),
        ),
      ),
    }),
    async run({ title, description, assigned_to: assignedTo }, { agentId, onBehalf, labels, hops }) {
      const { tasks } = await runtime()
      const task = await tasks.post({ title, description, assignedTo, agentId, onBehalf, labels, hops })
      return JSON.stringify({ task_id: task.id })
    },
  })
}

function claimTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...read,
    name: 'task_claim',
    risk: 'write',
    polls: true,
    description:
      'Take the oldest task that waits for you or for anyone, or the one with task_id. Finish it with task_complete ' +
      'in time, or another agent gets it. Answers JSON.',
    input: v.object({ task_id: v.optional(id) }),
    async run({ task_id: wanted }, { agentId }) {
      const task = await (await runtime()).tasks.claim(agentId, wanted)
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

function completeTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...written,
    name: 'task_complete',
    reports: true,
    risk: 'write',
    description: 'Finish a task that you claimed.',
    input: v.object({ task_id: id, result: v.string() }),
    async run(input, { agentId }) {
      await (await runtime()).tasks.complete(input.task_id, agentId, input.result)
      return 'Completed.'
    },
  })
}

function listTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...read,
    name: 'task_list',
    risk: 'read',
    polls: true,
    description:
      'The tasks that you posted or are to do, and those that anyone may take, the newest first: at most 100. Answers JSON.',
    input: v.object({ status: v.optional(v.picklist(STATUSES)) }),
    async run({ status }, { agentId }) {
      const found = await (await runtime()).tasks.visibleTo(agentId, status, MAX_LISTED)
      return JSON.stringify({
        total: found.length,
        tasks: found.map((task) => ({
          task_id: task.id,
          title: task.title,
          status: task.status,
          assigned_to: task.assigned_to,
          claimed_by: task.claimed_by,
          created_at: task.created_at,
        })),
      })
    },
  })
}

function statusTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...read,
    name: 'task_status',
    reports: true,
    risk: 'read',
    polls: true,
    description: 'All about one task that you posted or are to do, with its result. Answers JSON.',
    input: ofTask,
    async run(input, { agentId }) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      return JSON.stringify(toView(await tasks.requireVisible(input.task_id, agentId)))
    },
  })
}

function cancelTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'task_cancel',
    risk: 'write',
    description: 'Cancel a task that you posted and that has not ended. Whoever works on it is stopped.',
    input: ofTask,
    async run(input, { agentId }) {
      await (await runtime()).tasks.cancel(input.task_id, agentId)
      return 'Cancelled.'
    },
  })
}

function retryTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'task_retry',
    risk: 'write',
    description: 'Have a task that you posted done again, after it failed, was cancelled or completed.',
    input: ofTask,
    async run(input, { agentId }) {
      await (await runtime()).tasks.retry(input.task_id, agentId)
      return 'It waits again.'
    },
  })
}
