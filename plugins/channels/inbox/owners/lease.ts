import { randomUUID } from 'node:crypto'
import type { Logger } from 'svc/sdk'
import type { Clock } from '../../clock.ts'
import type { OwnerStore } from './store.ts'

/** An owner whose row stands still for so many beats of this one is dead: together they take as long as the lease. */
const BEATS = 3

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
  /** Of the other owners: the newest count, and for how many beats it has stood still. */
  readonly #others = new Map<string, { readonly beats: number; readonly still: number }>()
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
      this.#deps.log.warn('the lease on messages of channels could not be renewed; another attempt follows', error)
    } finally {
      this.#schedule()
    }
  }
  async #beat(): Promise<void> {
    const { store, home, takenOver } = this.#deps
    // Taken for dead, it begins anew: what it had belongs to another, and new messages are its own.
    if (!(await store.beat(this.id))) await store.begin(this.id, home)
    const others = await store.others(this.id)
    const dead = others.filter((other) => this.#standsStill(other))
    for (const { id } of dead) this.#others.delete(id)
    for (const id of this.#others.keys()) if (!others.some((other) => other.id === id)) this.#others.delete(id)
    if ((await store.takeOver(this.id, dead)) > 0) await takenOver()
  }
  #standsStill({ id, beats }: { readonly id: string; readonly beats: number }): boolean {
    const known = this.#others.get(id)
    const still = known?.beats === beats ? known.still + 1 : 0
    this.#others.set(id, { beats, still })
    return still >= BEATS
  }
}
