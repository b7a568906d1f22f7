import type { CompletionEvent, ToolCall, Turn, Usage } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { InferenceEvent } from '../../providers/contract.ts'
import type { TurnEvent, TurnResult } from '../contract.ts'
import type * as ToolStepModule from './tool-step.ts'
import type { AnsweredCall, PendingCalls, ToolPorts } from './tool-step.ts'

/** Loaded by the first call of a tool. Kept: an `import()` of what is loaded already resolves its name again. */
let toolStep: Promise<typeof ToolStepModule> | undefined

export interface LoopInput {
  /** The conversation so far. It ends with the question, or with what is recorded of this turn. */
  readonly turns: readonly Turn[]
  /** Earlier calls of the model in this turn, when it resumes after a restart. */
  readonly iterations: number
  readonly maxIterations: number
  /** Answered tool calls of the turn from an earlier process: the guard counts them. */
  readonly earlier?: readonly AnsweredCall[]
  readonly pending?: PendingCalls
  readonly signal: AbortSignal
}
export type LoopEvent = Exclude<TurnEvent, { type: 'end' }>
/** What the loop needs from its surroundings. */
export interface LoopPorts {
  emit(event: LoopEvent): void
  /** Settles when the model has ended its answer. */
  complete(turns: readonly Turn[], signal: AbortSignal, onEvent: (event: InferenceEvent) => void): Promise<void>
  /** Durable before it settles: the model's text, and that these calls are about to be made. */
  recordCalls(step: {
    readonly text: string
    readonly calls: readonly ToolCall[]
    readonly usage: Usage
    readonly replay: string | undefined
  }): Promise<void>
  /**
   * For an answer with a required format: returns the final answer, or its fault, which the model gets once. Throws
   * when the answer is wrong `again`. Text is emitted only after this check.
   */
  readonly check?:
    | ((text: string, usage: Usage, again: boolean) => Promise<{ readonly text: string } | { readonly fault: string }>)
    | undefined
  /** Runs the calls of the model; not asked for by a turn without any. */
  tools(): Promise<ToolPorts>
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
  if (input.earlier?.length) {
    const { countEarlierCalls } = await (toolStep ??= import('./tool-step.ts'))
    countEarlierCalls(input.earlier, await ports.tools())
  }
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
    const { runTools } = await (toolStep ??= import('./tool-step.ts'))
    const { results, endReason } = await runTools(pending, await ports.tools(), signal)
    for (const { call, outcome } of results)
      state.turns.push({ role: 'tool', callId: call.id, tool: call.name, text: outcome.text, failed: outcome.failed })
    if (endReason !== undefined) return stopEarly(state, ports, `The run was stopped: ${endReason}.`)
    pending = undefined
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
