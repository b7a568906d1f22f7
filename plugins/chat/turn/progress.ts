import { newId } from 'svc/internal'
import { costNano, toUsd } from 'svc/providers'
import type { CompletionRequest, ToolCall, Turn, Usage } from 'svc/providers'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Trace } from '../../journal/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { ContextAddition, TurnResult } from '../contract.ts'
import type { LiveTurn } from './live-turn.ts'
import type { Outcome } from './tool-step.ts'
import { labelled, union } from '../safety/labels.ts'
import type { Carried } from '../safety/labels.ts'
import type { ReleaseReservation } from './model-caller.ts'
import { pressureOf } from '../context/window.ts'

const MAX_INPUT_CHARS = 1000
const MAX_OUTPUT_CHARS = 200
/** Traces that wait for the end of their turn; a crash loses them. */
const MAX_KEPT_TRACES = 16
type NewTrace = Omit<Trace, 'id' | 'agentId' | 'sessionId' | 'turnId' | 'iteration'>

/** What is known so far of a running turn. Its last batch is made of this, however it ends. */
export class TurnProgress {
  readonly #live: LiveTurn
  agent: Agent | undefined
  /** The model that answers; a fallback replaces it. */
  model: ResolvedModel | undefined
  /** The whole answer so far. */
  text = ''
  /** The part of the answer that is not recorded yet. */
  unrecordedText = ''
  /** The model's whole reasoning, where it is shown. */
  reasoning = ''
  #unrecordedReasoning = ''
  /** The request that is being answered, to estimate its cost when the answer is cut. */
  request: CompletionRequest | undefined
  /** Characters the model wrote in the current call, reasoning included. */
  written = 0
  /** Time the models took, in all calls. */
  modelMs = 0
  /** Releases the budget that is reserved for the current call. */
  reservation: ReleaseReservation | undefined
  iterations = 0
  /** Recorded tool calls without recorded results. */
  calls: readonly ToolCall[] = []
  readonly startedCalls = new Set<string>()
  /** Of a turn that an earlier process began: its rows are read. */
  #knowsCalls: boolean
  readonly outcomes = new Map<string, Outcome>()
  /** Tools that ran and may have changed something. */
  readonly effects: string[] = []
  /** Labels of the model's next words: of all that was ever in its window in this turn. */
  carried: Carried = new Map()
  /** Told to the model beside the conversation. */
  context: readonly ContextAddition[] = []
  /** After a compaction within the turn: what replaces the first `count` turns of the loop. */
  compactedTurns: { readonly turns: readonly Turn[]; readonly count: number } | undefined
  /** Part of the model's window that is used; smaller after the provider said that the window is full. */
  windowShare = 1
  /** What was found in text from outside: from then on the turn asks a person before risky calls. */
  suspicion: string | undefined
  /** Tool calls that wait for a person. */
  waitingCalls = 0
  /** What the models cost, while it is not certain that it is recorded. Written again, it counts once. */
  unpaid: readonly Statement[] = []
  /** The calls of a step that are being recorded. */
  unrecordedCalls: readonly ToolCall[] = []
  #usages: { readonly model: ResolvedModel; readonly usage: Usage }[] = []
  #traces: Trace[] = []
  constructor(live: LiveTurn) {
    this.#live = live
    this.#knowsCalls = !live.resumed
  }

  get turnId(): string {
    return this.#live.id
  }
  get fence(): readonly Statement[] {
    return this.#live.fence
  }
  get labels(): readonly Label[] {
    return [...this.carried.keys()]
  }

