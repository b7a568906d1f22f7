import type { Clock } from './clock.ts'

/** Keys that rested long ago make room for new ones. */
const MOST_KEYS = 1000
type Reason = 'refused' | 'rate_limit'

/**
 * Which of a provider's keys is next. Calls take them in turn; one that was refused or used too often rests for a while. A key is named
 * by its circuit, so that none is kept here. A provider with one key has no choice and never rests.
 */
export class KeyRota {
  readonly #clock: Clock
  readonly #resting = new Map<string, { readonly until: number; readonly reason: Reason }>()
  #turn = 0
  constructor(clock: Clock) {
    this.#clock = clock
  }

  rest(name: string, ms: number, reason: Reason): void {
    this.#resting.delete(name)
    this.#resting.set(name, { until: this.#clock.now() + ms, reason })
    if (this.#resting.size > MOST_KEYS)
      for (const oldest of this.#resting.keys()) {
        this.#resting.delete(oldest)
        break
      }
  }
  rests(name: string): boolean {
    const rest = this.#resting.get(name)
    if (rest && rest.until <= this.#clock.now()) this.#resting.delete(name)
    return this.#resting.has(name)
  }

  /**
   * The number of the next key; `blocked` says which ones are out for other reasons. When all rest, the one that was only used too often
   * and may be used first, with the milliseconds until then; one that was refused is tried again at once, so that the caller is told why.
   */
  next(
    names: readonly string[],
    blocked: (name: string) => boolean,
  ): { readonly index: number; readonly waitMs: number } {
    const start = this.#turn++
    for (let step = 0; step < names.length; step++) {
      const index = (start + step) % names.length
      const name = names[index]
      if (name !== undefined && !this.rests(name) && !blocked(name)) return { index, waitMs: 0 }
    }
    let [soonest, until] = [-1, Infinity]
    for (const [index, name] of names.entries()) {
      const rest = this.#resting.get(name)
      if (rest?.reason === 'rate_limit' && rest.until < until) [soonest, until] = [index, rest.until]
    }
    return soonest < 0
      ? { index: start % names.length, waitMs: 0 }
      : { index: soonest, waitMs: until - this.#clock.now() }
  }
}
