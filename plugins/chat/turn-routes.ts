import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { TurnView } from './contract.ts'
import { OneTurn, ShownTurn, TurnList, TurnParams, TurnsQuery } from './schema.ts'
import type { TurnLookup } from './turns.ts'

/** "Where is my message?": what became of a message, for whoever lost the connection it was sent over. */
export function turnRoutes(turns: TurnLookup, agents: Agents): readonly AnyRoute[] {
  async function find(id: string, agentId?: string) {
    const view = await turns.find(id)
    if (!view || (agentId !== undefined && view.agentId !== agentId))
      throw new Refusal('turn_not_found', `No turn ${id}${agentId === undefined ? '' : ' of this agent'}`)
    return encode(view)
  }
  const description =
    '`state` is queued, running, waiting (for an approval), done, failed, cancelled or interrupted. `ahead` names the turns that are answered before it.'

  const ofAgent = defineRoute({
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
      return find(params.turn_id, (await agents.require(params.id)).id)
    },
  })
  const any = defineRoute({
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
    handle: ({ params }) => find(params.id),
  })
  const list = defineRoute({
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
      return {
        turns: (await turns.list(agent.id, query.limit)).map((turn) => ({
          turn_id: turn.id,
          agent_id: turn.agentId,
          session_id: turn.sessionId,
          door: turn.door,
          state: turn.state,
          error: turn.error ?? null,
          created_at: turn.createdAt,
          ahead: [...turn.ahead],
        })),
      }
    },
  })
  return [ofAgent, any, list]
}

function encode(view: TurnView) {
  return {
    turn_id: view.id,
    agent_id: view.agentId,
    session_id: view.sessionId,
    door: view.door,
    state: view.state,
    text: view.text,
    iterations: view.iterations,
    usage: view.usage && { input_tokens: view.usage.input, output_tokens: view.usage.output },
    cost_usd: view.costUsd,
    provider: view.provider,
    model: view.model,
    error: view.error,
    created_at: view.createdAt,
    ahead: [...view.ahead],
  }
}
