/** The questions of an adapter that asks at intervals, which a fake brings about when there is something to find. */
export class Polls {
  #count = 0
  #wake: (() => Promise<void>) | undefined
  #isDisposed = false
  readonly #waiting = new Set<() => void>()

  setWake(wake: () => Promise<void>): void {
    this.#wake = wake
  }
  /** A question has come. */
  note(): void {
    this.#count++
    for (const resume of this.#waiting) resume()
    this.#waiting.clear()
  }
  /** Settles with the first question. */
  async wait(): Promise<void> {
    if (this.#count === 0) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }
  /** Settles with the next question, which it brings about. */
  async next(): Promise<void> {
    const asked = new Promise<void>((resolve) => this.#waiting.add(resolve))
    this.hurry()
    await asked
  }
  /** Ends pauses of the adapter until it has asked once more. */
  hurry(): void {
    const before = this.#count
    const isDone = (): boolean => this.#isDisposed || this.#count > before
    const wake = async (): Promise<void> => {
      while (!isDone()) {
        await this.#wake?.()
        // What it does before the next pause.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    void wake()
  }
  dispose(): void {
    this.#isDisposed = true
  }
}
