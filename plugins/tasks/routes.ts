import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { ListQuery, Retried, TaskCounts, TaskList, TaskParams, toView } from './schema.ts'
import type { LazyTasks } from './service.ts'

const MAX_LIMIT = 1000

export function taskRoutes(tasks: LazyTasks): readonly AnyRoute[] {
  return [statusRoute(tasks), listRoute(tasks), removeRoute(tasks), retryRoute(tasks)]
}

function statusRoute(tasks: LazyTasks): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/tasks/status',
    summary: 'How many tasks the queue has in each state',
    description: '`running` is the same as `in_progress`.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: TaskCounts,
    async handle() {
      const counts = await (await tasks()).counts()
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
      return { total, running: counts.in_progress, ...counts }
    },
  })
}

function listRoute(tasks: LazyTasks): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/tasks/list',
    summary: 'The tasks of the queue, the newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: TaskList,
    async handle({ query }) {
      const found = await (
        await tasks()
      ).list({ status: query.status }, Math.min(Number(query.limit ?? 100), MAX_LIMIT), Number(query.offset ?? 0))
      return { tasks: found.tasks.map(toView), total: found.total }
    },
  })
}

function removeRoute(tasks: LazyTasks): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/tasks/:id',
    summary: 'Cancel and remove a task',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: TaskParams,
    returns: v.object({ status: v.literal('deleted'), task_id: v.string() }),
    errors: ['task_not_found'],
    async handle({ params }) {
      await (await tasks()).remove(params.id)
      return { status: 'deleted' as const, task_id: params.id }
    },
  })
}

function retryRoute(tasks: LazyTasks): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/tasks/:id/retry',
    summary: 'Let a failed task be claimed again',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: TaskParams,
    returns: Retried,
    errors: ['task_not_found'],
    async handle({ params }) {
      await (await tasks()).retry(params.id)
      return { status: 'retried' as const, id: params.id }
    },
  })
}
