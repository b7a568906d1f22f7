/** A clock may be wrong by this much; what is older is no longer accepted, so it need not be remembered either. */
export const WINDOW_MS = 300_000
/** How long a nonce is kept where several daemons see it, whose clocks may differ too. */
export const SHARED_WINDOW_MS = 2 * WINDOW_MS
const MAX_NONCES = 100_000

/** Nonces used within the clock window. Only authenticated nonces are stored, so a stranger cannot fill the memory. */
export class Replays {
  readonly #until = new Map<string, number>()
  readonly #max: number
  constructor(max = MAX_NONCES) {
    this.#max = max
  }

  get size(): number {
    return this.#until.size
  }

  /** Whether the nonce is new, and marks it used. `false` too when there is no room to remember it. */
  take(nonce: string, sentAt: number, now: number): boolean {
    // In the order of arrival the first ones end first, give or take the difference of the clocks.
    for (const [known, until] of this.#until) {
      if (until >= now) break
      this.#until.delete(known)
    }
    if (this.#until.has(nonce) || this.#until.size >= this.#max) return false
    this.#until.set(nonce, Math.max(now, sentAt) + WINDOW_MS)
    return true
  }
}
