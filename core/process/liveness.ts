import { hash } from 'node:crypto'
import { hostname } from 'node:os'

/** What tells the daemon of one home from every other on a database: a lock admits one process to a home. */
export function homeId({ homeDir }: { readonly homeDir: string }): string {
  return hash('sha256', `${hostname()}\n${homeDir}`).slice(0, 32)
}

/** How often an owner counts up its row in the time of a lease. */
export const BEATS = 3

export interface Heartbeat {
  readonly id: string
  readonly beats: number
}

/**
 * Tells which owners among the daemons on a database are dead: those whose row stood still through a whole lease of this
 * process. No clock is compared with another, so none that jumps or is wrong makes a living owner look dead. Ask it once
 * in each beat.
 */
export class HeartbeatWatch {
  /** The newest count of each, and for how many beats of this process it has stood still. */
  readonly #known = new Map<string, { readonly beats: number; readonly still: number }>()

  /** The dead ones among all others that there are. `patience`: for how many beats of this process one may stand still. */
  check<T extends Heartbeat>(others: readonly T[], patience: (other: T) => number = () => BEATS): readonly T[] {
    const ids = new Set(others.map(({ id }) => id))
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id)
    return others.filter((other) => this.#beatsStill(other) >= patience(other))
  }

  /** For a beat that failed: the others may not have reached the database either, so all count from anew. */
  startAgain(): void {
    this.#known.clear()
  }

  #beatsStill({ id, beats }: Heartbeat): number {
    const known = this.#known.get(id)
    const still = known?.beats === beats ? known.still + 1 : 0
    this.#known.set(id, { beats, still })
    return still
  }
}
