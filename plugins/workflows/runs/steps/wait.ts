import { isObject } from 'svc/sdk'
import type { BuiltInStep } from './built-in.ts'
import { refuse } from './refuse.ts'

const MAX_SECS = 366 * 86_400

/** Waits for a time or an event, without holding anything. */
export function waitStep(): BuiltInStep {
  return {
    name: 'wait',
    check(definition) {
      const { seconds, until, event } = definition
      if ([seconds, until, event].filter((part) => part !== undefined).length === 0)
        throw refuse('with', 'seconds, until or event')
      if (event !== undefined && typeof event !== 'string') throw refuse('with.event', 'the type of an event')
      if (seconds !== undefined && !isSeconds(seconds) && !isTemplate(seconds))
        throw refuse('with.seconds', `1 to ${MAX_SECS} whole seconds`)
      if (until !== undefined && toTime(until) === undefined && !isTemplate(until))
        throw refuse('with.until', 'a time in ISO 8601, such as 2026-12-24T18:00:00Z')
    },
    run({ with: { seconds, until, event }, state, input }) {
      if (isObject(state) && 'event' in state) {
        const { event: payload } = state
        const output = typeof payload === 'string' ? payload : JSON.stringify(payload)
        return Promise.resolve({ outcome: 'done', output })
      }
      const since = isObject(state) ? Number(state['since']) : Date.now()
      const at = endOf(since, seconds, until)
      if (at !== undefined && at <= Date.now()) {
        if (event !== undefined) throw new Error(`the event ${String(event)} was not published in time`)
        return Promise.resolve({ outcome: 'done', output: input })
      }
      return Promise.resolve({
        outcome: 'waiting',
        state: { since },
        // An event wakes it.
        untilMs: at ?? since + MAX_SECS * 1000,
        ...(typeof event === 'string' && { event }),
      })
    },
  }
}

function endOf(since: number, seconds: unknown, until: unknown): number | undefined {
  if (seconds !== undefined) {
    const secs = Number(seconds)
    if (!isSeconds(secs))
      throw new Error(`with.seconds: expected 1 to ${MAX_SECS} whole seconds, got "${String(seconds)}"`)
    return since + secs * 1000
  }
  if (until === undefined) return undefined
  const at = toTime(until)
  if (at === undefined) throw new Error(`with.until: "${String(until)}" is no time in ISO 8601`)
  return at
}
const isTemplate = (value: unknown): boolean => typeof value === 'string' && value.includes('{{')
const isSeconds = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_SECS
/** A day, or a time with its zone: one without would depend on where the daemon runs. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/
function toTime(value: unknown): number | undefined {
  const at = typeof value === 'string' && TIME.test(value.trim()) ? Date.parse(value.trim()) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
