import { HANDSHAKE_MS } from './handshake.ts'

const MAX_HALF_OPEN = 32

/**
 * Connections that have proven nothing yet, limited in number and time, so that a stranger cannot use up all of them.
 */
export class HalfOpen {
  readonly #since = new Map<symbol, { readonly since: number; readonly address: string }>()
  readonly #max: number
  readonly #maxPerAddress: number
  /** Monotonic milliseconds. */
  readonly #now: () => number
  constructor(now: () => number, max = MAX_HALF_OPEN, maxPerAddress = max) {
    this.#now = now
    this.#max = max
    this.#maxPerAddress = maxPerAddress
  }

  /** A slot, to be released when the handshake ends; `undefined` when all are in use. */
  enter(address = ''): (() => void) | undefined {
    const now = this.#now()
    for (const [place, { since }] of this.#since) if (now - since > HANDSHAKE_MS) this.#since.delete(place)
    if (this.#since.size >= this.#max) return undefined
    const same = [...this.#since.values()].filter((one) => one.address === address)
    if (same.length >= this.#maxPerAddress) return undefined
    const place = Symbol('half-open link')
    this.#since.set(place, { since: now, address })
    return () => {
      this.#since.delete(place)
    }
  }
}
