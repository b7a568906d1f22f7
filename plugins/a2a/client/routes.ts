import * as v from 'valibot'
import { defineRoute, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { a2aUnreachable } from './errors.ts'
import type * as Handlers from './handlers.ts'
import {
  AgentList,
  AgentParams,
  AgentView,
  ApproveBody,
  CredentialBody,
  DiscoverBody,
  Discovered,
  SendBody,
  TaskList,
  TaskListQuery,
  TaskParams,
  TaskQuery,
  TaskView,
} from './schema.ts'
import type { Runtime } from './runtime.ts'

export type Load = () => Promise<Runtime & { readonly handlers: typeof Handlers }>

const auth = 'bearer' as const
const errors = ['a2a_agent_not_found'] as const

/** Agents elsewhere: who is known, who is trusted, and what was sent to them. */
export function clientRoutes(load: Load): readonly AnyRoute[] {
  return [...agentRoutes(load), ...trustRoutes(load), ...taskRoutes(load)]
}

function agentRoutes(load: Load): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/a2a/agents',
      summary: 'The agents elsewhere that are known, the oldest first',
      auth,
      effect: 'read',
      cost: 5,
      returns: AgentList,
      async handle() {
        const { agents, handlers } = await load()
        return handlers.listAgents(agents)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/a2a/agents/:id',
      summary: 'Read an agent elsewhere, by its id, its name or its address',
      auth,
      effect: 'read',
      cost: 2,
      params: AgentParams,
      returns: AgentView,
      errors,
      async handle({ params }) {
        const { agents, handlers } = await load()
        return handlers.toAgent(await agents.require(params.id))
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/a2a/discover',
      summary: 'Read the card of an agent and remember it',
      description:
        'The agent waits (202) until a person trusts it; nothing is sent to it before. One that is known is read ' +
        'again (200 if it is trusted). The card is read over https, from a public address or one in `[outbound] ' +
        'allow`; what looks like instructions to a model is kept back, and `warnings` says so.',
      auth,
      effect: 'conversation',
      cost: 20,
      body: DiscoverBody,
      returns: Discovered,
      status: 202,
      answers: { 200: { description: 'The agent is trusted already', json: Discovered } },
      errors: ['conflict', 'forbidden', a2aUnreachable],
      example: { body: { url: 'https://agents.example.com/translator' } },
      async handle({ body, signal }) {
        const { agents, handlers } = await load()
        const agent = await agents.discover({ url: body.url, ...(body.name && { name: body.name }) }, { signal })
        const answer = handlers.toDiscovered(agent)
        if (answer.status === 'pending') return answer
        return reply(JSON.stringify(answer), { 'content-type': 'application/json' })
      },
    }),
  ]
}

function trustRoutes(load: Load): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/a2a/agents/:id/approve',
      summary: 'Trust an agent elsewhere, as its card is now',
      description: 'With another address, key or skill in its card it waits again, and `difference` says what changed.',
      auth,
      effect: 'lasting',
      cost: 5,
      params: AgentParams,
      body: ApproveBody,
      returns: AgentView,
      errors: [...errors, 'conflict'],
      async handle({ params, body }) {
        const { agents, handlers } = await load()
        return handlers.toAgent(await agents.approve(params.id, body?.fingerprint))
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/api/a2a/agents/:id/credential',
      summary: 'Store the secret with which the daemon proves itself to an agent',
      description: 'It is kept in the vault and never shown.',
      auth,
      effect: 'lasting',
      cost: 5,
      params: AgentParams,
      body: CredentialBody,
      returns: v.object({ status: v.literal('stored'), agent_id: v.string() }),
      errors,
      async handle({ params, body }) {
        const { handlers, ...runtime } = await load()
        return handlers.storeCredential(runtime, params.id, body)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/a2a/agents/:id',
      summary: 'Forget an agent elsewhere, with its secret',
      auth,
      effect: 'lasting',
      cost: 5,
      params: AgentParams,
      returns: v.object({ status: v.literal('removed'), agent_id: v.string() }),
      errors: [...errors, 'conflict'],
      async handle({ params }) {
        const { agents, credentials } = await load()
        const agent = await agents.remove(params.id)
        await credentials.remove(agent)
        return { status: 'removed' as const, agent_id: agent.id }
      },
    }),
  ]
}

function taskRoutes(load: Load): readonly AnyRoute[] {
  return [
    sendRoute(load),
    defineRoute({
      method: 'GET',
      path: '/api/a2a/tasks',
      summary: 'What was sent to agents elsewhere, the newest first',
      auth,
      effect: 'read',
      cost: 5,
      query: TaskListQuery,
      returns: TaskList,
      async handle({ query }) {
        const { tasks, handlers } = await load()
        return handlers.listTasks(tasks, query.limit, query.offset)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/a2a/tasks/:id/status',
      summary: 'The status of a task that was sent to an agent elsewhere',
      description: 'By our id or that of the other side. One that has not ended is asked for there.',
      auth,
      effect: 'read',
      cost: 5,
      params: TaskParams,
      query: TaskQuery,
      returns: TaskView,
      errors: ['a2a_task_not_found', 'conflict', a2aUnreachable],
      async handle({ params, query, signal }) {
        const { tasks, handlers } = await load()
        return handlers.toTask(await tasks.status(params.id, query.url, signal))
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/a2a/tasks/:id/cancel',
      summary: 'Cancel a task that was sent to an agent elsewhere',
      auth,
      effect: 'conversation',
      cost: 10,
      params: TaskParams,
      query: TaskQuery,
      returns: TaskView,
      errors: ['a2a_task_not_found', 'conflict', a2aUnreachable],
      async handle({ params, query, signal }) {
        const { tasks, handlers } = await load()
        return handlers.toTask(await tasks.cancel(params.id, query.url, signal))
      },
    }),
  ]
}

function sendRoute(load: Load): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/a2a/send',
    summary: 'Send a message to an agent elsewhere that is trusted',
    description:
      'Name it with `agent_id` (id, name or address) or `url`. The message is stored before it is sent, and sent ' +
      'again with the same id after a failure or a crash. The answer comes when the task has ended, waits for ' +
      'something, or after `a2a.send_wait_secs`; its status is there under `/api/a2a/tasks/{id}/status`.',
    auth,
    effect: 'conversation',
    cost: 20,
    body: SendBody,
    returns: TaskView,
    errors: [...errors, 'conflict', a2aUnreachable],
    idempotent: true,
    example: { body: { agent_id: 'translator', message: 'Translate "good morning" into French.' } },
    async recall(effectId, { signal }) {
      const { handlers, ...runtime } = await load()
      return handlers.recallSend(runtime, effectId, signal)
    },
    async handle({ body, effectId, signal }) {
      const { handlers, ...runtime } = await load()
      return handlers.send(runtime, body, effectId, signal)
    },
  })
}
