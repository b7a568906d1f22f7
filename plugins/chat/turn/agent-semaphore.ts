/** Limits how many turns of one agent run at a time, across its sessions. First come, first served. */
export class AgentSemaphore {
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Settles at once when a slot is free. Rejects with the reason of the signal, and then holds no slot. */
  async acquire(agentId: string, limit: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#count(agentId) < limit) {
      this.#running.set(agentId, this.#count(agentId) + 1)
      return
    }
    const waiting = this.#waiting.get(agentId) ?? []
    this.#waiting.set(agentId, waiting)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stop = (): void => {
      waiting.splice(waiting.indexOf(resolve), 1)
      reject(signal.reason)
    }
    waiting.push(resolve)
    signal.addEventListener('abort', stop, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Hands the slot to the next waiting turn. */
  release(agentId: string): void {
    const next = this.#waiting.get(agentId)?.shift()
    if (this.#waiting.get(agentId)?.length === 0) this.#waiting.delete(agentId)
    if (next) return next()
    const left = this.#count(agentId) - 1
    if (left > 0) this.#running.set(agentId, left)
    else this.#running.delete(agentId)
  }

  #count(agentId: string): number {
    return this.#running.get(agentId) ?? 0
  }
}
