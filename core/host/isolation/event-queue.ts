/** More than this and the source is paused. */
const MAX_QUEUED = 64

/** Events of a source as a stream that is read once. */
export class EventQueue<T> implements AsyncIterable<T> {
  readonly #source: { pause(): unknown; resume(): unknown }
  readonly #queue: T[] = []
  #ended = false
  #failure: Error | undefined
  #wake: (() => void) | undefined

  constructor(source: { pause(): unknown; resume(): unknown }) {
    this.#source = source
  }

  push(event: T): void {
    this.#queue.push(event)
    if (this.#queue.length > MAX_QUEUED) this.#source.pause()
    this.#wake?.()
  }
  end(): void {
    this.#ended = true
    this.#wake?.()
  }
  fail(error: Error): void {
    this.#failure = error
    this.end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const event = this.#queue.shift()
      if (event !== undefined) {
        if (this.#queue.length === 0) this.#source.resume()
        yield event
      } else if (this.#ended) {
        if (this.#failure) throw this.#failure
        return
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