  addText(delta: string): void {
    this.text += delta
    this.unrecordedText += delta
  }
  /** Keeps at most so many characters in a turn. */
  addReasoning(delta: string, maxChars: number): void {
    const kept = delta.slice(0, Math.max(0, maxChars - this.reasoning.length))
    this.reasoning += kept
    this.#unrecordedReasoning += kept
  }
  /** The reasoning for the next record. */
  takeReasoning(): string {
    const text = this.#unrecordedReasoning
    this.#unrecordedReasoning = ''
    return text
  }
  /** The model asks for these calls, and its text before them is recorded. */
  startStep(calls: readonly ToolCall[]): void {
    this.unrecordedText = ''
    this.calls = calls
    this.startedCalls.clear()
    this.outcomes.clear()
  }
  /** Whether a recorded call without a receipt may have had its effect. */
  mayHaveBegun(callId: string): boolean {
    return this.#knowsCalls ? this.startedCalls.has(callId) : !this.#live.waiting
  }
  /** The turn goes on from its rows, and these calls may have begun. */
  resume(cut: readonly ToolCall[]): void {
    this.#knowsCalls = true
    for (const { id } of cut) this.startedCalls.add(id)
  }
  /** Forgets what is not recorded: the turn is about to go on from its rows. */
  goBack(): void {
    this.text = this.text.slice(0, this.text.length - this.unrecordedText.length)
    this.unrecordedText = ''
    this.#unrecordedReasoning = ''
    this.request = undefined
    this.written = 0
    this.compactedTurns = undefined
    this.waitingCalls = 0
  }
  addUsage(usage: Usage): void {
    if (this.model) this.#usages.push({ model: this.model, usage })
  }
  /** For the batch that records what the call used, or that it used nothing. */
  releaseReservation(): readonly Statement[] {
    const { reservation } = this
    this.reservation = undefined
    return reservation ? reservation() : []
  }

  addContext(additions: readonly ContextAddition[]): void {
    this.context = additions
    for (const { source, labels, trace } of additions) {
      this.carried = union(this.carried, labelled(labels, `what ${source} found`))
      const startedAt = new Date(Date.now() - trace.durationMs).toISOString()
      this.addTrace({ kind: 'tool', name: source, startedAt, failed: false, ...trace })
    }
  }
  addTrace(trace: NewTrace): void {
    const { id, agentId, sessionId } = this.#live
    this.#traces.push({
      ...trace,
      id: newId(),
      agentId,
      sessionId,
      turnId: id,
      iteration: this.iterations,
      input: trace.input.slice(0, MAX_INPUT_CHARS),
      output: trace.output.slice(0, MAX_OUTPUT_CHARS),
    })
  }
  /** The traces for the next batch. */
  takeTraces(): readonly Trace[] {
    return this.#traces.splice(0)
  }
  /** Those for the batch of a step: the end of the turn has a column for all that are left, and a row each costs more. */
  takeManyTraces(): readonly Trace[] {
    return this.#traces.length < MAX_KEPT_TRACES ? [] : this.takeTraces()
  }

  result(stop: TurnResult['stop']): TurnResult {
    const { model } = this
    const last = this.#usages.at(-1)?.usage
    return {
      turnId: this.#live.id,
      sessionId: this.#live.sessionId,
      text: this.text,
      usage: sum(this.#usages.map(({ usage }) => usage)),
      iterations: this.iterations,
      costUsd: this.#costUsd(),
      provider: model?.provider ?? '',
      model: model?.model ?? '',
      stop,
      ...(this.reasoning !== '' && { reasoning: this.reasoning }),
      // Of the last call alone: the sum over a turn says nothing about its window.
      ...(last && model && { contextPressure: pressureOf((last.input + last.output) / model.contextWindow) }),
    }
  }

  /** `null` when the price of a model is not known. */
  #costUsd(): number | null {
    let total = 0
    for (const { model, usage } of this.#usages) {
      const cost = costNano(model.price, usage)
      if (cost === null) return null
      total += cost
    }
    return toUsd(total)
  }
}

function sum(usages: readonly Usage[]): Usage {
  const total = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0, thinking: 0 }
  let estimated = false
  for (const usage of usages) {
    total.input += usage.input
    total.output += usage.output
    total.cachedInput += usage.cachedInput ?? 0
    total.cacheWrite += usage.cacheWrite ?? 0
    total.thinking += usage.thinking ?? 0
    estimated ||= usage.estimated ?? false
  }
  const { input, output, cachedInput, cacheWrite, thinking } = total
  return {
    input,
    output,
    ...(cachedInput > 0 && { cachedInput }),
    ...(cacheWrite > 0 && { cacheWrite }),
    ...(thinking > 0 && { thinking }),
    ...(estimated && { estimated }),
  }
}
