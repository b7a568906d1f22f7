import type { CompletionEvent, ToolCall, Turn, Usage } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { ToolResult } from 'svc/sdk'
import type { InferenceEvent } from '../../providers/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { TurnEvent, TurnResult } from '../contract.ts'
import type { Guard } from '../safety/loop-guard.ts'

/** `labels` is what the text carries. */
export type Outcome = Pick<ToolResult, 'text' | 'failed'> & { readonly labels?: readonly Label[] }
export interface ToolOutcome {
  readonly call: ToolCall
  readonly outcome: Outcome
}
/** Recorded calls without recorded results, with the outcomes that are known already. */
export interface PendingCalls {
  readonly calls: readonly ToolCall[]
  readonly known: ReadonlyMap<string, Outcome>
}
export interface LoopInput {
  /** The conversation so far. It ends with the question, or with what is recorded of this turn. */
  readonly turns: readonly Turn[]
  /** Earlier calls of the model in this turn, when it resumes after a restart. */
  readonly iterations: number
  readonly maxIterations: number
  /** Answered tool calls of the turn from an earlier process: the guard counts them. */
  readonly earlier?: readonly { readonly tool: string; readonly args: unknown; readonly text: string }[]
  readonly pending?: PendingCalls
  readonly signal: AbortSignal
}
/** Properties of a tool the agent may call; a text says why it may not. */
export type Offer = { readonly risk: 'read' | 'write' | 'execute'; readonly polls: boolean } | string
export type LoopEvent = Exclude<TurnEvent, { type: 'end' }>
/** What the loop needs from its surroundings. */
export interface LoopPorts {
  readonly guard: Guard
  emit(event: LoopEvent): void
  /** Settles when the model has ended its answer. */
  complete(turns: readonly Turn[], signal: AbortSignal, onEvent: (event: InferenceEvent) => void): Promise<void>
  offer(tool: string): Offer
  /** Durable before it settles: the model's text, and that these calls are about to be made. */
  recordCalls(step: {
    readonly text: string
    readonly calls: readonly ToolCall[]
    readonly usage: Usage
    readonly replay: string | undefined
  }): Promise<void>
  /** Records the receipt of one call among several. */
  recordReceipt(call: ToolCall, outcome: Outcome): Promise<void>
  /** Durable before it settles: every outcome of the step. */
  recordResults(results: readonly ToolOutcome[]): Promise<void>
  /**
   * For an answer with a required format: returns the final answer, or its fault, which the model gets once. Throws
   * when the answer is wrong `again`. Text is emitted only after this check.
   */
  readonly check?:
    | ((text: string, usage: Usage, again: boolean) => Promise<{ readonly text: string } | { readonly fault: string }>)
    | undefined
  /** Rejects only when the signal aborts. */
  call(call: ToolCall, signal: AbortSignal): Promise<Outcome>
}
export interface LoopEnd {
  readonly stop: Exclude<TurnResult['stop'], 'cancelled'>
  /** Of the last step: not recorded yet. */
  readonly text: string
  readonly usage: Usage | undefined
  readonly iterations: number
}
interface LoopState {
  readonly turns: Turn[]
  iterations: number
  /** Written before the next text, when there was text before a tool call. */
  separator: string
  /** The model was told once that its answer has the wrong format. */
  corrected: boolean
  callIds: Set<string> | undefined
}

/**
 * Runs the model and its tools until the model calls no more tools. Throws the provider's errors and the reason of the
 * signal.
 */
export async function runLoop(input: LoopInput, ports: LoopPorts): Promise<LoopEnd> {
  const { signal, maxIterations } = input
  const state: LoopState = {
    turns: [...input.turns],
    iterations: input.iterations,
    separator: '',
    corrected: false,
    callIds: undefined,
  }
  countEarlierCalls(input, ports)
  let { pending } = input
  for (;;) {
    signal.throwIfAborted()
    if (!pending) {
      if (state.iterations >= maxIterations)
        return stopEarly(state, ports, `Stopped after ${state.iterations} calls of the model without a final answer.`)
      const step = await callModel(state, ports, signal)
      if (step === 'again') continue
      if ('stop' in step) return step
      pending = step
    }
    const reason = await runTools(state, pending, ports, signal)
    if (reason !== undefined) return stopEarly(state, ports, `The run was stopped: ${reason}.`)
    pending = undefined
  }
}

function countEarlierCalls({ earlier = [] }: LoopInput, { guard, offer }: LoopPorts): void {
  for (const { tool, args, text } of earlier) {
    const polls = isPolling(offer(tool))
    guard.before(tool, args, polls)
    guard.after(tool, args, polls, text)
  }
}

function stopEarly({ separator, iterations }: LoopState, ports: LoopPorts, text: string): LoopEnd {
  ports.emit({ type: 'text', delta: separator + text })
  return { stop: 'iterations', text, usage: undefined, iterations }
}

interface Answer {
  readonly text: string
  readonly calls: readonly ToolCall[]
  readonly end: Extract<CompletionEvent, { type: 'end' }>
}

