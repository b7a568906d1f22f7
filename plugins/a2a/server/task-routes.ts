import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, RequestFacts } from 'svc/sdk'
import type { Runtime } from './runtime.ts'
import { ListQuery, NewTaskBody, ShownTask, TaskList, TaskMessages, TaskParams } from './schema.ts'

export interface TaskRouteDeps {
  readonly runtime: () => Promise<Runtime>
}

const auth = 'bearer' as const
const errors = ['task_not_found'] as const

/** Tasks in the shapes of the interface. */
export function taskRoutes(deps: TaskRouteDeps): readonly AnyRoute[] {
  return [...makingRoutes(deps), listRoute(deps), ...readingRoutes(deps), cancelRoute(deps)]
}

function makingRoutes({ runtime }: TaskRouteDeps): readonly AnyRoute[] {
  const create = {
    method: 'POST',
    auth,
    effect: 'conversation',
    cost: 30,
    body: NewTaskBody,
    returns: ShownTask,
    errors: ['agent_not_found', 'conflict', 'payload_too_large', 'service_unavailable'],
    idempotent: true,
  } as const
  const begin = async (body: NewTaskBody, principal: RequestFacts['principal'], effectId: string | undefined) => {
    const { decodeNewTask } = await import('./rest.ts')
    const { agent: name, contextId, message } = decodeNewTask(body, effectId)
    const { agent, tasks, ownerOf } = await load(runtime)
    const owner = ownerOf(principal)
    return tasks.begin({ agent: await agent(name), owner, contextId, message, acceptedOutputModes: [] })
  }
  return [
    defineRoute({
      ...create,
      path: '/a2a/tasks/send',
      summary: 'Give an agent a task and wait for its result',
      description:
        'Without `agent_id` the agent of the service answers. A message with the id of an earlier one gets its task.',
      example: { body: { agent_id: 'assistant', message: { role: 'user', parts: [{ text: 'Hello' }] } } },
      async handle({ body, principal, effectId, signal }) {
        const task = await begin(body, principal, effectId)
        const { tasks, show } = await load(runtime)
        return show(await tasks.wait(task.id, signal))
      },
    }),
    defineRoute({
      ...create,
      path: '/a2a/tasks',
      summary: 'Give an agent a task',
      status: 201,
      description: 'Answered when the task is durable; ask for its result with its id.',
      example: { body: { agent_id: 'assistant', message: { role: 'user', parts: [{ text: 'Hello' }] } } },
      async handle({ body, principal, effectId }) {
        const task = await begin(body, principal, effectId)
        return (await load(runtime)).show(task)
      },
    }),
  ]
}

function listRoute({ runtime }: TaskRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/a2a/tasks',
    summary: 'List the tasks of other programs',
    description: 'Those that changed last come first.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: TaskList,
    errors: ['agent_not_found'],
    async handle({ query, principal }) {
      const { agent, tasks, show, ownerOf } = await load(runtime)
      const { fromStatus } = await import('./rest.ts')
      const found = await tasks.list({
        agentId: query.agent === undefined ? undefined : (await agent(query.agent)).id,
        owner: ownerOf(principal),
        contextId: query.context_id,
        state: query.status === undefined ? undefined : fromStatus(query.status),
        since: undefined,
        after: undefined,
        limit: query.limit,
      })
      return { tasks: found.tasks.map(show), total: found.total }
    },
  })
}

function readingRoutes({ runtime }: TaskRouteDeps): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/a2a/tasks/:id',
      summary: 'Read a task and its result',
      auth,
      effect: 'read',
      cost: 2,
      params: TaskParams,
      returns: ShownTask,
      errors,
      async handle({ params, principal }) {
        const { tasks, show, scopeOf } = await load(runtime)
        return show(await tasks.require(params.id, scopeOf(principal)))
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/a2a/tasks/:id/messages',
      summary: 'Read the messages of a task',
      auth,
      effect: 'read',
      cost: 2,
      params: TaskParams,
      returns: TaskMessages,
      errors,
      async handle({ params, principal }) {
        const { tasks, showMessages, scopeOf } = await load(runtime)
        const messages = showMessages(await tasks.require(params.id, scopeOf(principal)))
        return { task_id: params.id, messages, total: messages.length }
      },
    }),
  ]
}

function cancelRoute({ runtime }: TaskRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/a2a/tasks/:id/cancel',
    summary: 'Cancel a task',
    auth,
    effect: 'conversation',
    cost: 5,
    params: TaskParams,
    body: v.optional(v.object({})),
    returns: ShownTask,
    errors: [...errors, 'conflict'],
    async handle({ params, principal, signal }) {
      const { tasks, show, scopeOf } = await load(runtime)
      return show(await tasks.cancel(params.id, signal, scopeOf(principal)))
    },
  })
}

async function load(runtime: TaskRouteDeps['runtime']) {
  const loaded = await runtime()
  const { showTask: show, showMessages } = await import('./rest.ts')
  const { ownerOf, scopeOf } = await import('./runtime.ts')
  const { tasks } = loaded
  return { tasks, agent: (name: string | undefined) => loaded.agent(name), show, showMessages, ownerOf, scopeOf }
}
