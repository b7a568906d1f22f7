const MINUTE = 60_000

/** How many calls of tools each agent may make in a minute, over all its turns. */
export class Pace {
  readonly #calls = new Map<string, number[]>()
  readonly #now: () => number
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a call; seconds to wait when there were `most` in the last minute. 0 is no limit. */
  take(agentId: string, most: number): number {
    if (most === 0) return 0
    const now = this.#now()
    const calls = (this.#calls.get(agentId) ?? []).filter((at) => at > now - MINUTE)
    this.#calls.set(agentId, calls)
    const [first] = calls
    if (calls.length >= most && first !== undefined) return Math.ceil((first + MINUTE - now) / 1000)
    calls.push(now)
    return 0
  }
  forget(agentId: string): void {
    this.#calls.delete(agentId)
  }
}
