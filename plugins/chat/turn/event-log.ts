import type { TurnEvent } from '../contract.ts'

interface Waiting {
  resolve(step: IteratorResult<TurnEvent>): void
  reject(error: unknown): void
  readonly reader: Reader
}

/**
 * The events of one turn from its start, for every reader. A reader that is slower than the model gets the text it
 * missed as one delta, so the length of the answer bounds the log, however many readers there are.
 */
export class EventLog implements AsyncIterable<TurnEvent> {
  readonly events: TurnEvent[] = []
  ended = false
  error: unknown
  #waiting: Waiting[] = []
  #flushing = false
  #texts = 0

  push(event: TurnEvent): void {
    this.events.push(event)
    if (this.#waiting.length === 0) return
    // Deltas that arrive in one piece from the provider leave as one; the very first one is not kept waiting.
    if ((event.type !== 'text' && event.type !== 'reasoning') || this.#texts++ === 0) this.#flush()
    else if (!this.#flushing) {
      this.#flushing = true
      process.nextTick(() => this.#flush())
    }
  }
  end(): void {
    this.ended = true
    this.#flush()
  }
  fail(error: unknown): void {
    this.error = error
    this.end()
  }

  [Symbol.asyncIterator](): AsyncIterator<TurnEvent> {
    return this.reader()
  }
  /** Begins with the event that has this number. */
  reader(from = 0): Reader {
    return new Reader(this, from)
  }

  /** What is there now, texts joined, and a reader that goes on behind it. */
  snapshot(): { readonly events: readonly TurnEvent[]; readonly rest: AsyncIterable<TurnEvent> } {
    const reader = new Reader(this)
    const events: TurnEvent[] = []
    for (let step = reader.take(); step && step.done !== true; step = reader.take()) events.push(step.value)
    return { events, rest: { [Symbol.asyncIterator]: () => reader } }
  }

  wait(reader: Reader): Promise<IteratorResult<TurnEvent>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, reader })
    })
  }
  forget(reader: Reader): void {
    for (const each of this.#waiting.filter((one) => one.reader === reader))
      each.resolve({ done: true, value: undefined })
    this.#waiting = this.#waiting.filter((one) => one.reader !== reader)
  }

  #flush(): void {
    this.#flushing = false
    for (const { reader, resolve, reject } of this.#waiting.splice(0)) {
      const step = reader.take()
      if (step) resolve(step)
      else if (this.error !== undefined) reject(this.error)
      else resolve({ done: true, value: undefined })
    }
  }
}

export class Reader implements AsyncIterator<TurnEvent> {
  readonly #log: EventLog
  #at: number
  #left = false
  constructor(log: EventLog, from = 0) {
    this.#log = log
    this.#at = from
  }

  /** Whether nothing comes any more. */
  get isAtEnd(): boolean {
    return this.#log.ended && this.#log.error === undefined && this.#at >= this.#log.events.length
  }
  /** The number of the event that comes next. */
  get position(): number {
    return this.#at
  }

  next(): Promise<IteratorResult<TurnEvent>> {
    const step = this.take()
    if (step) return Promise.resolve(step)
    if (!this.#left && !this.#log.ended) return this.#log.wait(this)
    if (!this.#left && this.#log.error !== undefined) return Promise.reject(this.#log.error)
    return Promise.resolve({ done: true, value: undefined })
  }
  return(): Promise<IteratorResult<TurnEvent>> {
    this.#left = true
    this.#log.forget(this)
    return Promise.resolve({ done: true, value: undefined })
  }

  /** What comes next, if it is there. */
  take(): IteratorResult<TurnEvent> | undefined {
    if (this.#left) return undefined
    const { events } = this.#log
    const first = events[this.#at]
    if (!first) return undefined
    this.#at++
    let next = events[this.#at]
    if ((first.type !== 'text' && first.type !== 'reasoning') || next?.type !== first.type)
      return { done: false, value: first }
    const { type } = first
    let { delta } = first
    for (; next?.type === type; next = events[++this.#at]) delta += next.delta
    return { done: false, value: { type, delta } }
  }
}
