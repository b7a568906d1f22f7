import { randomUUID } from 'node:crypto'
import { readJsonBody } from 'svc/internal'
import { defineRoute, KeyedQueue, parse, rawBody } from 'svc/sdk'
import type { AnyRoute, Hooks } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import { TurnInterrupted } from '../../chat/contract.ts'
import type { Chat, Turns } from '../../chat/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { InboundGate } from './gate.ts'
import { AgentCall, AgentCallResult, Wake, WakeResult } from './schema.ts'
import type { AnswerDelivery } from './answers/delivery.ts'
import type { WakeHandler } from './wake-handler.ts'

export interface InboundDeps {
  readonly gate: InboundGate
  readonly wakes: () => Promise<WakeHandler>
  readonly answers: () => Promise<AnswerDelivery>
  readonly chat: Chat
  readonly turns: Turns
  readonly audit: Audit
  readonly hooks: Hooks
  readonly models: () => Inference | undefined
  readonly maxBytes: number
  /** Runs work that unloading waits for and the caller does not. */
  readonly background: (work: () => Promise<void>) => void
}

const DESCRIPTION =
  'For programs that have no API key: the bearer token is that of `[webhook_triggers]`, ' +
  'and the path does not exist while that is off. ' +
  'A request may be signed instead, as in the Standard Webhooks specification with the token as secret ' +
  '(`whsec_…`, or the text itself), and needs no bearer token then. ' +
  'A signed request counts once for its `webhook-id` and within five minutes of its `webhook-timestamp`. ' +
  '`Idempotency-Key` is honoured too.'
const MODEL_DESCRIPTION =
  "With `model` another model answers this one turn: an alias, `provider/model`, or a model of the agent's provider. " +
  'With `deliver` the answer is also sent to `recipient` on `channel`, once.'

export function inboundRoutes(deps: InboundDeps): readonly AnyRoute[] {
  return [wakeRoute(deps), agentRoute(deps)]
}

function wakeRoute(deps: InboundDeps): AnyRoute {
  const { gate, maxBytes } = deps
  return defineRoute({
    method: 'POST',
    path: '/api/hooks/wake',
    summary: 'Wake an agent from outside',
    description:
      `${DESCRIPTION} The text is on disk when this is answered; the first agent gets it, or the one that is named, ` +
      'at once or at the next heartbeat.',
    auth: 'bearer',
    token: gate.token,
    signed: gate.signed,
    effect: 'conversation',
    cost: 30,
    body: rawBody(maxBytes, Wake),
    returns: WakeResult,
    errors: ['not_found', 'agent_not_found', 'rate_limit', 'conflict'],
    idempotent: true,
    example: {
      body: { text: 'The build is red.', mode: 'now' },
      returns: { status: 'accepted', mode: 'now', id: '0f9d1c1e-3f0e-4a3e-9a53-0c8f0b6f9d11' },
    },
    async handle(input) {
      const admitted = await gate.admit(input.body, input, input.effectId ?? randomUUID(), 'wake')
      const { takeWake } = await import('./wake-call.ts')
      return takeWake(deps, admitted, parse(Wake, readJsonBody(input.body), 'body'))
    },
  })
}

function agentRoute(deps: InboundDeps): AnyRoute {
  const { gate, maxBytes } = deps
  /** One delivery of a request at a time: a second one, sent at the same moment, finds the turn of the first. */
  const deliveries = new KeyedQueue()
  return defineRoute({
    method: 'POST',
    path: '/api/hooks/agent',
    summary: 'Send a message to an agent from outside and wait for its answer',
    description:
      `${DESCRIPTION} A turn that takes longer goes on; request its answer again under the same id. ` +
      MODEL_DESCRIPTION,
    auth: 'bearer',
    token: gate.token,
    signed: gate.signed,
    effect: 'conversation',
    cost: 30,
    body: rawBody(maxBytes, AgentCall),
    returns: AgentCallResult,
    errors: [
      'not_found',
      'agent_not_found',
      'channel_not_found',
      'rate_limit',
      'conflict',
      'service_unavailable',
      TurnInterrupted,
    ],
    idempotent: true,
    example: { body: { message: 'Summarise the incident.', agent: 'assistant' } },
    async handle(input) {
      const admitted = await gate.admit(input.body, input, input.effectId ?? randomUUID(), 'agent')
      const { answerCall } = await import('./agent-call.ts')
      return answerCall({ ...deps, deliveries }, admitted, parse(AgentCall, readJsonBody(input.body), 'body'))
    },
    async recall(id) {
      const { recallAnswer } = await import('./agent-call.ts')
      return recallAnswer(deps, id)
    },
  })
}
