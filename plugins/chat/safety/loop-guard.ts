import { createHash } from 'node:crypto'
import { canonicalJson, enforced } from 'svc/internal'

/** Whether a call may run. `warn` runs it and tells the model; `block` answers it instead; `end` stops the turn. */
export type Verdict =
  | { readonly action: 'allow' }
  | { readonly action: 'warn' | 'block' | 'end'; readonly reason: string }
export interface Guard {
  before(tool: string, args: unknown, polls: boolean): Verdict
  /** A warning about the outcome, or `undefined`. */
  after(tool: string, args: unknown, polls: boolean, result: string): string | undefined
}
export interface GuardLimits {
  readonly warnCalls: number
  readonly blockCalls: number
  readonly warnOutcomes: number
  readonly blockOutcomes: number
  readonly warningsPerCall: number
  readonly callsPerTurn: number
}
export const guardLimits: GuardLimits = {
  warnCalls: 3,
  blockCalls: 5,
  warnOutcomes: 2,
  blockOutcomes: 3,
  warningsPerCall: 3,
  callsPerTurn: 30,
}

const HISTORY_LENGTH = 30
const PERIODS = [2, 3]
const ROUNDS = 3
const POLL_PATIENCE = 3
const POLL_PAUSES_SECS = [5, 10, 30, 60]

/** Counts the tool calls of a turn together with those of the turns that agents run for it. */
export interface ToolCallCounter {
  calls: number
}

/** The calls of one tool with the same arguments. */
interface CallHistory {
  calls: number
  warnings: number
  /** How often each outcome came, by its hash. */
  readonly outcomes: Map<string, number>
  /** Of the most frequent outcome. */
  sameOutcomes: number
}

/** Watches one turn for an agent that goes in circles (security facts 1.15). */
export function createGuard(limits: GuardLimits = guardLimits, counter: ToolCallCounter = { calls: 0 }): Guard {
  return new LoopGuard(limits, counter)
}

class LoopGuard implements Guard {
  readonly #limits: GuardLimits
  readonly #counter: ToolCallCounter
  readonly #calls = new Map<string, CallHistory>()
  /** Keys of the latest calls. */
  readonly #latest: string[] = []
  constructor(limits: GuardLimits, counter: ToolCallCounter) {
    this.#limits = limits
    this.#counter = counter
  }

  before(tool: string, args: unknown, polls: boolean): Verdict {
    const verdict = this.#judge(tool, args, polls)
    if (verdict.action === 'block' || verdict.action === 'end') enforced('loop_guard')
    return verdict
  }
  after(tool: string, args: unknown, polls: boolean, result: string): string | undefined {
    const call = this.#historyOf(callKey(tool, args))
    const outcome = createHash('sha256').update(result).digest('base64')
    const times = (call.outcomes.get(outcome) ?? 0) + 1
    call.outcomes.set(outcome, times)
    call.sameOutcomes = Math.max(call.sameOutcomes, times)
    return times >= this.#limits.warnOutcomes * (polls ? POLL_PATIENCE : 1)
      ? `${tool} gave the same result ${times} times with the same arguments`
      : undefined
  }

  #judge(tool: string, args: unknown, polls: boolean): Verdict {
    const { callsPerTurn, warnCalls, warningsPerCall } = this.#limits
    const patience = polls ? POLL_PATIENCE : 1
    const key = callKey(tool, args)
    const call = this.#historyOf(key)
    this.#latest.push(key)
    if (this.#latest.length > HISTORY_LENGTH) this.#latest.shift()
    call.calls++
    if (++this.#counter.calls > callsPerTurn)
      return {
        action: 'end',
        reason: `more than ${callsPerTurn} tool calls in one turn, those of agents it asked included`,
      }
    const reason = this.#blockReason(tool, call, patience)
    if (reason !== undefined) return { action: 'block', reason }
    if (call.calls < warnCalls * patience) return { action: 'allow' }
    if (++call.warnings > warningsPerCall * patience)
      return { action: 'block', reason: `${tool} was warned about ${warningsPerCall * patience} times` }
    const pause = POLL_PAUSES_SECS[Math.min(call.warnings, POLL_PAUSES_SECS.length) - 1] ?? 60
    const advice = polls ? `; wait ${pause} seconds before asking again` : '; try something else'
    return { action: 'warn', reason: `${tool} was called ${call.calls} times with the same arguments${advice}` }
  }

  #blockReason(tool: string, { calls, sameOutcomes }: CallHistory, patience: number): string | undefined {
    const { blockCalls, blockOutcomes } = this.#limits
    if (calls >= blockCalls * patience) return `${tool} was called ${calls} times with the same arguments`
    if (sameOutcomes >= blockOutcomes * patience)
      return `${tool} gave the same result ${sameOutcomes} times with the same arguments`
    const period = PERIODS.find((length) => alternates(this.#latest, length, ROUNDS * patience))
    return period === undefined ? undefined : `the same ${period} calls alternate`
  }

  #historyOf(key: string): CallHistory {
    let found = this.#calls.get(key)
    if (!found) this.#calls.set(key, (found = { calls: 0, warnings: 0, outcomes: new Map(), sameOutcomes: 0 }))
    return found
  }
}

/** The same for the same tool and arguments, in whatever order the keys were written. */
export function callKey(tool: string, args: unknown): string {
  return createHash('sha256')
    .update(`${tool}\0${canonicalJson(args)}`)
    .digest('base64')
}
function alternates(history: readonly string[], period: number, rounds: number): boolean {
  const tail = history.slice(-period * rounds)
  return (
    tail.length === period * rounds &&
    tail.every((key, index) => key === tail[index % period]) &&
    new Set(tail).size > 1
  )
}
