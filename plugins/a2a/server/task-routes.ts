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
    const { ownerOf } = await import('./runtime.ts')
    const { agent: name, contextId, message } = decodeNewTask(body, effectId)
    const { agent, tasks } = await load(runtime)
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
    async handle({ query }) {
      const { agent, tasks, show } = await load(runtime)
      const { fromStatus } = await import('./rest.ts')
      const found = await tasks.list({
        agentId: query.agent === undefined ? undefined : (await agent(query.agent)).id,
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
      async handle({ params }) {
        const { tasks, show } = await load(runtime)
        return show(await tasks.require(params.id))
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
      async handle({ params }) {
        const { showMessages } = await import('./rest.ts')
        const messages = showMessages(await (await runtime()).tasks.require(params.id))
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
    async handle({ params, signal }) {
      const { tasks, show } = await load(runtime)
      return show(await tasks.cancel(params.id, signal))
    },
  })
}

async function load(runtime: TaskRouteDeps['runtime']) {
  const loaded = await runtime()
  const { showTask } = await import('./rest.ts')
  return { tasks: loaded.tasks, agent: (name: string | undefined) => loaded.agent(name), show: showTask }
}
