import { HANDSHAKE_MS } from './handshake.ts'

const MOST = 32

/**
 * Connections that have proven nothing yet, limited in number and time, so that a stranger cannot use up all of them.
 */
export class HalfOpen {
  readonly #since = new Map<symbol, number>()
  readonly #most: number
  /** Monotonic milliseconds. */
  readonly #now: () => number
  constructor(now: () => number, most = MOST) {
    this.#now = now
    this.#most = most
  }

  /** A slot, to be released when the handshake ends; `undefined` when all are in use. */
  enter(): (() => void) | undefined {
    const now = this.#now()
    for (const [place, since] of this.#since) if (now - since > HANDSHAKE_MS) this.#since.delete(place)
    if (this.#since.size >= this.#most) return undefined
    const place = Symbol('half-open link')
    this.#since.set(place, now)
    return () => {
      this.#since.delete(place)
    }
  }
}
