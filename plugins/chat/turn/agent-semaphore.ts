/** How many turns of one agent may run at a time, across its sessions. Who comes first goes first. */
export class AgentSemaphore {
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Settles with a place; at once when one is free. Rejects with the reason of the signal, without one. */
  async take(agentId: string, most: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#count(agentId) < most) {
      this.#taken.set(agentId, this.#count(agentId) + 1)
      return
    }
    const queue = this.#waiting.get(agentId) ?? []
    this.#waiting.set(agentId, queue)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stop = (): void => {
      queue.splice(queue.indexOf(resolve), 1)
      reject(signal.reason)
    }
    queue.push(resolve)
    signal.addEventListener('abort', stop, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Gives a place to the next one. */
  leave(agentId: string): void {
    const next = this.#waiting.get(agentId)?.shift()
    if (this.#waiting.get(agentId)?.length === 0) this.#waiting.delete(agentId)
    if (next) return next()
    const left = this.#count(agentId) - 1
    if (left > 0) this.#taken.set(agentId, left)
    else this.#taken.delete(agentId)
  }

  #count(agentId: string): number {
    return this.#taken.get(agentId) ?? 0
  }
}
