/** Runs work one at a time, in the order of the calls. The caller gets the rejection; the queue goes on. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Settles as `work` does. */
  run<T>(work: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.then(ignore, ignore)
    return result
  }

  /** Settles when everything added so far has ended. Never rejects. */
  async idle(): Promise<void> {
    await this.#last
  }
}

/** One queue for each key: work under the same key runs in order, under different keys side by side. */
export class KeyedQueue {
  readonly #queues = new Map<string, { readonly queue: SerialQueue; waiting: number }>()

  /** How many keys have work. */
  get size(): number {
    return this.#queues.size
  }

  /** Settles as `work` does, after all earlier work under the key. */
  async run<T>(key: string, work: () => Promise<T> | T): Promise<T> {
    const entry = this.#queues.get(key) ?? { queue: new SerialQueue(), waiting: 0 }
    this.#queues.set(key, entry)
    entry.waiting++
    try {
      return await entry.queue.run(work)
    } finally {
      if (--entry.waiting === 0) this.#queues.delete(key)
    }
  }
}

function ignore(): void {}
