import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { Agents } from '../../agents/contract.ts'
import type { TurnFailure } from '../../journal/contract.ts'
import type { Chat, TurnView } from '../contract.ts'
import { DroppedTurn, OneTurn, RetriedTurn, ShownTurn, TurnList, TurnParams, TurnsQuery } from './schema.ts'
import type { ListedTurn, TurnLookup } from '../turn/lookup.ts'

export interface TurnRouteDeps {
  readonly turns: TurnLookup
  readonly agents: Agents
  readonly chat: Chat
}

const description =
  '`state` is queued, running, waiting (for an approval), done, failed, cancelled or interrupted. ' +
  '`ahead` names the turns that are answered before it.'

/** What became of a message, for clients that lost the connection over which they sent it. */
export function turnRoutes(deps: TurnRouteDeps): readonly AnyRoute[] {
  return [agentTurnRoute(deps), turnRoute(deps), listRoute(deps), retryRoute(deps), dropRoute(deps)]
}

function agentTurnRoute({ turns, agents }: TurnRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/turns/:turn_id',
    summary: 'Read what became of a message',
    description,
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: TurnParams,
    returns: ShownTurn,
    errors: ['agent_not_found', 'turn_not_found'],
    async handle({ params }) {
      return show(turns, params.turn_id, (await agents.require(params.id)).id)
    },
  })
}

function turnRoute({ turns }: TurnRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/turns/:id',
    summary: 'Read what became of a message',
    description,
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: OneTurn,
    returns: ShownTurn,
    errors: ['turn_not_found'],
    handle: ({ params }) => show(turns, params.id),
  })
}

function listRoute({ turns, agents }: TurnRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/turns',
    summary: 'List the messages of an agent and where they stand',
    description: `Newest first. ${description}`,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: TurnsQuery,
    returns: TurnList,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const agent = await agents.require(params.id)
      return { turns: (await turns.list(agent.id, query.limit)).map(toListItem) }
    },
  })
}

function retryRoute({ turns, chat }: TurnRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/turns/:id/retry',
    summary: 'Answer a message again whose turn failed',
    description:
      'A new turn with the same text, images and options, at the end of the session; the failed one no longer shows. ' +
      'Also for a turn that was interrupted. A message whose turn failed is not given to a model again in ' +
      'any other way.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: OneTurn,
    returns: RetriedTurn,
    status: 202,
    errors: ['turn_not_found', 'conflict', 'rate_limit', 'service_unavailable'],
    idempotent: true,
    async handle({ params, effectId }) {
      const turn = await chat.retry(params.id, 'rest', effectId)
      return { turn_id: turn.id, session_id: turn.sessionId, agent_id: turn.agentId, retried: params.id }
    },
    async recall(id, { params }) {
      const turn = await turns.find(id)
      return turn && { turn_id: id, session_id: turn.sessionId, agent_id: turn.agentId, retried: params.id }
    },
  })
}

function dropRoute({ chat }: TurnRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/turns/:id/drop',
    summary: 'Take a message out of view whose turn failed',
    description: 'Also for a turn that was interrupted. That it was there stays in the audit trail.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: OneTurn,
    returns: DroppedTurn,
    errors: ['turn_not_found', 'conflict'],
    async handle({ params }) {
      const { sessionId, agentId } = await chat.drop(params.id)
      return { status: 'dropped' as const, turn_id: params.id, session_id: sessionId, agent_id: agentId }
    },
  })
}

async function show(turns: TurnLookup, id: string, agentId?: string) {
  const view = await turns.find(id)
  if (!view || (agentId !== undefined && view.agentId !== agentId))
    throw new Refusal('turn_not_found', `No turn ${id}${agentId === undefined ? '' : ' of this agent'}`)
  return encode(view)
}

function encodeFailure({ retryAfterSecs, ...failure }: TurnFailure) {
  return { ...failure, retry_after_secs: retryAfterSecs }
}
function encode(view: TurnView) {
  return {
    turn_id: view.id,
    agent_id: view.agentId,
    session_id: view.sessionId,
    entry_point: view.entryPoint,
    state: view.state,
    text: view.text,
    iterations: view.iterations,
    usage: view.usage && { input_tokens: view.usage.input, output_tokens: view.usage.output },
    cost_usd: view.costUsd,
    provider: view.provider,
    model: view.model,
    error: view.error,
    failure: view.failure && encodeFailure(view.failure),
    phase: view.phase && {
      phase: view.phase.phase,
      detail: view.phase.detail,
      since: view.phase.since,
      retry_at: view.phase.retryAt ?? null,
      attempt: view.phase.attempt ?? null,
    },
    created_at: view.createdAt,
    ahead: [...view.ahead],
  }
}
function toListItem(turn: ListedTurn) {
  return {
    turn_id: turn.id,
    agent_id: turn.agentId,
    session_id: turn.sessionId,
    entry_point: turn.entryPoint,
    state: turn.state,
    error: turn.error ?? null,
    created_at: turn.createdAt,
    ahead: [...turn.ahead],
  }
}
