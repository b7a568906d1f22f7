interface Entry<T> {
  readonly item: T
  readonly ready: Promise<unknown>
}

/**
 * One queue for each key. The items of a key run one at a time, in the order of their addition; keys run side by side.
 * An item whose `ready` rejects is skipped. Unlike `KeyedQueue` it shows its items.
 */
export class TurnQueue<T> {
  readonly #queues = new Map<string, Entry<T>[]>()
  readonly #run: (item: T, next: () => T | undefined) => Promise<void>
  /** `run` must not reject. `next` returns the item that follows at that moment. */
  constructor(run: (item: T, next: () => T | undefined) => Promise<void>) {
    this.#run = run
  }

  /** Number of items under a key, the running one included. */
  length(key: string): number {
    return this.#queues.get(key)?.length ?? 0
  }
  /** Keys with items. */
  get size(): number {
    return this.#queues.size
  }
  get total(): number {
    let sum = 0
    for (const queue of this.#queues.values()) sum += queue.length
    return sum
  }
  of(key: string): readonly T[] {
    return (this.#queues.get(key) ?? []).map(({ item }) => item)
  }
  running(key: string): T | undefined {
    return this.#queues.get(key)?.[0]?.item
  }
  *items(): Iterable<T> {
    for (const queue of this.#queues.values()) for (const { item } of queue) yield item
  }
  /** The first item of each key. */
  *heads(): Iterable<T> {
    for (const [first] of this.#queues.values()) if (first) yield first.item
  }

  /**
   * Settles when the item has run. Before it returns, the item is in its queue, and `running` knows whether it is the
   * first.
   */
  async add(key: string, item: T, ready: Promise<unknown>): Promise<void> {
    const existing = this.#queues.get(key)
    if (existing) {
      const entry = { item, ready }
      existing.push(entry)
      // What waits behind others and cannot run is not shown as waiting.
      ready.catch(() => {
        const at = existing.indexOf(entry)
        if (at > 0) existing.splice(at, 1)
      })
      return
    }
    const queue: Entry<T>[] = [{ item, ready }]
    this.#queues.set(key, queue)
    for (let entry = queue[0]; entry; entry = queue[0]) {
      if (await settles(entry.ready)) await this.#run(entry.item, () => queue[1]?.item)
      queue.shift()
    }
    this.#queues.delete(key)
  }
}

async function settles(ready: Promise<unknown>): Promise<boolean> {
  try {
    await ready
    return true
  } catch {
    // The maker of the promise hears of the failure; here it only means that there is nothing to run.
    return false
  }
}

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
