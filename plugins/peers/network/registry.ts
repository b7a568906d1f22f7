import { HANDSHAKE_MS } from '../handshake.ts'
import { LinkRefusal } from '../mac.ts'
import type { PeerLink } from '../links/link.ts'

/** The open links, one for each node. */
export class LinkRegistry {
  readonly #self: string
  readonly #max: number
  readonly #links = new Map<string, PeerLink>()
  readonly #arrivals = new Map<string, Set<() => void>>()
  constructor(self: string, max: number) {
    this.#self = self
    this.#max = max
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

  /** Keeps the link, or ends it with the reason and throws that. */
  add(link: PeerLink): void {
    const existing = this.#links.get(link.nodeId)
    const problem = this.#problemWith(link, existing)
    if (problem) {
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

  #problemWith(link: PeerLink, existing: PeerLink | undefined): LinkRefusal | undefined {
    if (existing)
      return this.#replaces(link, existing) ? undefined : new LinkRefusal(409, 'This node is linked already')
    if (this.#links.size < this.#max) return undefined
    return new LinkRefusal(429, `${this.#max} nodes are linked, which is all that network.max_peers allows`)
  }

  /**
   * Who begins a link has none: the one that is open is dead, unless both began at the same time. Then both sides keep
   * the link of the same one of them.
   */
  #replaces(link: PeerLink, existing: PeerLink): boolean {
    if (link.isInitiator === existing.isInitiator) return true
    if (Date.now() - existing.openedAt > HANDSHAKE_MS) return true
    const [initiator, other] = link.isInitiator ? [this.#self, link.nodeId] : [link.nodeId, this.#self]
    return initiator < other
  }
}
