import { setTimeout as delay } from 'node:timers/promises'
import type * as v from 'valibot'
import { ServerAway } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { KeyedQueue } from 'svc/sdk'
import type { AcceptedTurn, TurnRequest, TurnResult } from '../../chat/contract.ts'
import type { DeliveryView } from './answers/delivery.ts'
import type { AdmittedRequest } from './gate.ts'
import type { InboundDeps } from './routes.ts'
import { readAgentName } from './agent-name.ts'
import type { AgentCall, AgentCallResult } from './schema.ts'

type Call = v.InferOutput<typeof AgentCall>
type CallResult = v.InferOutput<typeof AgentCallResult>

/** Asks an agent and waits for its answer. `deliveries`: one delivery of a request at a time. */
export async function answerCall(
  deps: InboundDeps & { readonly deliveries: KeyedQueue },
  admitted: AdmittedRequest,
  call: Call,
): Promise<CallResult> {
  const { effectId } = admitted
  const { agentId, result, isDuplicate } = await deps.deliveries.run(effectId, () => startTurn(deps, admitted, call))
  const ended = await waitAtMost(result, call.timeout_secs, effectId)
  const delivery = call.deliver ? await deliver(deps, effectId) : undefined
  const answer = toCallResult(ended, agentId, delivery)
  return isDuplicate ? { ...answer, duplicate: true as const } : answer
}
/** What came of an earlier request. */
export async function recallAnswer({ turns, answers }: InboundDeps, id: string): Promise<CallResult | undefined> {
  const known = await turns.replay(id)
  const view = await turns.find(id)
  return known && view && toCallResult(await known.result(), view.agentId, await (await answers()).view(id))
}
async function deliver({ answers: find }: InboundDeps, id: string): Promise<DeliveryView | undefined> {
  const answers = await find()
  await answers.follow(id)
  return answers.view(id)
}

interface StartedTurn {
  readonly agentId: string
  readonly result: Promise<TurnResult>
  readonly isDuplicate: boolean
}

/** The turn that answers a call: that of an earlier delivery of the same request, or a new one. */
async function startTurn(
  deps: InboundDeps,
  { effectId, isRepeat }: AdmittedRequest,
  call: v.InferOutput<typeof AgentCall>,
): Promise<StartedTurn> {
  const { wakes, turns, audit, models, background } = deps
  const { message, model } = call
  const name = readAgentName(call)
  const known = isRepeat ? await turns.replay(effectId) : undefined
  if (known) {
    const agentId = (await turns.find(effectId))?.agentId ?? ''
    return { agentId, result: handled(known.result()), isDuplicate: true }
  }
  const agent = await (await wakes()).chooseAgent(name)
  const choice =
    model === undefined ? undefined : await (await import('./model.ts')).chooseModel(models(), agent, model)
  const answers = call.deliver ? await deps.answers() : undefined
  const target = await answers?.check(call, agent.id)
  const remembered = target && (await answers?.remember(effectId, target))
  const turn = await acceptTurn(deps, effectId, { agentId: agent.id, text: message, model: choice, remembered })
  const result = handled(turn.result())
  if (answers) background(() => answers.follow(effectId))
  const by = choice ? `, of ${choice.provider}/${choice.model}` : ''
  await audit.write({
    event: 'webhook_received',
    agentId: agent.id,
    details: `turn ${effectId} requested${by}: ${message.length} characters`,
  })
  return { agentId: agent.id, result, isDuplicate: false }
}

async function acceptTurn(
  { chat, answers }: InboundDeps,
  id: string,
  {
    agentId,
    text,
    model,
    remembered,
  }: Pick<TurnRequest, 'agentId' | 'text'> & {
    readonly model: TurnRequest['model'] | undefined
    readonly remembered: string | undefined
  },
): Promise<AcceptedTurn> {
  try {
    const labels = ['ExternalNetwork'] as const
    return await chat.accept({ id, agentId, entryPoint: 'hook', text, labels, ...omitUndefined({ model }) })
  } catch (error) {
    // One that may have begun after all has its answer delivered.
    const mayHaveBegun = error instanceof ServerAway && error.mayBeWritten
    if (remembered !== undefined && !mayHaveBegun) await (await answers()).forget(id, remembered)
    throw error
  }
}

/** A caller that stopped waiting does not need the rejection. */
function handled<T>(result: Promise<T>): Promise<T> {
  result.catch(() => undefined)
  return result
}

function toCallResult(
  result: TurnResult,
  agentId: string,
  delivery: DeliveryView | undefined,
): v.InferOutput<typeof AgentCallResult> {
  return {
    status: 'completed',
    agent_id: agentId,
    response: result.text,
    usage: { input_tokens: result.usage.input, output_tokens: result.usage.output },
    turn_id: result.turnId,
    session_id: result.sessionId,
    ...omitUndefined({ delivery }),
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
