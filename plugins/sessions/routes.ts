import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Session, SessionContext } from './contract.ts'
import {
  AgentSessionList,
  AgentSessionParams,
  Cleaned,
  CreatedSession,
  Deleted,
  Done,
  FoundSession,
  Labelled,
  LabelParams,
  NewLabel,
  NewSession,
  PageQuery,
  Reset,
  SessionList,
  SessionParams,
  SessionView,
  Switched,
} from './schema.ts'
import type { SessionService } from './service.ts'
import type * as Show from './show.ts'

export interface SessionRouteDeps {
  readonly sessions: SessionService
  readonly agents: Agents
  readonly contextMessages: number
  readonly cleanUp: () => Promise<number>
  readonly measured: (context: SessionContext) => Promise<SessionContext>
}

export function sessionRoutes(deps: SessionRouteDeps): readonly AnyRoute[] {
  return [
    activeRoute(deps),
    agentListRoute(deps),
    createRoute(deps),
    switchRoute(deps),
    resetRoute(deps),
    clearRoute(deps),
    removeRoute(deps),
    findByLabelRoute(deps),
    labelRoute(deps),
    cleanupRoute(deps),
    listRoute(deps, '/api/sessions', 'List all sessions'),
    listRoute(deps, '/api/memory/sessions', 'List all sessions (alternate listing)'),
    readRoute(deps, '/api/sessions/:id', 'Read a session'),
    readRoute(deps, '/api/memory/sessions/:id', 'Read a session (alternate listing)'),
  ]
}

function activeRoute(deps: SessionRouteDeps): AnyRoute {
  const { agents } = deps
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/session',
    summary: 'Read the active session of an agent',
    description:
      'The newest messages, oldest first; `before` takes the id of the first one to page back. ' +
      '`message_count` counts the whole session, and `has_earlier` says whether there is a page before this one.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: PageQuery,
    returns: SessionView,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const agent = await agents.require(params.id)
      return show(deps, agent.sessionId, agent, agent.id, query)
    },
  })
}

function agentListRoute({ sessions, agents }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/sessions',
    summary: 'List the sessions of an agent',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    returns: AgentSessionList,
    errors: ['agent_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      return {
        sessions: (await sessions.list(agent.id)).map((session) =>
          Object.assign(toItem(session, agent), { session_id: session.id }),
        ),
      }
    },
  })
}

function createRoute({ sessions }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/sessions',
    summary: 'Create a session and make it the active one',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: AgentParams,
    body: NewSession,
    returns: CreatedSession,
    status: 201,
    errors: ['agent_not_found', 'conflict'],
    idempotent: true,
    async handle({ params, body, effectId }) {
      return { session_id: await sessions.create(params.id, body.label, { id: effectId }), label: body.label }
    },
  })
}

function switchRoute({ sessions, agents }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/sessions/:session_id/switch',
    summary: 'Make a session the active one',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: AgentSessionParams,
    returns: Switched,
    errors: ['agent_not_found', 'session_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      const session = await sessions.require(params.session_id)
      if (session.agentId !== agent.id)
        throw new Refusal('session_not_found', `No session ${params.session_id} of this agent`)
      await sessions.activate(agent.id, session.id)
      return { status: 'ok' as const, message: 'Session switched', session_id: session.id }
    },
  })
}

function resetRoute({ sessions }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/session/reset',
    summary: 'Give an agent a new, empty session',
    description:
      'A turn that runs in the old session is cancelled. The old session stays readable under `/api/sessions/{id}`.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: AgentParams,
    returns: Reset,
    errors: ['agent_not_found'],
    idempotent: true,
    async handle({ params, effectId }) {
      const session = await sessions.reset(params.id, effectId)
      return { status: 'reset' as const, agent_id: params.id, new_session_id: session }
    },
  })
}

function clearRoute({ sessions }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/agents/:id/history',
    summary: 'Delete the messages of the active session',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    returns: Done,
    errors: ['agent_not_found'],
    async handle({ params }) {
      await sessions.clear(params.id)
      return { status: 'ok' as const, message: 'All history cleared' }
    },
  })
}

