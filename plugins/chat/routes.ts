import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, EventStream } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Chat, TurnRequest } from './contract.ts'
import { encodeJson, MessageAnswer } from './encode-json.ts'
import { encodeSse, MessageEvent } from './encode-sse.ts'
import { MessageQuery, NewMessage, OptionalMessage, Stopped } from './schema.ts'

const errors = ['agent_not_found', 'session_not_found', 'payload_too_large', 'rate_limit', 'service_unavailable'] as const
const example = { body: { message: 'What time is it?' } }

export function chatRoutes(chat: Chat, agents: Agents): readonly AnyRoute[] {
  async function stream(agentId: string, body: NewMessage): Promise<EventStream> {
    const turn = await chat.accept(toRequest(agentId, body, 'sse'))
    return encodeSse(turn.events())
  }

  const message = defineRoute({
    method: 'POST', path: '/api/agents/:id/message', summary: 'Send a message and wait for the whole answer',
    description: 'The message is on disk before it is worked on. It is answered and stored even if you disconnect.',
    auth: 'bearer', cost: 30, params: AgentParams, body: NewMessage, returns: MessageAnswer, errors, example,
    async handle({ params, body }) {
      const turn = await chat.accept(toRequest(params.id, body, 'rest'))
      return encodeJson(await turn.result())
    },
  })
  const streamed = defineRoute({
    method: 'POST', path: '/api/agents/:id/message/stream', summary: 'Send a message and read the answer as it is written',
    description: 'Events: chunk, tool_use, tool_result, done; error when it fails underway. Disconnecting stops nothing that was accepted.',
    auth: 'bearer', cost: 30, params: AgentParams, body: NewMessage, returns: MessageEvent, streams: MessageEvent, errors, example,
    handle: ({ params, body }) => stream(params.id, body),
  })
  const listed = defineRoute({
    method: 'GET', path: '/api/agents/:id/stream', summary: 'Send a message and read the answer as it is written (alternate listing)',
    description: 'The message is in the body, or in the query for clients that cannot send a body with GET.',
    auth: 'bearer', cost: 30, params: AgentParams, query: MessageQuery, body: OptionalMessage, returns: MessageEvent, streams: MessageEvent, errors,
    handle({ params, query, body }) {
      const text = body?.message ?? query.message
      if (text === undefined) throw new Refusal('invalid_request', 'message: a message is needed')
      return stream(params.id, { ...query, ...body, message: text })
    },
  })
  const stop = defineRoute({
    method: 'POST', path: '/api/agents/:id/stop', summary: 'Cancel what an agent is doing',
    description: 'What was said so far is kept and marked as cancelled. Messages that wait are answered.',
    auth: 'bearer', cost: 5, params: AgentParams, returns: Stopped, errors: ['agent_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      return { status: 'stopped' as const, message: chat.stop(agent.id) ? 'Agent run cancelled' : 'No active run' }
    },
  })
  return [message, streamed, listed, stop]
}

function toRequest(agentId: string, body: NewMessage, door: TurnRequest['door']): TurnRequest {
  return {
    agentId, text: body.message, door,
    ...(body.session_id === undefined ? {} : { sessionId: body.session_id }), ...(body.thinking === undefined ? {} : { thinking: body.thinking }),
  }
}
