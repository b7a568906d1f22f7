/** Paces sends. Callers reserve a place in the queue, so none of them waits in vain. */
export class TokenBucket {
  readonly #intervalMs: number
  readonly #toleranceMs: number
  /** When the next token without a burst falls due. */
  #arrival = 0
  #lastNow = 0
  constructor({ perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
    this.#intervalMs = 1000 / perSecond
    this.#toleranceMs = this.#intervalMs * Math.max(0, burst - 1)
  }

  /** Takes a token; returns the milliseconds until it may be used. */
  reserve(now: number): number {
    // A clock that was set back makes nobody wait for the time it was wrong.
    if (now < this.#lastNow) this.#arrival -= this.#lastNow - now
    this.#lastNow = now
    const arrival = Math.max(this.#arrival, now)
    this.#arrival = arrival + this.#intervalMs
    return Math.max(0, arrival - this.#toleranceMs - now)
  }
  /** No token is in use: a new bucket would do the same. */
  isFull(now: number): boolean {
    return this.#arrival <= now
  }
}
