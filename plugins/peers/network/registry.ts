import { HANDSHAKE_MS } from '../handshake.ts'
import { LinkRefusal } from '../mac.ts'
import type { PeerLink } from '../links/link.ts'

export interface LinkRegistryOptions {
  /** This node. */
  readonly self: string
  readonly max: number
  /** How many of the places are for nodes that the configuration names. */
  readonly reserved: number
  readonly isNamed: (nodeId: string) => boolean
  /** Further links of a node that has one, where it may have several. */
  readonly maxExtra: number
}
/** A place of a node whose link is not open yet. */
export interface Place {
  /** Throws `LinkRefusal` when there is no room. */
  take(nodeId: string): void
  leave(): void
}

/** The open links, one for each node. */
export class LinkRegistry {
  readonly #options: LinkRegistryOptions
  readonly #links = new Map<string, PeerLink>()
  readonly #extra = new Map<string, number>()
  readonly #taken = new Map<symbol, string>()
  readonly #arrivals = new Map<string, Set<() => void>>()
  constructor(options: LinkRegistryOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#links.size
  }
  list(): readonly PeerLink[] {
    return [...this.#links.values()]
  }
  find(nodeId: string): PeerLink | undefined {
    return this.#links.get(nodeId)
  }

  /** For a link that is being checked: nothing of a node is stored for which there is no room. */
  place(): Place {
    const key = Symbol('place')
    return {
      take: (nodeId) => {
        this.#checkRoom(nodeId)
        this.#taken.set(key, nodeId)
      },
      leave: () => void this.#taken.delete(key),
    }
  }

  /** Keeps the link, or ends it with the reason and throws that. */
  add(link: PeerLink): void {
    const existing = this.#links.get(link.nodeId)
    if (existing?.isCompatible && link.isCompatible && !link.isInitiator) return this.#addExtra(link)
    if (existing && !this.#replaces(link, existing)) {
      const problem = new LinkRefusal(409, 'This node is linked already')
      link.refuse(problem)
      throw problem
    }
    this.#links.set(link.nodeId, link)
    // At once: who asks again after a lost link must not find it once more.
    void link.ended.then(() => this.#remove(link))
    existing?.refuse(new LinkRefusal(409, 'A newer link to this node is open'))
    for (const arrived of this.#arrivals.get(link.nodeId) ?? []) arrived()
    this.#arrivals.delete(link.nodeId)
  }
  isMain(link: PeerLink): boolean {
    return this.#links.get(link.nodeId) === link
  }
  /** A node of the first form of OFP makes a link of its own for every message. */
  #addExtra(link: PeerLink): void {
    const extra = this.#extra.get(link.nodeId) ?? 0
    if (extra >= this.#options.maxExtra) {
      const problem = new LinkRefusal(429, `This node has ${extra} more links already`)
      link.refuse(problem)
      throw problem
    }
    this.#extra.set(link.nodeId, extra + 1)
    void link.ended.then(() => {
      const left = (this.#extra.get(link.nodeId) ?? 1) - 1
      if (left > 0) this.#extra.set(link.nodeId, left)
      else this.#extra.delete(link.nodeId)
    })
  }
  #remove(link: PeerLink): void {
    if (this.#links.get(link.nodeId) === link) this.#links.delete(link.nodeId)
  }

  /** Waits until the node is linked. Rejects with the reason of the signal. */
  async arrival(nodeId: string, signal: AbortSignal): Promise<PeerLink> {
    for (;;) {
      signal.throwIfAborted()
      const link = this.#links.get(nodeId)
      if (link) return link
      const waiting = this.#arrivals.get(nodeId) ?? new Set()
      this.#arrivals.set(nodeId, waiting)
      const { promise, resolve } = Promise.withResolvers<void>()
      const wake = (): void => resolve()
      waiting.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      await promise
      signal.removeEventListener('abort', wake)
      waiting.delete(wake)
      if (waiting.size === 0 && this.#arrivals.get(nodeId) === waiting) this.#arrivals.delete(nodeId)
    }
  }

  /** Who knows the secret can come under many names, and must not keep out those of the configuration. */
  #checkRoom(nodeId: string): void {
    const { max, reserved, isNamed } = this.#options
    const others = new Set([...this.#links.keys(), ...this.#taken.values()])
    if (others.has(nodeId)) return
    const named = isNamed(nodeId)
    const room = named ? max : max - reserved
    const used = named ? others.size : [...others].filter((other) => !isNamed(other)).length
    if (used < room) return
    const kept = reserved === 0 || named ? '' : `, ${reserved} of them for nodes of network.peers`
    throw new LinkRefusal(429, `All places are taken: network.max_peers allows ${max}${kept}`)
  }

  /**
   * Who begins a link has none: the one that is open is dead, unless both began at the same time. Then both sides keep
   * the link of the same one of them.
   */
  #replaces(link: PeerLink, existing: PeerLink): boolean {
    if (link.isInitiator === existing.isInitiator) return true
    if (existing.ageMs > HANDSHAKE_MS) return true
    const { self } = this.#options
    const [initiator, other] = link.isInitiator ? [self, link.nodeId] : [link.nodeId, self]
    return initiator < other
  }
}
