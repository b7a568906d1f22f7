import type { CompletionEvent, ToolCall, Turn, Usage } from 'svc/providers'
import type { ToolResult } from 'svc/sdk'
import type { Label } from '../../sessions/contract.ts'
import type { InferenceEvent } from '../../providers/contract.ts'
import type { TurnEvent, TurnResult } from '../contract.ts'
import type { Guard } from '../safety/loop-guard.ts'

/** `labels` is what the text carries. */
export type Outcome = Pick<ToolResult, 'text' | 'failed'> & { readonly labels?: readonly Label[] }
export interface LoopInput {
  /** What the model is told so far, ending with the question, or with what is recorded of this turn. */
  readonly turns: readonly Turn[]
  /** Calls of the model in this turn before, when it goes on after a restart. */
  readonly iterations: number
  readonly maxIterations: number
  /** Calls of the turn that an earlier process made and that have their answers: the guard counts them. */
  readonly earlier?: readonly { readonly tool: string; readonly args: unknown; readonly text: string }[]
  /** Calls that are recorded and not answered, with the outcomes that are known already. */
  readonly pending?: { readonly calls: readonly ToolCall[]; readonly known: ReadonlyMap<string, Outcome> }
  readonly signal: AbortSignal
}
/** What a tool that may be called is like; a text says why it may not. */
export type Offer = { readonly risk: 'read' | 'write' | 'execute'; readonly polls: boolean } | string
/** What the loop needs of the world. */
export interface LoopPorts {
  readonly guard: Guard
  complete(
    turns: readonly Turn[],
    signal: AbortSignal,
  ): AsyncIterable<InferenceEvent> | Promise<AsyncIterable<InferenceEvent>>
  offer(tool: string): Offer
  /** Durable before it settles: what the model said, and that these calls are about to be made. */
  recordCalls(step: {
    readonly text: string
    readonly calls: readonly ToolCall[]
    readonly usage: Usage
    readonly replay: string | undefined
  }): Promise<void>
  /** The receipt of one call among several. */
  recordReceipt(call: ToolCall, outcome: Outcome): Promise<void>
  /** Durable before it settles: every outcome of the step. */
  recordResults(results: readonly { readonly call: ToolCall; readonly outcome: Outcome }[]): Promise<void>
  /**
   * When the answer must have a form: the answer as it is handed out, or what is wrong with it, which the model is told once. Throws
   * when it is wrong `again`. Text is then said only when it is checked.
   */
  readonly check?:
    | ((text: string, usage: Usage, again: boolean) => Promise<{ readonly text: string } | { readonly fault: string }>)
    | undefined
  /** Rejects only when the signal aborts. */
  call(call: ToolCall, signal: AbortSignal): Promise<Outcome>
}
export interface LoopEnd {
  readonly stop: Exclude<TurnResult['stop'], 'cancelled'>
  /** Of the last step: what is not recorded yet. */
  readonly text: string
  readonly usage: Usage | undefined
  readonly iterations: number
}
const GAP = '\n\n'

