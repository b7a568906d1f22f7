import type { Clock } from 'svc/internal'

/** Keys that were suspended long ago make room for new ones. */
const MAX_KEYS = 1000
type Reason = 'refused' | 'rate_limit'

/**
 * Chooses the next of a provider's keys. Calls take them in turn; one that was refused or used too often is suspended
 * for a while. A key is named by its circuit, so that none is kept here. The only key of a provider is never suspended.
 */
export class KeyRotation {
  readonly #clock: Clock
  readonly #suspended = new Map<string, { readonly until: number; readonly reason: Reason }>()
  #turn = 0
  constructor(clock: Clock) {
    this.#clock = clock
  }

  suspend(name: string, ms: number, reason: Reason): void {
    this.#suspended.delete(name)
    this.#suspended.set(name, { until: this.#clock.now() + ms, reason })
    if (this.#suspended.size > MAX_KEYS)
      for (const oldest of this.#suspended.keys()) {
        this.#suspended.delete(oldest)
        break
      }
  }
  isSuspended(name: string): boolean {
    const rest = this.#suspended.get(name)
    if (rest && rest.until <= this.#clock.now()) this.#suspended.delete(name)
    return this.#suspended.has(name)
  }

  /**
   * The index of the next key; `blocked` tells which ones cannot be used for other reasons. When all are suspended, it
   * is the rate-limited one that is free first, with the milliseconds until then; a refused key is tried again at once,
   * so that the caller gets the reason.
   */
  next(
    names: readonly string[],
    blocked: (name: string) => boolean,
  ): { readonly index: number; readonly waitMs: number } {
    const start = this.#turn++
    for (let step = 0; step < names.length; step++) {
      const index = (start + step) % names.length
      const name = names[index]
      if (name !== undefined && !this.isSuspended(name) && !blocked(name)) return { index, waitMs: 0 }
    }
    let soonest = -1
    let until = Infinity
    for (const [index, name] of names.entries()) {
      const rest = this.#suspended.get(name)
      if (rest?.reason !== 'rate_limit' || rest.until >= until) continue
      soonest = index
      until = rest.until
    }
    return soonest < 0
      ? { index: start % names.length, waitMs: 0 }
      : { index: soonest, waitMs: until - this.#clock.now() }
  }
}
