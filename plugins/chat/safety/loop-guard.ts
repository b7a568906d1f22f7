import { createHash } from 'node:crypto'
import { enforced } from 'svc/internal'

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

const HISTORY = 30
const PERIODS = [2, 3]
const ROUNDS = 3
const POLL_PATIENCE = 3
const POLL_PAUSES_SECS = [5, 10, 30, 60]

/** How many calls a run has made: shared by a turn and the turns that agents run for it. */
export interface ToolCallCounter {
  calls: number
}

/** What is known of one tool with the same arguments. */
interface Seen {
  calls: number
  warnings: number
  outcomes: Map<string, number>
  most: number
}

/** Watches one turn for an agent that goes in circles (security facts 1.15). What it may call in all, it shares with those it asks. */
export function createGuard(limits: GuardLimits = guardLimits, tally: ToolCallCounter = { calls: 0 }): Guard {
  const seen = new Map<string, Seen>()
  const history: string[] = []

  function entry(key: string): Seen {
    let found = seen.get(key)
    if (!found) seen.set(key, (found = { calls: 0, warnings: 0, outcomes: new Map(), most: 0 }))
    return found
  }

  return {
    before(tool, args, polls) {
      const verdict = judge(tool, args, polls)
      if (verdict.action === 'block' || verdict.action === 'end') enforced('loop_guard')
      return verdict
    },
    after(tool, args, polls, result) {
      const call = entry(callKey(tool, args))
      const outcome = createHash('sha256').update(result).digest('base64')
      const times = (call.outcomes.get(outcome) ?? 0) + 1
      call.outcomes.set(outcome, times)
      call.most = Math.max(call.most, times)
      return times >= limits.warnOutcomes * (polls ? POLL_PATIENCE : 1)
        ? `${tool} gave the same result ${times} times with the same arguments`
        : undefined
    },
  }

  function judge(tool: string, args: unknown, polls: boolean): Verdict {
    const patience = polls ? POLL_PATIENCE : 1
    const key = callKey(tool, args)
    const call = entry(key)
    history.push(key)
    if (history.length > HISTORY) history.shift()
    call.calls++
    if (++tally.calls > limits.callsPerTurn)
      return {
        action: 'end',
        reason: `more than ${limits.callsPerTurn} tool calls in one turn, those of agents it asked included`,
      }
    if (call.calls >= limits.blockCalls * patience)
      return { action: 'block', reason: `${tool} was called ${call.calls} times with the same arguments` }
    if (call.most >= limits.blockOutcomes * patience)
      return { action: 'block', reason: `${tool} gave the same result ${call.most} times with the same arguments` }
    const period = PERIODS.find((length) => alternates(history, length, ROUNDS * patience))
    if (period !== undefined) return { action: 'block', reason: `the same ${period} calls alternate` }
    if (call.calls < limits.warnCalls * patience) return { action: 'allow' }
    if (++call.warnings > limits.warningsPerCall * patience)
      return { action: 'block', reason: `${tool} was warned about ${limits.warningsPerCall * patience} times` }
    const pause = POLL_PAUSES_SECS[Math.min(call.warnings, POLL_PAUSES_SECS.length) - 1] ?? 60
    const advice = polls ? `; wait ${pause} seconds before asking again` : '; try something else'
    return { action: 'warn', reason: `${tool} was called ${call.calls} times with the same arguments${advice}` }
  }
}

/** The same for the same tool and arguments, in whatever order the keys were written. */
export function callKey(tool: string, args: unknown): string {
  return createHash('sha256')
    .update(`${tool}\0${canonical(args)}`)
    .digest('base64')
}
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`)
    .join(',')}}`
}
function alternates(history: readonly string[], period: number, rounds: number): boolean {
  const tail = history.slice(-period * rounds)
  return (
    tail.length === period * rounds &&
    tail.every((key, index) => key === tail[index % period]) &&
    new Set(tail).size > 1
  )
}
