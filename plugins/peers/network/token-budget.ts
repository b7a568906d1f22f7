const HOUR_MS = 3_600_000
const MAX_NODES = 10_000

/** Tokens that the messages of each node used in its current hour. */
export class TokenBudget {
  readonly #used = new Map<string, { tokens: number; readonly since: number }>()
  readonly #max: number
  /** Monotonic milliseconds. */
  readonly #now: () => number
  constructor(max: number, now: () => number) {
    this.#max = max
    this.#now = now
  }

  /** Whether the node may begin another turn. What one costs is known only at its end. */
  allows(nodeId: string): boolean {
    return (this.#current(nodeId)?.tokens ?? 0) < this.#max
  }
  charge(nodeId: string, tokens: number): void {
    const current = this.#current(nodeId)
    if (current) current.tokens += tokens
    else {
      const [oldest] = this.#used.keys()
      if (this.#used.size >= MAX_NODES && oldest !== undefined) this.#used.delete(oldest)
      this.#used.set(nodeId, { tokens, since: this.#now() })
    }
  }

  #current(nodeId: string) {
    const found = this.#used.get(nodeId)
    if (found && this.#now() - found.since < HOUR_MS) return found
    this.#used.delete(nodeId)
    return undefined
  }
}
