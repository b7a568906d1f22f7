import { HeartbeatWatch } from 'svc/internal'
import type { Heartbeat } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { Cluster } from '../cluster/contract.ts'
import type { JournalStore } from './store.ts'

/** Beats of an owner without a row: it has not counted yet, or is dead. */
const NO_ROW = -1

/** Whose turns are whose. */
export interface Owners {
  /** Of this process. */
  readonly id: string
  /**
   * Whether nobody works on the turns of an owner: for a dead one, unless it has beaten since this count, and with the
   * statements that make a batch fail when it is not dead after all.
   */
  readonly abandoned: (
    owner: string,
  ) => { readonly unlessBeyond: number | undefined; readonly unlessAlive?: readonly Statement[] } | undefined
}

/** On PostgreSQL the membership says who is alive. */
export function memberOwners(cluster: Pick<Cluster, 'self' | 'isAlive'>): Owners {
  const { self } = cluster
  return {
    id: self,
    abandoned: (owner) => (owner === self || cluster.isAlive(owner) ? undefined : { unlessBeyond: undefined }),
  }
}

export interface TurnOwnersDeps {
  readonly store: JournalStore
  /** Of this instance: `<home>/<random>`. It must never be used again. */
  readonly id: string
}

/**
 * Tells turns of a living process from abandoned ones. An instance with open turns counts up its row; one whose row
 * stands still for a whole lease is dead, and so is every other instance of this home.
 */
export class TurnOwners implements Owners {
  readonly id: string
  readonly #store: JournalStore
  readonly #watch = new HeartbeatWatch()
  #dead: readonly Heartbeat[] = []
  #hasRow = false
  constructor({ store, id }: TurnOwnersDeps) {
    this.#store = store
    this.id = id
  }

  /** Renews the lease on the turns of this instance. Resolves to how many owners left turns behind. */
  async beat(): Promise<number> {
    try {
      return await this.#beat()
    } catch (error) {
      this.#watch.startAgain()
      throw error
    }
  }
  async #beat(): Promise<number> {
    const owners = await this.#store.openOwners()
    await this.#renew(owners.includes(this.id))
    const others = owners.filter((owner) => owner !== this.id)
    if (others.length === 0) {
      this.#watch.startAgain()
      this.#dead = []
      return 0
    }
    const rows = new Map((await this.#store.heartbeats()).map(({ id, beats }) => [id, beats]))
    const foreign = others.filter((owner) => !this.#isAbandoned(owner))
    this.#dead = this.#watch.check(foreign.map((id) => ({ id, beats: rows.get(id) ?? NO_ROW })))
    return this.#dead.length + others.length - foreign.length
  }

  readonly abandoned = (owner: string): { readonly unlessBeyond: number | undefined } | undefined => {
    if (owner === this.id) return undefined
    if (this.#isAbandoned(owner)) return { unlessBeyond: undefined }
    const dead = this.#dead.find(({ id }) => id === owner)
    return dead && { unlessBeyond: dead.beats }
  }

  /** Released, of an earlier process on this home, or of a version without homes. */
  #isAbandoned(owner: string): boolean {
    const [home, instance] = owner.split('/')
    return instance === undefined || home === this.id.split('/')[0]
  }
  /** Only turns that take longer than a beat cost a row. */
  async #renew(hasOpen: boolean): Promise<void> {
    if (hasOpen) await this.#store.beat(this.id)
    else if (this.#hasRow) await this.#store.commit([this.#store.endOwner(this.id)])
    this.#hasRow = hasOpen
  }
}
