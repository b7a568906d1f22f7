import type { Clock } from 'svc/internal'
import { backOffMs } from './retry.ts'
import type { BackOff } from './retry.ts'

export interface SendCircuitDeps {
  readonly clock: Pick<Clock, 'after'>
  readonly random: () => number
  readonly backOff: BackOff
  /** Chats that have to fail, without a success in between, before the circuit opens. */
  readonly maxFailedChats: number
  /** Called when an attempt may begin again. */
  readonly reopened: () => void
}
/** `probe`: the one attempt that tells whether the platform is back. */
export type Admission = 'free' | 'probe'

/**
 * The circuit breaker of an account. A platform that fails in several chats is away: it is asked with one message at a
 * time, after growing pauses, until it takes one. A failure in one chat says nothing of the others.
 */
export class SendCircuit {
  readonly #deps: SendCircuitDeps
  readonly #failedChats = new Set<string>()
  #state: 'closed' | 'open' | 'half-open' | 'probing' = 'closed'
  #openings = 0
  constructor(deps: SendCircuitDeps) {
    this.#deps = deps
  }

  /** `undefined` while nothing may be sent. A probe has to be ended by `endProbe`. */
  enter(): Admission | undefined {
    if (this.#state === 'closed') return 'free'
    if (this.#state !== 'half-open') return undefined
    this.#state = 'probing'
    return 'probe'
  }
  succeeded(): void {
    this.#failedChats.clear()
    this.#openings = 0
    this.#state = 'closed'
  }
  failed(chat: string): void {
    this.#failedChats.add(chat)
    if (this.#state !== 'probing' && (this.#state !== 'closed' || this.#failedChats.size < this.#deps.maxFailedChats))
      return
    const { clock, random, backOff, reopened } = this.#deps
    this.#state = 'open'
    clock.after(backOffMs(++this.#openings, random(), backOff), () => {
      if (this.#state !== 'open') return
      this.#state = 'half-open'
      reopened()
    })
  }
  /** Nothing was learned from a probe that neither failed nor succeeded: the next one may begin. */
  endProbe(): void {
    if (this.#state === 'probing') this.#state = 'half-open'
  }
}
