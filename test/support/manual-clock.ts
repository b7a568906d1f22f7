import type { Clock } from '../../core/scope/clock.ts'

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #now = 1_000_000
  #jumped = 0
  readonly #timers = new Map<object, { readonly at: number; readonly run: () => void }>()

  now(): number {
    return this.#now + this.#jumped
  }
  /** Somebody sets the clock: no time passes. */
  jump(ms: number): void {
    this.#jumped += ms
  }
  after(ms: number, run: () => void): () => void {
    const key = {}
    this.#timers.set(key, { at: this.#now + ms, run })
    return () => {
      this.#timers.delete(key)
    }
  }
  /** Timers that wait. */
  get waiting(): number {
    return this.#timers.size
  }
  /** Moves on and runs what is due, in its order. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const next = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0]
      if (!next) break
      this.#timers.delete(next[0])
      this.#now = Math.max(this.#now, next[1].at)
      next[1].run()
    }
    this.#now = end
  }
}
