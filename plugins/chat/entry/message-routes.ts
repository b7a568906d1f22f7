import * as v from 'valibot'
import { defineRoute, omitUndefined, Refusal, reply } from 'svc/sdk'
import { orAbsent } from 'svc/internal'
import type { AnyRoute, EventStream } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Uploads } from '../../files/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import { TurnInterrupted } from '../contract.ts'
import type { AcceptedTurn, Chat, TurnEvent, TurnRequest, TurnResult, Turns } from '../contract.ts'
import { withAttachments } from './attachments.ts'
import type { AttachmentRules } from './attachments.ts'
import { encodeEventSource, encodeSse, MessageEvent } from './encode-sse.ts'
import { MessageAnswer, MessageQuery, NewMessage, OptionalMessage, SessionId, Stopped } from './schema.ts'

export interface MessageRouteDeps {
  readonly chat: Chat
  readonly turns: Turns
  readonly agents: Agents
  readonly sessions: Sessions
  /** `undefined` while the plugin is not loaded. */
  readonly uploads: () => Uploads | undefined
  readonly attachmentRules: AttachmentRules
}

const errors = [
  'agent_not_found',
  'session_not_found',
  'file_not_found',
  'payload_too_large',
  'conflict',
  'rate_limit',
  'service_unavailable',
  TurnInterrupted,
] as const
const example = { body: { message: 'What time is it?' } }
const DURABLE = 'The message is on disk before it is worked on. It is answered and stored even if you disconnect.'
const KEY =
  'With an `Idempotency-Key` a repeated request is answered by the turn it made first, which goes on after a crash.'

export function messageRoutes(deps: MessageRouteDeps): readonly AnyRoute[] {
  return [messageRoute(deps), streamRoute(deps), eventSourceRoute(deps), stopRoute(deps)]
}

async function accept(
  { chat, uploads, attachmentRules }: MessageRouteDeps,
  agentId: string,
  body: NewMessage,
  entryPoint: TurnRequest['entryPoint'],
  id: string | undefined,
): Promise<AcceptedTurn> {
  const { message, attachments, session_id: sessionId, thinking, response_format: responseFormat } = body
  const content = attachments?.length
    ? await withAttachments(uploads(), agentId, message, attachments, attachmentRules)
    : { text: message }
  // Who sent a key asks again with it, and gets the answer then.
  const resumable = id === undefined ? undefined : true
  return chat.accept({
    agentId,
    entryPoint,
    ...content,
    ...omitUndefined({ id, sessionId, thinking, responseFormat, resumable }),
  })
}

function messageRoute(deps: MessageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/message',
    summary: 'Send a message and wait for the whole answer',
    description: `${DURABLE} ${KEY}`,
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: AgentParams,
    body: NewMessage,
    returns: MessageAnswer,
    errors,
    example,
    idempotent: true,
    async handle({ params, body, effectId }) {
      const turn = await accept(deps, params.id, body, 'rest', effectId)
      return encodeJson(await turn.result())
    },
    async recall(id) {
      const turn = await deps.turns.replay(id)
      return turn && encodeJson(await turn.result())
    },
  })
}

function encodeJson(result: TurnResult): v.InferOutput<typeof MessageAnswer> {
  return {
    response: result.text,
    ...omitUndefined({ thinking: result.reasoning }),
    input_tokens: result.usage.input,
    output_tokens: result.usage.output,
    iterations: result.iterations,
    cost_usd: result.costUsd,
    session_id: result.sessionId,
    turn_id: result.turnId,
    provider: result.provider,
    model: result.model,
    stop: result.stop,
    ...omitUndefined({ context_pressure: result.contextPressure }),
  }
}

