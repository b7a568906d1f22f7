import { v7 } from 'uuid'
import { costNano, toUsd } from 'svc/providers'
import type { CompletionRequest, ToolCall, Turn, Usage } from 'svc/providers'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Trace } from '../../journal/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { TurnResult } from '../contract.ts'
import type { LiveTurn } from './live-turn.ts'
import type { Outcome } from './loop.ts'
import type { Carried } from '../safety/taint.ts'
import type { ReleaseReservation } from './budget-gate.ts'
import { pressureOf } from '../context/window.ts'

const INPUT_CHARS = 1000
const OUTPUT_CHARS = 200
type NewTrace = Omit<Trace, 'id' | 'agentId' | 'sessionId' | 'turnId' | 'iteration'>

/** What is so far known of a turn that runs; what its last batch is made of, however it ends. */
export class Progress {
  readonly #live: LiveTurn
  agent: Agent | undefined
  /** The model that answers, which a fallback may have taken over from another. */
  model: ResolvedModel | undefined
  /** Everything that was said. */
  said = ''
  /** What was said since the last record. */
  step = ''
  /** Everything that was thought, where it is shown. */
  thought = ''
  /** What of it was thought since the last record. */
  #reasoning = ''
  /** The request that is being answered, to count what it cost when the answer is cut. */
  request: CompletionRequest | undefined
  /** Characters the model wrote in the call that runs, what it thought included. */
  written = 0
  /** Time the models took, in all calls. */
  modelMs = 0
  /** What was set aside for the call that runs. */
  held: ReleaseReservation | undefined
  iterations = 0
  /** Calls that are recorded and not answered. */
  calls: readonly ToolCall[] = []
  readonly begun = new Set<string>()
  readonly outcomes = new Map<string, Outcome>()
  /** Tools that ran and may have changed something. */
  readonly effects: string[] = []
  /** What the model's words carry now: all that was ever in its window in this turn. */
  carried: Carried = new Map()
  /** After a compaction within the turn: what stands for the first `count` of the loop's turns. */
  replaced: { readonly turns: readonly Turn[]; readonly count: number } | undefined
  /** The window turned out smaller than it is said to be: this part of it is used. */
  shrink = 1
  /** What was found in text from outside: from then on the turn asks before what is risky. */
  suspicion: string | undefined
  /** Calls that wait for a person. */
  waiting = 0
  #spent: { readonly model: ResolvedModel; readonly usage: Usage }[] = []
  #traces: Trace[] = []
  constructor(live: LiveTurn) {
    this.#live = live
  }

  get turnId(): string {
    return this.#live.id
  }
  get labels(): readonly Label[] {
    return [...this.carried.keys()]
  }

  /** Keeps what was thought, up to so many characters in a turn. */
  think(delta: string, most: number): void {
    const kept = delta.slice(0, Math.max(0, most - this.thought.length))
    this.thought += kept
    this.#reasoning += kept
  }
  /** What was thought, for the next record. */
  takeReasoning(): string {
    const text = this.#reasoning
    this.#reasoning = ''
    return text
  }
  spend(usage: Usage): void {
    if (this.model) this.#spent.push({ model: this.model, usage })
  }
  /** For the batch that records what the call used, or that it used nothing. */
  giveBack(): readonly Statement[] {
    const { held } = this
    this.held = undefined
    return held ? held() : []
  }

  trace(trace: NewTrace): void {
    const { id, agentId, sessionId } = this.#live
    this.#traces.push({
      ...trace,
      id: v7(),
      agentId,
      sessionId,
      turnId: id,
      iteration: this.iterations,
      input: trace.input.slice(0, INPUT_CHARS),
      output: trace.output.slice(0, OUTPUT_CHARS),
    })
  }
  /** The traces for the next batch. */
  takeTraces(): readonly Trace[] {
    return this.#traces.splice(0)
  }

  result(stop: TurnResult['stop']): TurnResult {
    const { model } = this
    const last = this.#spent.at(-1)?.usage
    return {
      turnId: this.#live.id,
      sessionId: this.#live.sessionId,
      text: this.said,
      ...(this.thought === '' ? {} : { reasoning: this.thought }),
      usage: sum(this.#spent.map(({ usage }) => usage)),
      iterations: this.iterations,
      costUsd: toUsd(
        this.#spent.reduce<number | null>((total, each) => {
          const cost = costNano(each.model.price, each.usage)
          return total === null || cost === null ? null : total + cost
        }, 0),
      ),
      provider: model?.provider ?? '',
      model: model?.model ?? '',
      stop,
      // Of the last call alone: what a turn used altogether says nothing of its window.
      ...(last && model ? { contextPressure: pressureOf((last.input + last.output) / model.contextWindow) } : {}),
    }
  }
}

function sum(usages: readonly Usage[]): Usage {
  let input = 0
  let output = 0
  let cachedInput = 0
  let thinking = 0
  let cacheWrite = 0
  let estimated = false
  for (const usage of usages) {
    input += usage.input
    output += usage.output
    cachedInput += usage.cachedInput ?? 0
    cacheWrite += usage.cacheWrite ?? 0
    thinking += usage.thinking ?? 0
    estimated ||= usage.estimated ?? false
  }
  return {
    input,
    output,
    ...(cachedInput > 0 ? { cachedInput } : {}),
    ...(cacheWrite > 0 ? { cacheWrite } : {}),
    ...(thinking > 0 ? { thinking } : {}),
    ...(estimated ? { estimated } : {}),
  }
}
