import type { ToolCall } from 'svc/providers'
import type { ToolResult } from 'svc/sdk'
import type { Label } from '../../sessions/contract.ts'
import type { TurnEvent } from '../contract.ts'
import type { Guard } from '../safety/loop-guard.ts'

/** `labels` is what the text carries. */
export type Outcome = Pick<ToolResult, 'text' | 'failed' | 'content' | 'structured'> & {
  readonly labels?: readonly Label[]
}
export interface ToolOutcome {
  readonly call: ToolCall
  readonly outcome: Outcome
}
/** Recorded calls without recorded results, with the outcomes that are known already. */
export interface PendingCalls {
  readonly calls: readonly ToolCall[]
  readonly known: ReadonlyMap<string, Outcome>
}
/** A call of an earlier process that has its result. */
export interface AnsweredCall {
  readonly tool: string
  readonly args: unknown
  readonly text: string
}
/** Properties of a tool the agent may call; a text says why it may not. */
export type Offer = { readonly risk: 'read' | 'write' | 'execute'; readonly polls: boolean } | string
/** What a step needs to run the calls of a model. */
export interface ToolPorts {
  readonly guard: Guard
  emit(event: Extract<TurnEvent, { type: 'tool-started' | 'tool-ended' }>): void
  offer(tool: string, args: unknown): Offer
  /** Rejects when the signal aborts, and while the database is away. */
  call(call: ToolCall, signal: AbortSignal): Promise<Outcome>
  /** Records the receipt of one call among several. */
  recordReceipt(call: ToolCall, outcome: Outcome): Promise<void>
  /** Durable before it settles: every outcome of the step. */
  recordResults(results: readonly ToolOutcome[]): Promise<void>
}

interface PlannedCall {
  readonly call: ToolCall
  readonly risk: 'read' | 'write' | 'execute'
  readonly polls: boolean
  /** Known without running the call. */
  readonly outcome?: Outcome
  readonly warning?: string
  /** Why the turn ends after this step. */
  readonly endReason?: string
}

/** Runs the calls of one step. `endReason` says why the turn ends after it, if it does. */
export async function runTools(
  { calls, known }: PendingCalls,
  ports: ToolPorts,
  signal: AbortSignal,
): Promise<{ readonly results: readonly ToolOutcome[]; readonly endReason: string | undefined }> {
  const plans = calls.map((call) => planCall(call, known, ports))
  const harmless = plans.every((plan) => plan.outcome || plan.risk === 'read')
  const results = await (harmless ? runTogether : runInOrder)(plans, ports, signal)
  await ports.recordResults(results)
  return { results, endReason: plans.findLast(({ endReason }) => endReason !== undefined)?.endReason }
}

/** Tells the guard of the calls that an earlier process ran. */
export function countEarlierCalls(earlier: readonly AnsweredCall[], ports: ToolPorts): void {
  for (const { tool, args, text } of earlier) {
    const polls = isPolling(ports.offer(tool, args))
    ports.guard.before(tool, args, polls)
    ports.guard.after(tool, args, polls, text)
  }
}

async function runTogether(
  plans: readonly PlannedCall[],
  ports: ToolPorts,
  signal: AbortSignal,
): Promise<readonly ToolOutcome[]> {
  for (const { call } of plans) ports.emit({ type: 'tool-started', tool: call.name, callId: call.id })
  const results = await Promise.all(
    plans.map(async (plan) => ({ call: plan.call, outcome: await runCall(plan, ports, signal) })),
  )
  for (const result of results) ports.emit(toEndedEvent(result))
  return results
}

async function runInOrder(
  plans: readonly PlannedCall[],
  ports: ToolPorts,
  signal: AbortSignal,
): Promise<readonly ToolOutcome[]> {
  const results: ToolOutcome[] = []
  for (const plan of plans) {
    const { call } = plan
    ports.emit({ type: 'tool-started', tool: call.name, callId: call.id })
    const result = { call, outcome: await runCall(plan, ports, signal) }
    results.push(result)
    // The next call may have an effect of its own, so this receipt is on disk before it.
    if (!plan.outcome && results.length < plans.length) await ports.recordReceipt(call, result.outcome)
    ports.emit(toEndedEvent(result))
  }
  return results
}

function planCall(call: ToolCall, known: ReadonlyMap<string, Outcome>, ports: ToolPorts): PlannedCall {
  const answered = (outcome: Outcome): PlannedCall => ({ call, risk: 'read', polls: false, outcome })
  const settled = known.get(call.id)
  if (settled) return answered(settled)
  const offer = ports.offer(call.name, call.args)
  // Refused calls count too, or a model could ask for what it may not have for ever.
  const verdict = ports.guard.before(call.name, call.args, isPolling(offer))
  if (verdict.action === 'end')
    return { ...answered({ text: `blocked: ${verdict.reason}`, failed: true }), endReason: verdict.reason }
  if (typeof offer === 'string') return answered({ text: offer, failed: true })
  if (typeof call.args === 'string')
    return answered({ text: `The arguments of ${call.name} are not valid JSON. Send one JSON object.`, failed: true })
  if (verdict.action === 'block') return answered({ text: `blocked: ${verdict.reason}`, failed: true })
  return { call, ...offer, ...(verdict.action === 'warn' && { warning: verdict.reason }) }
}

const isPolling = (offer: Offer): boolean => typeof offer === 'object' && offer.polls

async function runCall({ call, polls, ...plan }: PlannedCall, ports: ToolPorts, signal: AbortSignal): Promise<Outcome> {
  if (plan.outcome) return plan.outcome
  const outcome = await ports.call(call, signal)
  const repeated = ports.guard.after(call.name, call.args, polls, outcome.text)
  const warning = plan.warning ?? repeated
  return warning === undefined ? outcome : { ...outcome, text: `${outcome.text}\n\n[warning: ${warning}]` }
}

function toEndedEvent({ call, outcome }: ToolOutcome): Extract<TurnEvent, { type: 'tool-ended' }> {
  return {
    type: 'tool-ended',
    tool: call.name,
    callId: call.id,
    input: call.args,
    output: outcome.text,
    failed: outcome.failed,
  }
}
