import { HANDSHAKE_MS } from './handshake.ts'

const MOST = 32

/** Connections that have proven nothing yet: so many at once and so long each, or a stranger could hold all of them. */
export class HalfOpen {
  readonly #since = new Map<symbol, number>()
  readonly #most: number
  /** Monotonic milliseconds. */
  readonly #now: () => number
  constructor(now: () => number, most = MOST) {
    this.#now = now
    this.#most = most
  }

  /** A place, to be given back when the handshake has ended either way; `undefined` when all are taken. */
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
