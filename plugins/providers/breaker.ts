import { hash } from 'node:crypto'
import type { Clock } from 'svc/internal'

/** Unused circuits are dropped for new ones above this number. */
const MAX_CIRCUITS = 1000

interface Circuit {
  failures: number[]
  openUntil: number
  trial: boolean
  /** Trials in a row that failed. */
  trials: number
}
interface Limits {
  readonly failures: number
  readonly windowMs: number
  /** The longest pause. */
  readonly pauseMs: number
  /** The first one. */
  readonly trialMs: number
}
/** One call that a circuit let through. Exactly one of its ends is called. */
export interface Admission {
  succeeded(): void
  failed(): void
  /** The call ended without saying anything of the provider. */ left(): void
}

/**
 * Stops calling what keeps failing. A circuit opens after a number of failures within a window; after a short pause one
 * single call is let through as a trial. When it succeeds the circuit closes, when it fails the pause doubles: what is
 * back soon is used soon, and what stays away is hardly called.
 */
export class Breaker {
  readonly #clock: Clock
  readonly #limits: Limits
  readonly #circuits = new Map<string, Circuit>()

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Whether a circuit of the provider opened, and no call has succeeded since. */
  isOpen(provider: string): boolean {
    return [...this.#circuits].some(([name, { openUntil }]) => openUntil > 0 && name.startsWith(`${provider} `))
  }
  /** Whether a call would not be let through now. */
  blocks(name: string): boolean {
    const circuit = this.#circuits.get(name)
    return circuit !== undefined && circuit.openUntil > 0 && (this.#clock.now() < circuit.openUntil || circuit.trial)
  }

  /** Admits a call, or returns the milliseconds until a call may be admitted. */
  admit(name: string): Admission | number {
    const circuit = this.#circuit(name)
    const now = this.#clock.now()
    const open = circuit.openUntil > 0
    if (open && (now < circuit.openUntil || circuit.trial))
      return Math.max(1, circuit.trial ? this.#limits.trialMs : 0, circuit.openUntil - now)
    circuit.trial = open
    let ended = false
    const once = (end: () => void) => () => {
      if (!ended) {
        ended = true
        if (open) circuit.trial = false
        end()
      }
    }
    return {
      succeeded: once(() => {
        circuit.failures = []
        circuit.openUntil = 0
        circuit.trials = 0
      }),
      failed: once(() => {
        const at = this.#clock.now()
        circuit.failures = [...circuit.failures.filter((time) => at - time < this.#limits.windowMs), at]
        if (open || circuit.failures.length >= this.#limits.failures) {
          const { pauseMs, trialMs } = this.#limits
          circuit.openUntil = at + Math.min(pauseMs, trialMs * 2 ** circuit.trials++)
          circuit.failures = []
        }
      }),
      left: once(() => {}),
    }
  }

  #circuit(name: string): Circuit {
    let circuit = this.#circuits.get(name)
    // Only a map that is nearly full needs its order kept, so that the first one is the oldest.
    if (circuit && this.#circuits.size < MAX_CIRCUITS / 2) return circuit
    if (circuit) this.#circuits.delete(name)
    else circuit = { failures: [], openUntil: 0, trial: false, trials: 0 }
    this.#circuits.set(name, circuit)
    if (this.#circuits.size > MAX_CIRCUITS)
      for (const oldest of this.#circuits.keys()) {
        this.#circuits.delete(oldest)
        break
      }
    return circuit
  }
}

/** Names a circuit after a provider, where it is and which key it is called with, without keeping the key. */
export function circuitName(provider: string, baseUrl: string, key: string | undefined): string {
  return `${provider} ${baseUrl} ${key === undefined ? '-' : hash('sha256', key, 'base64url').slice(0, 16)}`
}
