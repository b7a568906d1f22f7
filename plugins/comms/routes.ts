import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { TurnInterrupted } from '../chat/contract.ts'
import type { Turns } from '../chat/contract.ts'
import type { Tasks } from '../tasks/contract.ts'
import type { Comms } from './service.ts'
import { CommsEvent, EventsQuery, SendBody, Sent, TaskBody, TaskPosted, Topology } from './schema.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500
const auth = 'bearer' as const

export interface RouteDeps {
  readonly comms: () => Promise<Comms>
  readonly turns: Turns
  readonly tasks: () => Tasks | undefined
}

/** Interface 4.11, `/api/comms/…`. */
export function commsRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [topologyRoute(deps), eventsRoute(deps), streamRoute(deps), sendRoute(deps), taskRoute(deps)]
}

function topologyRoute({ comms }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/comms/topology',
    summary: 'The agents, who made whom, and who wrote to whom in the last 500 messages',
    auth,
    effect: 'read',
    cost: 5,
    returns: Topology,
    handle: async () => (await comms()).topology(),
  })
}

function eventsRoute({ comms }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/comms/events',
    summary: 'Messages between agents, agents that came and went, and tasks, the newest first',
    auth,
    effect: 'read',
    cost: 5,
    query: EventsQuery,
    returns: v.array(CommsEvent),
    async handle({ query }) {
      const limit = Math.min(Number(query.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
      return [...(await (await comms()).events.recent(limit))]
    },
  })
}

function streamRoute({ comms }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/comms/events/stream',
    summary: 'Follow the events: new ones as they come',
    auth,
    effect: 'read',
    cost: 5,
    returns: CommsEvent,
    streams: CommsEvent,
    feed: true,
    errors: ['rate_limit'],
    handle: async ({ signal }) => (await comms()).events.follow(signal),
  })
}

function sendRoute({ comms, turns }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/comms/send',
    summary: 'Send a message to an agent and wait for the answer, or to a chat',
    description:
      '`to` is an agent or `channel:<name>:<chat>`. With `from` it is a message of that agent: its manifest has to ' +
      'name the other agent in `capabilities.agent_message`, or the channel in `channels`. A message to an agent is on ' +
      'disk before it is worked on, and answered even if you disconnect. `from_agent_id`, `to_agent_id` and `message` ' +
      'are other names of `from`, `to` and `content`.',
    auth,
    effect: 'lasting',
    effectOf: ({ body }) => (body.to?.startsWith('channel:') ? 'lasting' : 'conversation'),
    cost: 30,
    body: SendBody,
    returns: Sent,
    errors: [
      'agent_not_found',
      'channel_not_found',
      'forbidden',
      'conflict',
      'payload_too_large',
      'rate_limit',
      'service_unavailable',
      TurnInterrupted,
    ],
    idempotent: true,
    example: { body: { to: 'agent:assistant', content: 'What time is it?' } },
    handle: async ({ body, effectId }) => (await comms()).send(body, effectId),
    async recall(id) {
      const turn = await turns.replay(id)
      if (!turn) return undefined
      const { toAnswer } = await import('./send.ts')
      return toAnswer(id, await turn.result())
    },
  })
}

function taskRoute({ tasks }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/comms/task',
    summary: 'Post a task for one agent or for any',
    auth,
    effect: 'lasting',
    cost: 5,
    body: TaskBody,
    returns: TaskPosted,
    status: 201,
    errors: ['agent_not_found', 'rate_limit', 'service_unavailable'],
    idempotent: true,
    example: { body: { title: 'Collect sources', description: 'At least five' } },
    async handle({ body: { title, description, assigned_to: assignedTo }, effectId }) {
      const service = tasks()
      if (!service) throw new Refusal('service_unavailable', 'The plugin "tasks" is not loaded')
      const { id } = await service.post({ id: effectId, title, description, assignedTo: assignedTo ?? undefined })
      return { ok: true as const, task_id: id }
    },
  })
}