function removeRoute({ sessions, agents }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/sessions/:id',
    summary: 'Delete a session and its messages',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: SessionParams,
    returns: Deleted,
    errors: ['session_not_found'],
    description: 'When it is the active one, the agent gets a new, empty one.',
    async handle({ params }) {
      const session = await sessions.require(params.id)
      await sessions.remove(session)
      // Left active, it would come back under its id with the next message.
      if ((await agents.find(session.agentId))?.sessionId === session.id) await sessions.create(session.agentId, null)
      return { status: 'deleted' as const, session_id: params.id }
    },
  })
}

function findByLabelRoute({ sessions, agents }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/sessions/by-label/:label',
    summary: 'Find a session of an agent by its label',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: LabelParams,
    returns: FoundSession,
    errors: ['agent_not_found', 'session_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      const session = await sessions.findByLabel(agent.id, params.label)
      if (!session) {
        const labels = (await sessions.list(agent.id)).flatMap(({ label }) => label ?? [])
        const meant = suggest(findNearest(params.label, labels))
        throw new Refusal('session_not_found', `No session found with that label${meant}`)
      }
      return {
        session_id: session.id,
        agent_id: agent.id,
        label: params.label,
        message_count: session.messageCount,
        created_at: session.createdAt,
        active: agent.sessionId === session.id,
      }
    },
  })
}

function labelRoute(deps: SessionRouteDeps): AnyRoute {
  const { sessions } = deps
  return defineRoute({
    method: 'PUT',
    path: '/api/sessions/:id/label',
    summary: 'Label a session',
    description: '`null` removes the label. Labels are unique among the sessions of an agent.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: SessionParams,
    body: NewLabel,
    returns: Labelled,
    errors: ['session_not_found', 'conflict'],
    async handle({ params, body }) {
      await sessions.label((await findUnwritten(deps, params.id)) ?? (await sessions.require(params.id)), body.label)
      return { status: 'updated' as const, session_id: params.id, label: body.label }
    },
  })
}

function cleanupRoute({ cleanUp }: SessionRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/sessions/cleanup',
    summary: 'Remove old and orphaned sessions',
    description:
      'Those of removed agents, and by the configured `retention_days` and `max_sessions_per_agent`. ' +
      'Never an active one.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    returns: Cleaned,
    async handle() {
      return { sessions_deleted: await cleanUp() }
    },
  })
}

function listRoute({ sessions, agents }: SessionRouteDeps, path: `/${string}`, summary: string): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: SessionList,
    async handle() {
      const byId = new Map((await agents.list()).map((agent) => [agent.id, agent]))
      return { sessions: (await sessions.list()).map((session) => toItem(session, byId.get(session.agentId))) }
    },
  })
}

function readRoute(deps: SessionRouteDeps, path: `/${string}`, summary: string): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: SessionParams,
    query: PageQuery,
    returns: SessionView,
    errors: ['session_not_found'],
    async handle({ params, query }) {
      const session = (await findUnwritten(deps, params.id)) ?? (await deps.sessions.require(params.id))
      return show(deps, session.id, await deps.agents.find(session.agentId), session.agentId, query)
    },
  })
}

async function show(...asked: Parameters<typeof Show.show>) {
  return (await import('./show.ts')).show(...asked)
}
/** The active session of an agent, while it has no message and so is not stored yet. */
async function findUnwritten({ sessions, agents }: SessionRouteDeps, id: string): Promise<Session | undefined> {
  if (await sessions.find(id)) return undefined
  const agent = (await agents.list()).find(({ sessionId }) => sessionId === id)
  return agent && { id, agentId: agent.id, label: null, title: '', messageCount: 0, createdAt: agent.createdAt }
}
function toItem(session: Session, agent: Agent | undefined) {
  return {
    id: session.id,
    agent_id: session.agentId,
    agent_name: agent?.name ?? null,
    message_count: session.messageCount,
    created_at: session.createdAt,
    label: session.label,
    title: session.title,
    active: agent?.sessionId === session.id,
  }
}
