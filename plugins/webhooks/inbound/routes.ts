import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type * as v from 'valibot'
import { readJsonBody } from 'svc/internal'
import { defineRoute, parse, rawBody, Refusal } from 'svc/sdk'
import type { AnyRoute, Hooks } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, TurnResult, Turns } from '../../chat/contract.ts'
import { HookReceived } from '../contract.ts'
import type { InboundGate } from './gate.ts'
import type { ModelParts } from './model.ts'
import { AgentCall, Called, namedAgent, Wake, Woken } from './schema.ts'
import type { Waker } from './waker.ts'

export interface InboundParts {
  readonly gate: InboundGate
  readonly waker: Waker
  readonly chat: Chat
  readonly turns: Turns
  readonly audit: Audit
  readonly hooks: Hooks
  readonly models: ModelParts
  readonly maxBytes: number
  /** Runs what unloading waits for and the caller does not. */
  readonly background: (work: () => Promise<void>) => void
}

const HOW =
  'For programs that have no API key: the bearer token is that of `[webhook_triggers]`, and the path does not exist while that is off. A request may be signed instead, as in the Standard Webhooks specification with the token as secret (`whsec_…`, or the text itself), and needs no bearer token then. ' +
  'A signed request counts once for its `webhook-id` and within five minutes of its `webhook-timestamp`. `Idempotency-Key` is honoured too.'
const MODEL =
  "With `model` another model answers this one turn: an alias, `provider/model`, or a model of the agent's provider. `deliver` is refused: there is no channel an answer could be delivered to."

export function inboundRoutes({
  gate,
  waker,
  chat,
  turns,
  audit,
  hooks,
  models,
  maxBytes,
  background,
}: InboundParts): readonly AnyRoute[] {
  const wake = defineRoute({
    method: 'POST',
    path: '/api/hooks/wake',
    summary: 'Wake an agent from outside',
    description: `${HOW} The text is on disk when this is answered; the first agent gets it, or the one that is named, at once or at the next beat.`,
    auth: 'bearer',
    token: gate.token,
    signed: gate.signed,
    effect: 'conversation',
    cost: 30,
    body: rawBody(maxBytes, Wake),
    returns: Woken,
    errors: ['not_found', 'agent_not_found', 'rate_limit', 'conflict'],
    idempotent: true,
    example: {
      body: { text: 'The build is red.', mode: 'now' },
      returns: { status: 'accepted', mode: 'now', id: '0f9d1c1e-3f0e-4a3e-9a53-0c8f0b6f9d11' },
    },
    async handle(input) {
      const { effectId, isRepeat } = await gate.admit(input.body, input, input.effectId ?? randomUUID(), 'wake')
      const asked = parse(Wake, readJsonBody(input.body), 'body')
      const { text, mode } = asked
      const agent = namedAgent(asked)
      // Between the memory of a request and its effect a crash may have come.
      if (isRepeat && (await waker.has(effectId)))
        return { status: 'accepted' as const, mode, id: effectId, duplicate: true as const }
      // Nobody could be told later that there is no such agent.
      if (agent !== undefined) await waker.choose(agent)
      await waker.accept({ id: effectId, agent: agent ?? null, mode, text, created_at: new Date().toISOString() })
      background(async () => {
        await hooks.emit(HookReceived, { id: effectId, mode, text })
        if (mode === 'now') await waker.flush(false)
      })
      return { status: 'accepted' as const, mode, id: effectId }
    },
  })
  const call = defineRoute({
    method: 'POST',
    path: '/api/hooks/agent',
    summary: 'Ask an agent from outside and wait for its answer',
    description: `${HOW} What is not answered in time goes on and can be asked for again under the same id. ${MODEL}`,
    auth: 'bearer',
    token: gate.token,
    signed: gate.signed,
    effect: 'conversation',
    cost: 30,
    body: rawBody(maxBytes, AgentCall),
    returns: Called,
    errors: ['not_found', 'agent_not_found', 'rate_limit', 'conflict', 'service_unavailable'],
    idempotent: true,
    example: { body: { message: 'Summarise the incident.', agent: 'assistant' } },
    async handle(input) {
      const { effectId, isRepeat } = await gate.admit(input.body, input, input.effectId ?? randomUUID(), 'agent')
      const asked = parse(AgentCall, readJsonBody(input.body), 'body')
      const { message, deliver, model, timeout_secs: timeoutSecs } = asked
      const wanted = namedAgent(asked)
      if (deliver)
        throw new Refusal(
          'invalid_request',
          'deliver: there is no channel an answer could be delivered to; leave it out and take the answer from here',
        )
      const known = isRepeat ? await turns.replay(effectId) : undefined
      if (known)
        return {
          ...toCalled(await within(known.result(), timeoutSecs, effectId), (await turns.find(effectId))?.agentId ?? ''),
          duplicate: true as const,
        }
      const agent = await waker.choose(wanted)
      const choice =
        model === undefined ? undefined : await (await import('./model.ts')).chooseModel(models, agent, model)
      const turn = await chat.accept({
        id: effectId,
        agentId: agent.id,
        door: 'hook',
        text: message,
        labels: ['ExternalNetwork'],
        ...(choice ? { model: choice } : {}),
      })
      await audit.write({
        event: 'webhook_received',
        agentId: agent.id,
        details: `turn ${effectId} asked for${choice ? `, of ${choice.provider}/${choice.model}` : ''}: ${message.length} characters`,
      })
      return toCalled(await within(turn.result(), timeoutSecs, effectId), agent.id)
    },
    async recall(id) {
      const [known, view] = [await turns.replay(id), await turns.find(id)]
      return known && view && toCalled(await known.result(), view.agentId)
    },
  })
  return [wake, call]
}

function toCalled(result: TurnResult, agentId: string): v.InferOutput<typeof Called> {
  return {
    status: 'completed',
    agent_id: agentId,
    response: result.text,
    usage: { input_tokens: result.usage.input, output_tokens: result.usage.output },
    turn_id: result.turnId,
    session_id: result.sessionId,
  }
}
/** The turn goes on beyond that. */
async function within<T>(result: Promise<T>, seconds: number, turnId: string): Promise<T> {
  const late = new AbortController()
  // Whoever gave up waiting is not told how it ended.
  result.catch(() => undefined)
  try {
    return await Promise.race([
      result,
      delay(seconds * 1000, undefined, { signal: late.signal, ref: false }).then(() => {
        throw new Refusal('service_unavailable', `No answer within ${seconds} seconds; it is still being worked on`, {
          retryAfterSecs: 10,
          details: { turn_id: turnId },
        })
      }),
    ])
  } finally {
    late.abort()
  }
}
