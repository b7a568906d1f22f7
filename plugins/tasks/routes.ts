import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { LazyRuntime } from './runtime.ts'
import { ListQuery, PatchBody, PostBody, TaskAnswer, TaskCounts, TaskList, TaskParams, TaskView } from './schema.ts'

const MAX_LIMIT = 1000
const DEFAULT_LIMIT = 100
const auth = 'bearer' as const
const errors = ['task_not_found'] as const

export function taskRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  return [
    statusRoute(runtime),
    listRoute(runtime, '/api/tasks'),
    listRoute(runtime, '/api/tasks/list'),
    postRoute(runtime),
    readRoute(runtime),
    editRoute(runtime),
    removeRoute(runtime),
    retryRoute(runtime),
    cancelRoute(runtime),
  ]
}

function statusRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/tasks/status',
    summary: 'How many tasks the queue has in each state',
    description: '`running` is the same as `in_progress`.',
    auth,
    effect: 'read',
    cost: 5,
    returns: TaskCounts,
    async handle() {
      const counts = await (await runtime()).tasks.counts()
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
      return { total, running: counts.in_progress, ...counts }
    },
  })
}

function listRoute(runtime: LazyRuntime, path: '/api/tasks' | '/api/tasks/list'): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary: 'The tasks of the queue, the newest first',
    description: 'Agents in the query by id. Of long texts it has the first 1,000 characters.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: TaskList,
    async handle({ query }) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      const { status, assigned_to: assignedTo, created_by: createdBy, claimed_by: claimedBy } = query
      const limit = Math.min(Number(query.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
      const found = await tasks.list({ status, assignedTo, createdBy, claimedBy }, limit, Number(query.offset ?? 0))
      return { tasks: found.tasks.map(toView), total: found.total }
    },
  })
}

function postRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/tasks',
    summary: 'Post a task for an agent, or for any',
    description:
      'An agent that is named gets a turn, whose answer is the result, unless `wake` or `plugins.tasks.wake_assignee` ' +
      'is false. What no agent is named for waits until one claims it.',
    auth,
    effect: 'conversation',
    cost: 10,
    body: PostBody,
    returns: TaskView,
    status: 201,
    errors: ['agent_not_found'],
    idempotent: true,
    keepsAnswer: false,
    example: { body: { title: 'Read the news', description: 'What is new today?', assigned_to: 'assistant' } },
    async handle({ body, effectId }) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      const { title, description, assigned_to: assignedTo, wake } = body
      const { id } = await tasks.post({ id: effectId, title, description, assignedTo: assignedTo ?? undefined, wake })
      return toView(await tasks.require(id))
    },
    async recall(effectId) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      return (await tasks.find(effectId)) && toView(await tasks.require(effectId))
    },
  })
}

function readRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/tasks/:id',
    summary: 'Read a task with its result',
    auth,
    effect: 'read',
    cost: 2,
    params: TaskParams,
    returns: TaskView,
    errors,
    async handle({ params }) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      return toView(await tasks.require(params.id))
    },
  })
}

function editRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'PATCH',
    path: '/api/tasks/:id',
    summary: 'Edit a task that is pending, or set its status',
    description:
      'Fields that are left out stay. `status`: `completed` or `failed` (with `result`), `cancelled`, or `pending`, ' +
      'which takes it from whoever works on it and tries again what has ended.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: TaskParams,
    body: PatchBody,
    returns: TaskView,
    errors: ['task_not_found', 'agent_not_found', 'conflict'],
    async handle({ params, body }) {
      const [{ tasks }, { toView }] = await Promise.all([runtime(), import('./rows/row.ts')])
      return toView(await tasks.edit(params.id, body))
    },
  })
}

function removeRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/tasks/:id',
    summary: 'Cancel and remove a task',
    auth,
    effect: 'lasting',
    cost: 5,
    params: TaskParams,
    returns: v.object({ status: v.literal('deleted'), task_id: v.string() }),
    errors,
    async handle({ params }) {
      await (await runtime()).tasks.remove(params.id)
      return { status: 'deleted' as const, task_id: params.id }
    },
  })
}

function retryRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/tasks/:id/retry',
    summary: 'Let a task that has ended be claimed again',
    auth,
    effect: 'conversation',
    cost: 5,
    params: TaskParams,
    returns: TaskAnswer,
    errors,
    async handle({ params: { id } }) {
      await (await runtime()).tasks.retry(id)
      return { status: 'retried', id }
    },
  })
}

function cancelRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/tasks/:id/cancel',
    summary: 'Cancel a task that has not ended',
    description: 'A turn that works on it is stopped.',
    auth,
    effect: 'conversation',
    cost: 5,
    params: TaskParams,
    returns: TaskAnswer,
    errors: ['task_not_found', 'conflict'],
    async handle({ params: { id } }) {
      await (await runtime()).tasks.cancel(id)
      return { status: 'cancelled', id }
    },
  })
}
