import type { Watchdog } from './watchdog.ts'

/** Ends an exchange with this reason. */
export type Abandon = (reason: unknown) => void

/** What all exchanges of a daemon share. */
export interface SharedExchanges {
  readonly open: Set<Abandon>
  readonly owners: Owners
  readonly dog: Watchdog
}
/** Exchanges that end with a signal that outlives many requests: one listener for all of them. */
export class Owners {
  readonly #running = new WeakMap<AbortSignal, Set<Abandon>>()
  enter(owner: AbortSignal, abandon: Abandon): void {
    const known = this.#running.get(owner)
    if (known) {
      known.add(abandon)
      return
    }
    const running = new Set([abandon])
    this.#running.set(owner, running)
    const abandonAll = (): void => {
      for (const each of running) each(owner.reason)
    }
    owner.addEventListener('abort', abandonAll, { once: true })
  }
  leave(owner: AbortSignal, abandon: Abandon): void {
    this.#running.get(owner)?.delete(abandon)
  }
}
