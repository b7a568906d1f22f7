const MINUTE_MS = 60_000

/** When an agent called tools; those of the last minute are from `first` on. */
interface Calls {
  times: number[]
  first: number
}

/** Limits how many tools each agent may call in a minute, over all its turns. */
export class ToolCallRate {
  readonly #calls = new Map<string, Calls>()
  readonly #now: () => number
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a call. Returns the seconds to wait when there were `max` in the last minute; a `max` of 0 is no limit. */
  take(agentId: string, max: number): number {
    if (max === 0) return 0
    const now = this.#now()
    const calls = this.#recent(agentId, now - MINUTE_MS)
    const oldest = calls.times[calls.first]
    if (calls.times.length - calls.first >= max && oldest !== undefined)
      return Math.ceil((oldest + MINUTE_MS - now) / 1000)
    calls.times.push(now)
    return 0
  }
  forget(agentId: string): void {
    this.#calls.delete(agentId)
  }

  /** A busy agent makes thousands of calls a minute, so they are not all walked at each. */
  #recent(agentId: string, since: number): Calls {
    let calls = this.#calls.get(agentId)
    if (!calls) this.#calls.set(agentId, (calls = { times: [], first: 0 }))
    while ((calls.times[calls.first] ?? Infinity) <= since) calls.first++
    if (calls.first > calls.times.length / 2) {
      calls.times = calls.times.slice(calls.first)
      calls.first = 0
    }
    return calls
  }
}
