import { Refusal } from 'svc/sdk'
import { beforeLast, checkExpression, nextCron } from './cron.ts'

/** When a job is due. Times are milliseconds since 1970. */
export type Timing =
  | { readonly kind: 'cron'; readonly expr: string; readonly tz: string }
  /** `from`: slots are whole intervals after this moment. */
  | { readonly kind: 'every'; readonly every_secs: number; readonly from: number }
  | { readonly kind: 'at'; readonly at: number }

const MIN_EVERY_SECS = 60
const MAX_EVERY_SECS = 86_400
const MAX_AHEAD_MS = 366 * 86_400_000

/** Throws `invalid_request` for a time that never comes or cannot be. */
export function checkTiming(timing: Timing, now: number): void {
  if (timing.kind === 'cron') return checkExpression(timing.expr, timing.tz, now)
  if (timing.kind === 'every') {
    const { every_secs: secs } = timing
    if (Number.isInteger(secs) && secs >= MIN_EVERY_SECS && secs <= MAX_EVERY_SECS) return
    throw refuse(`schedule.every_secs: expected a whole number from ${MIN_EVERY_SECS} to ${MAX_EVERY_SECS}`)
  }
  if (timing.at <= now) throw refuse('schedule.at: this time is in the past')
  if (timing.at > now + MAX_AHEAD_MS) throw refuse('schedule.at: this time is more than a year ahead')
}
const refuse = (message: string): Refusal => new Refusal('invalid_request', message)

/** The first slot after a moment. `undefined` when there is none. */
export function nextSlot(timing: Timing, after: number): number | undefined {
  if (timing.kind === 'cron') return nextCron(timing.expr, timing.tz, after)
  if (timing.kind === 'at') return timing.at > after ? timing.at : undefined
  const interval = timing.every_secs * 1000
  return timing.from + (Math.max(Math.floor((after - timing.from) / interval), 0) + 1) * interval
}

export interface DueSlots {
  /** The last ones, oldest first, as many as were asked for. */
  readonly slots: readonly number[]
  /** Whether there are more between the first one and these. */
  readonly isCut: boolean
}
/** The slots from `first`, which is one, up to and including `until`. */
export function dueSlots(timing: Timing, first: number, until: number, max: number): DueSlots {
  const slots = collect(timing, first, until, max)
  if (slots.length <= max) return { slots, isCut: false }
  const from = startOfLast(timing, first, until, max)
  const last = collect(timing, nextSlot(timing, from) ?? first, until, Infinity).slice(-max)
  return { slots: last, isCut: true }
}
function collect(timing: Timing, first: number, until: number, max: number): number[] {
  const slots: number[] = []
  let at: number | undefined = first
  while (at !== undefined && at <= until && slots.length <= max) {
    slots.push(at)
    at = nextSlot(timing, at)
  }
  return slots
}
function startOfLast(timing: Timing, first: number, until: number, max: number): number {
  if (timing.kind === 'every') return Math.max(until - max * timing.every_secs * 1000 - 1, first)
  if (timing.kind === 'at') return first
  return Math.max(beforeLast(timing.expr, timing.tz, max + 1, until) ?? first, first)
}
