import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Session } from './contract.ts'
import {
  AgentSessionList, AgentSessionParams, CreatedSession, Deleted, Done, NewSession, PageQuery, Reset, SessionList, SessionParams, SessionView, Switched,
} from './schema.ts'
import type { SessionService } from './service.ts'
import { toView } from './view.ts'

/** Four characters a token, the usual rule of thumb. */
const CHARS_PER_TOKEN = 4

export function sessionRoutes(sessions: SessionService, agents: Agents, contextMessages: number): readonly AnyRoute[] {
  async function show(sessionId: string, agent: Agent | undefined, agentId: string, query: { limit: number; before?: string | undefined }) {
    const [session, chars, page] = await Promise.all([
      sessions.find(sessionId),
      sessions.chars(sessionId, contextMessages),
      sessions.page(sessionId, { limit: query.limit, ...(query.before === undefined ? {} : { before: query.before }) }),
    ])
    return {
      session_id: sessionId, agent_id: agentId, message_count: session?.messageCount ?? 0,
      context_window_tokens: Math.ceil(chars / CHARS_PER_TOKEN), label: session?.label ?? null, created_at: session?.createdAt ?? null,
      active: agent?.sessionId === sessionId, messages: toView(page),
    }
  }
  async function require(id: string): Promise<Session> {
    const session = await sessions.find(id)
    if (!session) throw new Refusal('session_not_found', `No session ${id}`)
    return session
  }

  const active = defineRoute({
    method: 'GET', path: '/api/agents/:id/session', summary: 'Read the active session of an agent',
    description: 'The newest messages, oldest first; `before` takes the id of the first one to page back. `message_count` counts the whole session.',
    auth: 'bearer', cost: 5, params: AgentParams, query: PageQuery, returns: SessionView, errors: ['agent_not_found'],
    async handle({ params, query }) {
      const agent = await agents.require(params.id)
      return show(agent.sessionId, agent, agent.id, query)
    },
  })
  const ofAgent = defineRoute({
    method: 'GET', path: '/api/agents/:id/sessions', summary: 'List the sessions of an agent',
    auth: 'bearer', cost: 5, params: AgentParams, returns: AgentSessionList, errors: ['agent_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      return { sessions: (await sessions.list(agent.id)).map((session) => Object.assign(toItem(session, agent), { session_id: session.id })) }
    },
  })
  const create = defineRoute({
    method: 'POST', path: '/api/agents/:id/sessions', summary: 'Create a session and make it the active one',
    auth: 'bearer', cost: 5, params: AgentParams, body: NewSession, returns: CreatedSession, status: 201, errors: ['agent_not_found'],
    async handle({ params, body }) {
      return { session_id: await sessions.create(params.id, body.label), label: body.label }
    },
  })
  const change = defineRoute({
    method: 'POST', path: '/api/agents/:id/sessions/:session_id/switch', summary: 'Make a session the active one',
    auth: 'bearer', cost: 5, params: AgentSessionParams, returns: Switched, errors: ['agent_not_found', 'session_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      const session = await require(params.session_id)
      if (session.agentId !== agent.id) throw new Refusal('session_not_found', `No session ${params.session_id} of this agent`)
      await sessions.activate(agent.id, session.id)
      return { status: 'ok' as const, message: 'Session switched', session_id: session.id }
    },
  })
  const reset = defineRoute({
    method: 'POST', path: '/api/agents/:id/session/reset', summary: 'Give an agent a new, empty session',
    description: 'A turn that runs in the old session is cancelled. The old session stays readable under `/api/sessions/{id}`.',
    auth: 'bearer', cost: 5, params: AgentParams, returns: Reset, errors: ['agent_not_found'],
    async handle({ params }) {
      return { status: 'reset' as const, agent_id: params.id, new_session_id: await sessions.reset(params.id) }
    },
  })
  const clear = defineRoute({
    method: 'DELETE', path: '/api/agents/:id/history', summary: 'Delete the messages of the active session',
    auth: 'bearer', cost: 5, params: AgentParams, returns: Done, errors: ['agent_not_found'],
    async handle({ params }) {
      await sessions.clear(params.id)
      return { status: 'ok' as const, message: 'All history cleared' }
    },
  })
  const list = defineRoute({
    method: 'GET', path: '/api/sessions', summary: 'List all sessions', auth: 'bearer', cost: 5, returns: SessionList,
    async handle() {
      const names = new Map((await agents.list()).map((agent) => [agent.id, agent]))
      return { sessions: (await sessions.list()).map((session) => toItem(session, names.get(session.agentId))) }
    },
  })
  const read = defineRoute({
    method: 'GET', path: '/api/sessions/:id', summary: 'Read a session', auth: 'bearer', cost: 5,
    params: SessionParams, query: PageQuery, returns: SessionView, errors: ['session_not_found'],
    async handle({ params, query }) {
      const session = await require(params.id)
      return show(session.id, await agents.find(session.agentId), session.agentId, query)
    },
  })
  const remove = defineRoute({
    method: 'DELETE', path: '/api/sessions/:id', summary: 'Delete a session and its messages',
    auth: 'bearer', cost: 5, params: SessionParams, returns: Deleted, errors: ['session_not_found'],
    async handle({ params }) {
      await sessions.remove(await require(params.id))
      return { status: 'deleted' as const, session_id: params.id }
    },
  })
  return [active, ofAgent, create, change, reset, clear, list, read, remove]
}

function toItem(session: Session, agent: Agent | undefined) {
  return {
    id: session.id, agent_id: session.agentId, agent_name: agent?.name ?? null, message_count: session.messageCount,
    created_at: session.createdAt, label: session.label, active: agent?.sessionId === session.id,
  }
}