function streamRoute(deps: MessageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/message/stream',
    summary: 'Send a message and read the answer as it is written',
    description:
      'Events: chunk, thinking, phase (what is waited for), tool_use, tool_result, done; ' +
      'error when it fails underway. ' +
      'What fails before the first event answers with its status, ' +
      'unless that takes longer than `[http] stream_status_ms`. ' +
      'The header `X-Turn-Id` and the first event name the turn. Disconnecting stops nothing that was accepted: ' +
      `\`GET /api/agents/{id}/turns/{turn_id}\` tells what came of it. ${KEY}`,
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: AgentParams,
    body: NewMessage,
    returns: MessageEvent,
    streams: MessageEvent,
    errors,
    example,
    idempotent: true,
    async handle({ params, body, effectId }): Promise<EventStream> {
      const turn = await accept(deps, params.id, body, 'sse', effectId)
      return encodeSse(turn.events(), turn.id)
    },
    async recall(id) {
      const turn = await deps.turns.replay(id)
      return turn && encodeSse(turn.events(), id)
    },
  })
}

function eventSourceRoute(deps: MessageRouteDeps): AnyRoute {
  const { agents, turns } = deps
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/stream',
    summary: 'Send a message and read the answer as it is written (alternate listing)',
    description:
      'The message is in the body, or in the query for clients that cannot send a body with GET. ' +
      'An `EventSource` asks again whenever a stream ends: ' +
      'with the `Last-Event-ID` of a turn of this agent nothing is sent, and the answer is 204, which ends it. ' +
      'The id is sent at once, so what the provider refuses is an `error` event and no status. ' +
      'With `idempotency_key` (or the header) also a line that was lost before the id came ' +
      'sends nothing twice: the answer is read again.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: AgentParams,
    query: MessageQuery,
    body: OptionalMessage,
    returns: MessageEvent,
    streams: MessageEvent,
    answers: { 204: { description: 'Nothing was sent: the stream of this turn has ended' } },
    errors,
    idempotent: true,
    async handle({ params, query, body, header, effectId }) {
      const text = body?.message ?? query.message
      if (text === undefined) throw new Refusal('invalid_request', 'message: a message is needed')
      const { id } = await agents.require(params.id)
      const before = header('last-event-id')
      if (before !== undefined && (await turns.find(before))?.agentId === id) return reply(null, {}, 204)
      const turn = await accept(deps, id, { ...query, ...body, message: text }, 'sse', effectId)
      return encodeEventSource(turn.events(), turn.id)
    },
    async recall(id, { header }) {
      if (header('last-event-id') === id) return reply(null, {}, 204)
      try {
        const turn = await turns.replay(id)
        return turn && encodeEventSource(turn.events(), id)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return encodeEventSource(failing(error), id)
      }
    },
  })
}

function stopRoute({ chat, agents, sessions }: MessageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/stop',
    summary: 'Cancel what an agent is doing',
    description:
      'Cancels the running answers of all sessions of the agent, or with `session_id` that of one. ' +
      'What was said so far is kept and marked as cancelled. Messages that wait are answered.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: AgentParams,
    body: v.optional(v.object({ session_id: orAbsent(SessionId) })),
    returns: Stopped,
    errors: ['agent_not_found', 'session_not_found'],
    async handle({ params, body }) {
      const agent = await agents.require(params.id)
      const found = await chat.stop(agent.id, body?.session_id)
      if (!found && body?.session_id !== undefined) await checkSession(sessions, agent, body.session_id)
      return { status: 'stopped' as const, message: found ? 'Agent run cancelled' : 'No active run' }
    },
  })
}

/** Throws when a session is not of this agent. Its active session may have no message, and so not be stored yet. */
export async function checkSession(sessions: Sessions, agent: Agent, sessionId: string): Promise<void> {
  if (sessionId === agent.sessionId) return
  const session = await sessions.find(sessionId)
  if (session?.agentId !== agent.id) throw new Refusal('session_not_found', `No session ${sessionId} of this agent`)
}

function failing(error: Refusal): AsyncIterable<TurnEvent> {
  const next = async (): Promise<never> => {
    throw error
  }
  return { [Symbol.asyncIterator]: () => ({ next }) }
}
