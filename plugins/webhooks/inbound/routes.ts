import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type * as v from 'valibot'
import { readJsonBody } from 'svc/internal'
import { defineRoute, KeyedQueue, omitUndefined, parse, rawBody, Refusal } from 'svc/sdk'
import type { AnyRoute, Hooks } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, TurnResult, Turns } from '../../chat/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import { HookReceived } from '../contract.ts'
import type { AdmittedRequest, InboundGate } from './gate.ts'
import { AgentCall, AgentCallResult, readAgentName, Wake, WakeResult } from './schema.ts'
import type { WakeHandler } from './wake-handler.ts'

export interface InboundDeps {
  readonly gate: InboundGate
  readonly wakes: WakeHandler
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
  '`deliver` is refused: there is no channel an answer could be delivered to.'

export function inboundRoutes(deps: InboundDeps): readonly AnyRoute[] {
  return [wakeRoute(deps), agentRoute(deps)]
}

function wakeRoute({ gate, wakes, hooks, maxBytes, background }: InboundDeps): AnyRoute {
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
      const body = parse(Wake, readJsonBody(input.body), 'body')
      const { text, mode } = body
      const id = admitted.effectId
      const outcome = await wakes.receive(admitted, { agent: readAgentName(body), mode, text })
      if (outcome === 'duplicate') return { status: 'accepted' as const, mode, id, duplicate: true as const }
      background(async () => {
        await hooks.emit(HookReceived, { id, mode, text })
        if (mode === 'now') await wakes.flush(false)
      })
      return { status: 'accepted' as const, mode, id }
    },
  })
}

function agentRoute(deps: InboundDeps): AnyRoute {
  const { gate, turns, maxBytes } = deps
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
    errors: ['not_found', 'agent_not_found', 'rate_limit', 'conflict', 'service_unavailable'],
    idempotent: true,
    example: { body: { message: 'Summarise the incident.', agent: 'assistant' } },
    async handle(input) {
      const admitted = await gate.admit(input.body, input, input.effectId ?? randomUUID(), 'agent')
      const call = parse(AgentCall, readJsonBody(input.body), 'body')
      if (call.deliver)
        throw new Refusal(
          'invalid_request',
          'deliver: there is no channel an answer could be delivered to; leave it out and take the answer from here',
        )
      const { effectId } = admitted
      const { agentId, result, isDuplicate } = await deliveries.run(effectId, () => startTurn(deps, admitted, call))
      const answer = toCallResult(await waitAtMost(result, call.timeout_secs, effectId), agentId)
      return isDuplicate ? { ...answer, duplicate: true as const } : answer
    },
    async recall(id) {
      const known = await turns.replay(id)
      const view = await turns.find(id)
      return known && view && toCallResult(await known.result(), view.agentId)
    },
  })
}

interface StartedTurn {
  readonly agentId: string
  readonly result: Promise<TurnResult>
  readonly isDuplicate: boolean
}

/** The turn that answers a call: that of an earlier delivery of the same request, or a new one. */
async function startTurn(
  { wakes, chat, turns, audit, models }: InboundDeps,
  { effectId, isRepeat }: AdmittedRequest,
  call: v.InferOutput<typeof AgentCall>,
): Promise<StartedTurn> {
  const { message, model } = call
  const name = readAgentName(call)
  const known = isRepeat ? await turns.replay(effectId) : undefined
  if (known) {
    const agentId = (await turns.find(effectId))?.agentId ?? ''
    return { agentId, result: handled(known.result()), isDuplicate: true }
  }
  const agent = await wakes.chooseAgent(name)
  const choice =
    model === undefined ? undefined : await (await import('./model.ts')).chooseModel(models(), agent, model)
  const turn = await chat.accept({
    id: effectId,
    agentId: agent.id,
    entryPoint: 'hook',
    text: message,
    labels: ['ExternalNetwork'],
    ...omitUndefined({ model: choice }),
  })
  const result = handled(turn.result())
  const by = choice ? `, of ${choice.provider}/${choice.model}` : ''
  await audit.write({
    event: 'webhook_received',
    agentId: agent.id,
    details: `turn ${effectId} requested${by}: ${message.length} characters`,
  })
  return { agentId: agent.id, result, isDuplicate: false }
}

/** A caller that stopped waiting does not need the rejection. */
function handled<T>(result: Promise<T>): Promise<T> {
  result.catch(() => undefined)
  return result
}

function toCallResult(result: TurnResult, agentId: string): v.InferOutput<typeof AgentCallResult> {
  return {
    status: 'completed',
    agent_id: agentId,
    response: result.text,
    usage: { input_tokens: result.usage.input, output_tokens: result.usage.output },
    turn_id: result.turnId,
    session_id: result.sessionId,
  }
}

/** Throws `service_unavailable` after the timeout; the turn goes on. */
async function waitAtMost<T>(result: Promise<T>, seconds: number, turnId: string): Promise<T> {
  const done = new AbortController()
  const timeout = delay(seconds * 1000, undefined, { signal: done.signal, ref: false }).then(() => {
    throw new Refusal('service_unavailable', `No answer within ${seconds} seconds; it is still being worked on`, {
      retryAfterSecs: 10,
      details: { turn_id: turnId },
    })
  })
  try {
    return await Promise.race([result, timeout])
  } finally {
    done.abort()
  }
}
