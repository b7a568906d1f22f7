import type { Call } from '../scope/call.ts'

/** What to do after the end, and why. */
export interface Stop {
  readonly kind: 'shutdown' | 'restart'
  readonly reason: string
}

/** The request that the daemon stops. Only the first one counts. */
export class StopRequest {
  readonly #maxWaitMs: () => number
  readonly #requested = Promise.withResolvers<Stop>()
  #reason: string | undefined

  /** `maxWaitMs`: how long the request that caused the stop may take to be answered. */
  constructor(maxWaitMs: () => number) {
    this.#maxWaitMs = maxWaitMs
  }

  /** Resolves when the caller of `send` has been answered. */
  get requested(): Promise<Stop> {
    return this.#requested.promise
  }

  /** Set as soon as a stop was requested. */
  get reason(): string | undefined {
    return this.#reason
  }

  send(stop: Stop, callers: readonly Call[], before: readonly ((stop: Stop) => Promise<void>)[] = []): void {
    if (this.#reason !== undefined) return
    this.#reason = stop.reason
    const timer = setTimeout(() => this.#requested.resolve(stop), this.#maxWaitMs())
    Promise.all([...before.map((work) => work(stop)), ...callers.map((call) => call.settled())])
      // The daemon stops even if something could not be stored.
      .catch(() => undefined)
      .finally(() => {
        clearTimeout(timer)
        this.#requested.resolve(stop)
      })
  }
}
