interface Entry<T> {
  readonly item: T
  readonly ready: Promise<unknown>
}

/**
 * One line for each key: what is in it runs one at a time, in the order in which it came. Lines of different keys do not wait
 * for each other. An item whose `ready` rejects is left out.
 */
export class TurnQueue<T> {
  readonly #queue = new Map<string, Entry<T>[]>()
  readonly #run: (item: T, next: () => T | undefined) => Promise<void>
  /** `run` must not reject. `next` tells which item follows, at the moment of asking. */
  constructor(run: (item: T, next: () => T | undefined) => Promise<void>) {
    this.#run = run
  }

  /** How many wait or run. */
  length(key: string): number {
    return this.#queue.get(key)?.length ?? 0
  }
  /** Lines with something in them. */
  get size(): number {
    return this.#queue.size
  }
  get total(): number {
    let sum = 0
    for (const lane of this.#queue.values()) sum += lane.length
    return sum
  }
  of(key: string): readonly T[] {
    return (this.#queue.get(key) ?? []).map(({ item }) => item)
  }
  running(key: string): T | undefined {
    return this.#queue.get(key)?.[0]?.item
  }
  *items(): Iterable<T> {
    for (const lane of this.#queue.values()) for (const { item } of lane) yield item
  }
  *heads(): Iterable<T> {
    for (const [first] of this.#queue.values()) if (first) yield first.item
  }

  /** Settles when the item has run. Whether it is the first of its line is known at once from `running`. */
  async add(key: string, item: T, ready: Promise<unknown>): Promise<void> {
    const lane = this.#queue.get(key)
    if (lane) {
      lane.push({ item, ready })
      return
    }
    const own: Entry<T>[] = [{ item, ready }]
    this.#queue.set(key, own)
    for (let entry = own[0]; entry; entry = own[0]) {
      if (await settles(entry.ready)) await this.#run(entry.item, () => own[1]?.item)
      own.shift()
    }
    this.#queue.delete(key)
  }
}

async function settles(ready: Promise<unknown>): Promise<boolean> {
  try {
    await ready
    return true
  } catch {
    // Whoever made the promise hears of the failure; here it only means that there is nothing to run.
    return false
  }
}
