import { monotonicClock } from 'svc/internal'
import type { Clock } from 'svc/internal'

/** A time limit that stands still while it is paused. */
export class TimeLimit {
  readonly #stop = new AbortController()
  readonly #clock: Clock
  #leftMs: number
  #since = 0
  #cancel: (() => void) | undefined
  constructor(ms: number, clock: Clock = monotonicClock) {
    this.#leftMs = ms
    this.#clock = clock
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }
  run(): void {
    if (this.#cancel) return
    this.#since = this.#clock.now()
    this.#cancel = this.#clock.after(this.#leftMs, () => this.#stop.abort(new Error('the time is over')))
  }
  pause(): void {
    if (!this.#cancel) return
    this.#cancel()
    this.#cancel = undefined
    this.#leftMs = Math.max(0, this.#leftMs - (this.#clock.now() - this.#since))
  }
}
