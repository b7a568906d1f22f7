import type { Cluster } from '../../cluster/contract.ts'
import { isNotHeld } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { DialerStore } from '../store.ts'

/**
 * The right to dial an entry of `network.peers` among the daemons on a database. They are one node to others, and a node
 * has one link: daemons that both dialled would take it from each other for ever.
 */
export class DialerClaims {
  readonly #store: DialerStore
  readonly #cluster: Pick<Cluster, 'self' | 'isAlive' | 'fence' | 'unlessAlive'>
  constructor(store: DialerStore, cluster: Pick<Cluster, 'self' | 'isAlive' | 'fence' | 'unlessAlive'>) {
    this.#store = store
    this.#cluster = cluster
  }

  /** Whether this daemon has it now. It keeps it until it ends. */
  async take(target: string): Promise<boolean> {
    const { self } = this.#cluster
    const owner = await this.#store.owner(target)
    if (owner === self) return true
    if (owner !== undefined && this.#cluster.isAlive(owner)) return false
    try {
      const conditions = [...this.#cluster.fence(), ...(owner === undefined ? [] : this.#cluster.unlessAlive(owner))]
      return await this.#store.take(target, self, owner, conditions)
    } catch (error) {
      // Its owner joined a moment ago, or this daemon was declared dead.
      if (error instanceof Refusal && isNotHeld(error.cause)) return false
      throw error
    }
  }
}
