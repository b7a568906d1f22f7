/** A copy of rows in memory that is read with its first use, and again with the first after each change. */
export class KeptRows<T> {
  readonly #read: () => Promise<T>
  #last: T | undefined
  #isFresh = false
  #changes = 0
  #reading: Promise<T> | undefined
  /** `read`: all of them. What it rejects with, `get` rejects with, and the next tries again. */
  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  /** As they were read last, which may be before a change; `undefined` before the first time. */
  get last(): T | undefined {
    return this.#last
  }
  /** As they were at a moment after the newest change before the call. */
  get(): Promise<T> {
    if (this.#isFresh) return Promise.resolve(this.#last as T)
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }
  /** Some of them are different on disk now. */
  changed(): void {
    this.#changes++
    this.#isFresh = false
  }

  async #readAll(): Promise<T> {
    for (;;) {
      const changes = this.#changes
      this.#last = await this.#read()
      // Else what was read may be from before the change.
      if (changes === this.#changes) {
        this.#isFresh = true
        return this.#last
      }
    }
  }
}
