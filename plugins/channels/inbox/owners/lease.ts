import { randomUUID } from 'node:crypto'
import { BEATS, HeartbeatWatch } from 'svc/internal'
import type { Logger } from 'svc/sdk'
import type { Clock } from 'svc/internal'
import type { OwnerStore } from './store.ts'

export interface OwnerLeaseDeps {
  readonly store: OwnerStore
  /** The same in every process on one home: one that starts there need not wait for the one before it. */
  readonly home: string
  readonly clock: Pick<Clock, 'after'>
  readonly leaseMs: number
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'warn'>
  readonly background: (work: () => Promise<void>) => void
  /** Messages of an owner that is dead belong to this one now. */
  readonly takenOver: () => Promise<void>
}

/**
 * The right to work on messages of the inbox, for one instance among the daemons on a database. It counts up its own
 * row, and takes over from an owner whose row stood still through a whole lease: no clock is compared with another, so
 * none that jumps or is wrong makes a living owner look dead.
 */
export class OwnerLease {
  readonly id: string = randomUUID()
  readonly #deps: OwnerLeaseDeps
  readonly #watch = new HeartbeatWatch()
  #cancel: (() => void) | undefined
  #isHeld = false
  constructor(deps: OwnerLeaseDeps) {
    this.#deps = deps
  }

  /** Registers, and takes over what an earlier process on this home left. */
  async begin(): Promise<void> {
    const { store, home } = this.#deps
    await store.begin(this.id, home)
    this.#isHeld = true
    await store.takeOver(this.id)
    this.#schedule()
  }
  /** Lets others take over at once. */
  async end(): Promise<void> {
    this.#cancel?.()
    if (!this.#isHeld) return
    this.#isHeld = false
    await this.#deps.store.end(this.id)
  }

  #schedule(): void {
    const { clock, leaseMs, signal, background } = this.#deps
    if (signal.aborted || !this.#isHeld) return
    this.#cancel = clock.after(leaseMs / BEATS, () => background(() => this.#tryBeat()))
  }
  async #tryBeat(): Promise<void> {
    try {
      await this.#beat()
    } catch (error) {
      this.#watch.startAgain()
      this.#deps.log.warn('the lease on messages of channels could not be renewed; another attempt follows', error)
    } finally {
      this.#schedule()
    }
  }
  async #beat(): Promise<void> {
    const { store, home, takenOver } = this.#deps
    // Taken for dead, it begins anew: what it had belongs to another, and new messages are its own.
    if (!(await store.beat(this.id))) await store.begin(this.id, home)
    const dead = this.#watch.check(await store.others(this.id))
    if ((await store.takeOver(this.id, dead)) > 0) await takenOver()
  }
}
