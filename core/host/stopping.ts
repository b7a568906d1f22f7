import type { Call } from '../scope/call.ts'

/** What the daemon was asked for. */
export interface Stop {
  readonly kind: 'shutdown' | 'restart'
  readonly reason: string
}

/** The wish that the daemon ends. The first one counts. */
export class Stopping {
  readonly #patienceMs: () => number
  readonly #asked = Promise.withResolvers<Stop>()
  #reason: string | undefined

  /** `patienceMs`: how long the request that asks may take to be answered. */
  constructor(patienceMs: () => number) {
    this.#patienceMs = patienceMs
  }

  /** Settles when the one who asked has got an answer. */
  get asked(): Promise<Stop> {
    return this.#asked.promise
  }

  /** Why, from the moment it was asked for. */
  get reason(): string | undefined {
    return this.#reason
  }

  ask(stop: Stop, callers: readonly Call[], before?: () => Promise<void>): void {
    if (this.#reason !== undefined) return
    this.#reason = stop.reason
    const timer = setTimeout(() => this.#asked.resolve(stop), this.#patienceMs())
    Promise.all([before?.(), ...callers.map((call) => call.settled())])
      // Whatever could not be written down, the daemon ends as it was told to.
      .catch(() => undefined)
      .finally(() => {
        clearTimeout(timer)
        this.#asked.resolve(stop)
      })
  }
}
