/** Whether the plugins were told that the daemon serves requests, and the work this causes. */
export class Listening {
  isAnnounced = false
  readonly #work = new Set<Promise<unknown>>()

  /** Whoever starts the work handles its failure. */
  trackWork(work: Promise<unknown>): void {
    const tracked = work
      .catch(() => undefined)
      .finally(() => {
        this.#work.delete(tracked)
      })
    this.#work.add(tracked)
  }
  /** Settles when no tracked work goes on any more. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }
}
