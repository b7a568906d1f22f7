import type { Call } from '../scope/call.ts'

/** What to do after the end, and why. */
export interface Stop {
  readonly kind: 'shutdown' | 'restart'
  readonly reason: string
  /** Milliseconds in which running requests may end, instead of `plugins.drain_ms`. */
  readonly drainMs?: number
}

/** The request that the daemon stops. Only the first one counts. */
export class StopRequest {
  readonly #maxWaitMs: () => number
  readonly #requested = Promise.withResolvers<Stop>()
  #reason: string | undefined
  #drainMs: number | undefined

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

  /** Milliseconds in which running requests may end. */
  get drainMs(): number {
    return this.#drainMs ?? this.#maxWaitMs()
  }

  send(stop: Stop, callers: readonly Call[], before: readonly ((stop: Stop) => Promise<void>)[] = []): void {
    if (this.#reason !== undefined) return
    this.#reason = stop.reason
    this.#drainMs = stop.drainMs
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