/** Runs the model and its tools until it has nothing more to call. Throws what the provider throws, and the signal's reason. */
export async function* runLoop(
  input: LoopInput,
  ports: LoopPorts,
): AsyncGenerator<Exclude<TurnEvent, { type: 'end' }>, LoopEnd> {
  const { signal, maxIterations } = input
  const turns = [...input.turns]
  let ids: Set<string> | undefined
  let { iterations, pending } = input
  let gap = ''
  let repaired = false
  for (const { tool, args, text } of input.earlier ?? []) {
    const polls = isPolling(ports.offer(tool))
    ports.guard.before(tool, args, polls)
    ports.guard.after(tool, args, polls, text)
  }
  for (;;) {
    signal.throwIfAborted()
    if (!pending) {
      if (iterations >= maxIterations) {
        const text = `Stopped after ${iterations} calls of the model without a final answer.`
        yield { type: 'text', delta: gap + text }
        return { stop: 'iterations', text, usage: undefined, iterations }
      }
      iterations++
      let text = ''
      let end: Extract<CompletionEvent, { type: 'end' }> | undefined
      const calls: ToolCall[] = []
      for await (const event of await ports.complete(turns, signal)) {
        if (event.type === 'text') {
          if (event.delta === '') continue
          text += event.delta
          if (ports.check) continue
          if (gap === '') yield event
          else {
            yield { type: 'text', delta: gap + event.delta }
            gap = ''
          }
        } else if (event.type === 'thinking') {
          if (event.delta !== '') yield { type: 'reasoning', delta: event.delta }
        } else if (event.type === 'phase') yield event
        else if (event.type === 'call') calls.push(distinct(event.call, (ids ??= idsOf(turns)), iterations))
        else if (event.type === 'end') end = event
      }
      if (!end) throw new Error('the provider ended without an end event')
      if (calls.length === 0 && ports.check && end.stop !== 'refused') {
        const checked = await ports.check(text, end.usage, repaired)
        if ('fault' in checked) {
          repaired = true
          turns.push(
            { role: 'assistant', text, calls: [] },
            {
              role: 'user',
              parts: [
                {
                  type: 'text',
                  text: `Your answer cannot be used: ${checked.fault}. Answer again, with the corrected JSON alone.`,
                },
              ],
            },
          )
          continue
        }
        text = checked.text
        yield { type: 'text', delta: text }
      }
      if (calls.length === 0)
        return { stop: end.stop === 'calls' ? 'done' : end.stop, text, usage: end.usage, iterations }
      const { replay } = end
      await ports.recordCalls({ text, calls, usage: end.usage, replay })
      turns.push({ role: 'assistant', text, calls, ...(replay !== undefined && { replay }) })
      if (text !== '' && !ports.check) gap = GAP
      pending = { calls, known: new Map() }
    }

    const { calls, known } = pending
    let ended: string | undefined
    const plans = calls.map((call) => plan(call, known, ports))
    const results: { readonly call: ToolCall; readonly outcome: Outcome }[] = []
    for (const each of plans) if (each.end !== undefined) ended = each.end
    if (plans.every((each) => each.outcome || each.risk === 'read')) {
      for (const { call } of plans) yield { type: 'tool-started', tool: call.name, callId: call.id }
      results.push(
        ...(await Promise.all(
          plans.map(async (each) => ({ call: each.call, outcome: await run(each, ports, signal) })),
        )),
      )
      for (const { call, outcome } of results) yield toEnded(call, outcome)
    } else {
      for (const each of plans) {
        const { call } = each
        yield { type: 'tool-started', tool: call.name, callId: call.id }
        const outcome = await run(each, ports, signal)
        results.push({ call, outcome })
        // The next call may have an effect of its own, so this one's receipt is on disk before it.
        if (!each.outcome && results.length < plans.length) await ports.recordReceipt(call, outcome)
        yield toEnded(call, outcome)
      }
    }
    await ports.recordResults(results)
    for (const { call, outcome } of results)
      turns.push({ role: 'tool', callId: call.id, tool: call.name, text: outcome.text, failed: outcome.failed })
    if (ended !== undefined) {
      const text = `The run was stopped: ${ended}.`
      yield { type: 'text', delta: gap + text }
      return { stop: 'iterations', text, usage: undefined, iterations }
    }
    pending = undefined
  }
}

interface Plan {
  readonly call: ToolCall
  readonly risk: 'read' | 'write' | 'execute'
  readonly polls: boolean
  /** Known without running it. */
  readonly outcome?: Outcome
  readonly warning?: string
  /** Why the turn ends after this step. */
  readonly end?: string
}

function plan(call: ToolCall, known: ReadonlyMap<string, Outcome>, ports: LoopPorts): Plan {
  const settled = known.get(call.id)
  const refused = (text: string, end?: string): Plan => ({
    call,
    risk: 'read',
    polls: false,
    outcome: { text, failed: true },
    ...(end === undefined ? {} : { end }),
  })
  if (settled) return { call, risk: 'read', polls: false, outcome: settled }
  const offer = ports.offer(call.name)
  // Refused calls count too, or a model could ask for what it may not have for ever.
  const verdict = ports.guard.before(call.name, call.args, isPolling(offer))
  if (verdict.action === 'end') return refused(`blocked: ${verdict.reason}`, verdict.reason)
  if (typeof offer === 'string') return refused(offer)
  if (typeof call.args === 'string')
    return refused(`The arguments of ${call.name} are not valid JSON. Send one JSON object.`)
  if (verdict.action === 'block') return refused(`blocked: ${verdict.reason}`)
  return { call, ...offer, ...(verdict.action === 'warn' ? { warning: verdict.reason } : {}) }
}

const isPolling = (offer: Offer): boolean => typeof offer === 'object' && offer.polls

async function run(each: Plan, ports: LoopPorts, signal: AbortSignal): Promise<Outcome> {
  if (each.outcome) return each.outcome
  const { call, polls } = each
  const outcome = await ports.call(call, signal)
  const repeated = ports.guard.after(call.name, call.args, polls, outcome.text)
  const warning = each.warning ?? repeated
  return warning === undefined ? outcome : { ...outcome, text: `${outcome.text}\n\n[warning: ${warning}]` }
}

function idsOf(turns: readonly Turn[]): Set<string> {
  return new Set(turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map((call) => call.id) : [])))
}
/** Some vendors give every call the same id, or none: within a turn an id means one call. */
function distinct(call: ToolCall, ids: Set<string>, iteration: number): ToolCall {
  let { id } = call
  for (let n = 1; id === '' || ids.has(id); n++) id = `${call.id || 'call'}_${iteration}_${n}`
  ids.add(id)
  return id === call.id ? call : { ...call, id }
}

function toEnded(call: ToolCall, outcome: Outcome): TurnEvent & { type: 'tool-ended' } {
  return {
    type: 'tool-ended',
    tool: call.name,
    callId: call.id,
    input: call.args,
    output: outcome.text,
    failed: outcome.failed,
  }
}
