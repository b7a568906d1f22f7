const MINUTE_MS = 60_000

/** Limits how many tools each agent may call in a minute, over all its turns. */
export class ToolCallRate {
  readonly #calls = new Map<string, number[]>()
  readonly #now: () => number
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a call. Returns the seconds to wait when there were `max` in the last minute; a `max` of 0 is no limit. */
  take(agentId: string, max: number): number {
    if (max === 0) return 0
    const now = this.#now()
    const calls = (this.#calls.get(agentId) ?? []).filter((at) => at > now - MINUTE_MS)
    this.#calls.set(agentId, calls)
    const [first] = calls
    if (calls.length >= max && first !== undefined) return Math.ceil((first + MINUTE_MS - now) / 1000)
    calls.push(now)
    return 0
  }
  forget(agentId: string): void {
    this.#calls.delete(agentId)
  }
}
