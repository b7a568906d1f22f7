/** A clock that jumps to the next moment at which something happens. */
export class SimulatedClock {
  #now = 0
  readonly #heap: { readonly at: number; readonly run: () => void }[] = []

  /** Milliseconds since the start. */
  get now(): number {
    return this.#now
  }
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#push({ at: this.#now + ms, run: resolve }))
  }
  /** Settles when so much time has passed. */
  async run(ms: number): Promise<void> {
    for (;;) {
      // What follows from the last event happens before the next one.
      await new Promise(setImmediate)
      const next = this.#heap[0]
      if (!next || next.at > ms) break
      this.#pop()
      this.#now = next.at
      next.run()
    }
  }

  #push(event: { readonly at: number; readonly run: () => void }): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (!above || above.at <= event.at) break
      heap[at] = above
      at = parent
    }
    heap[at] = event
  }
  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if ((heap[child + 1]?.at ?? Infinity) < (heap[child]?.at ?? Infinity)) child++
      const below = heap[child]
      if (!below || below.at >= last.at) break
      heap[at] = below
      at = child
    }
    heap[at] = last
  }
}

/** What so many may have at a time, such as cores, connections, or a lock; the others wait in line. */
export class Station {
  readonly #waiting: (() => void)[] = []
  #free: number
  constructor(places: number) {
    this.#free = places
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

/** Cores on which work is done at a speed: 0.8 when others take a fifth of them. */
export class Cores {
  readonly #station: Station
  readonly #clock: SimulatedClock
  readonly #speed: number
  busyMs = 0
  constructor(clock: SimulatedClock, count: number) {
    this.#clock = clock
    const places = Math.max(1, Math.ceil(count))
    this.#speed = count / places
    this.#station = new Station(places)
  }

  work(ms: number): Promise<void> {
    this.busyMs += ms
    return this.#station.use(() => this.#clock.wait(ms / this.#speed))
  }
}

/** Commits that wait for the disk share a write: that which begins when the one before it has ended. */
export class WriteAheadLog {
  readonly #clock: SimulatedClock
  readonly #flushMs: number
  #next: Promise<void> | undefined
  #current: Promise<void> = Promise.resolve()
  constructor(clock: SimulatedClock, flushMs: number) {
    this.#clock = clock
    this.#flushMs = flushMs
  }

  flush(): Promise<void> {
    this.#next ??= this.#current.then(() => {
      this.#next = undefined
      this.#current = this.#clock.wait(this.#flushMs)
      return this.#current
    })
    return this.#next
  }
}
