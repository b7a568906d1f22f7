/** Work that makes up for everything that was asked for before it began: asked again meanwhile, it runs once more. */
export class RepeatedWork {
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  #isDue = false
  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Settles when the work has run that began after this call. Rejects as that does. */
  async run(): Promise<void> {
    this.#isDue = true
    while (this.#isDue) {
      this.#running ??= this.#runDue().finally(() => {
        this.#running = undefined
      })
      await this.#running
    }
  }
  async #runDue(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false
      await this.#work()
    }
  }
}