/**
 * One model call. Returns the end of the turn, the requested tool calls, or `again` when the answer has the wrong
 * format.
 */
async function callModel(
  state: LoopState,
  ports: LoopPorts,
  signal: AbortSignal,
): Promise<LoopEnd | PendingCalls | 'again'> {
  state.iterations++
  const answer = await readAnswer(state, ports, signal)
  const { text, calls, end } = answer
  if (calls.length === 0) return finish(state, ports, answer)
  await ports.recordCalls({ text, calls, usage: end.usage, replay: end.replay })
  state.turns.push({ role: 'assistant', text, calls, ...omitUndefined({ replay: end.replay }) })
  if (text !== '' && !ports.check) state.separator = '\n\n'
  return { calls, known: new Map() }
}

async function readAnswer(state: LoopState, ports: LoopPorts, signal: AbortSignal): Promise<Answer> {
  let text = ''
  let end: Answer['end'] | undefined
  const calls: ToolCall[] = []
  await ports.complete(state.turns, signal, (event) => {
    switch (event.type) {
      case 'text':
        text += event.delta
        if (!ports.check) emitText(state, ports, event.delta)
        break
      case 'thinking':
        if (event.delta !== '') ports.emit({ type: 'reasoning', delta: event.delta })
        break
      case 'phase':
        ports.emit(event)
        break
      case 'call':
        calls.push(withUniqueId(event.call, (state.callIds ??= callIdsOf(state.turns)), state.iterations))
        break
      case 'end':
        end = event
        break
    }
  })
  if (!end) throw new Error('the provider ended without an end event')
  return { text, calls, end }
}

function emitText(state: LoopState, ports: LoopPorts, delta: string): void {
  if (delta === '') return
  ports.emit({ type: 'text', delta: state.separator + delta })
  state.separator = ''
}

/** The final answer, checked first where a format is required. */
async function finish(state: LoopState, ports: LoopPorts, { text, end }: Answer): Promise<LoopEnd | 'again'> {
  const { iterations } = state
  const stop = end.stop === 'calls' ? 'done' : end.stop
  if (!ports.check || end.stop === 'refused') return { stop, text, usage: end.usage, iterations }
  const checked = await ports.check(text, end.usage, state.corrected)
  if ('fault' in checked) {
    state.corrected = true
    const correction = `Your answer cannot be used: ${checked.fault}. Answer again, with the corrected JSON alone.`
    state.turns.push({ role: 'assistant', text, calls: [] })
    state.turns.push({ role: 'user', parts: [{ type: 'text', text: correction }] })
    return 'again'
  }
  ports.emit({ type: 'text', delta: checked.text })
  return { stop, text: checked.text, usage: end.usage, iterations }
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

/** Runs the calls of one step. Returns why the turn ends after it, if it does. */
async function runTools(
  state: LoopState,
  { calls, known }: PendingCalls,
  ports: LoopPorts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const plans = calls.map((call) => planCall(call, known, ports))
  const harmless = plans.every((plan) => plan.outcome || plan.risk === 'read')
  const results = await (harmless ? runTogether : runInOrder)(plans, ports, signal)
  await ports.recordResults(results)
  for (const { call, outcome } of results)
    state.turns.push({ role: 'tool', callId: call.id, tool: call.name, text: outcome.text, failed: outcome.failed })
  return plans.findLast(({ endReason }) => endReason !== undefined)?.endReason
}

async function runTogether(
  plans: readonly PlannedCall[],
  ports: LoopPorts,
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
  ports: LoopPorts,
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

function planCall(call: ToolCall, known: ReadonlyMap<string, Outcome>, ports: LoopPorts): PlannedCall {
  const answered = (outcome: Outcome): PlannedCall => ({ call, risk: 'read', polls: false, outcome })
  const settled = known.get(call.id)
  if (settled) return answered(settled)
  const offer = ports.offer(call.name)
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

async function runCall({ call, polls, ...plan }: PlannedCall, ports: LoopPorts, signal: AbortSignal): Promise<Outcome> {
  if (plan.outcome) return plan.outcome
  const outcome = await ports.call(call, signal)
  const repeated = ports.guard.after(call.name, call.args, polls, outcome.text)
  const warning = plan.warning ?? repeated
  return warning === undefined ? outcome : { ...outcome, text: `${outcome.text}\n\n[warning: ${warning}]` }
}

function callIdsOf(turns: readonly Turn[]): Set<string> {
  return new Set(turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map((call) => call.id) : [])))
}
/** Some vendors give every call the same id, or none: within a turn an id means one call. */
function withUniqueId(call: ToolCall, ids: Set<string>, iteration: number): ToolCall {
  let { id } = call
  for (let n = 1; id === '' || ids.has(id); n++) id = `${call.id || 'call'}_${iteration}_${n}`
  ids.add(id)
  return id === call.id ? call : { ...call, id }
}

function toEndedEvent({ call, outcome }: ToolOutcome): LoopEvent {
  return {
    type: 'tool-ended',
    tool: call.name,
    callId: call.id,
    input: call.args,
    output: outcome.text,
    failed: outcome.failed,
  }
}
