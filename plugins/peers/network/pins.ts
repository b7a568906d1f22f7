import { createLimiter, monotonicClock } from 'svc/internal'
import type { Limiter } from 'svc/internal'
import { commandLine, SerialQueue } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { ProvenPeer } from '../links/establish.ts'
import { fingerprintOf } from '../identity.ts'
import { LinkRefusal } from '../mac.ts'
import type { PinRow, PinStore } from '../store.ts'

const HOUR_MS = 3_600_000
/** More rows than any configuration allows. */
const MAX_LISTED = 200_000

export interface PinLimits {
  readonly max: number
  readonly newPerHour: number
}

/** The key that each node showed first, which is the only one it may have until an operator removes it. */
export class Pins {
  readonly #store: PinStore
  readonly #audit: Audit
  readonly #max: number
  readonly #newNodes: Limiter
  /** One new node after the other, so that no two of them get the last place. */
  readonly #pinning = new SerialQueue()
  constructor(store: PinStore, audit: Audit, { max, newPerHour }: PinLimits) {
    this.#store = store
    this.#audit = audit
    this.#max = max
    const now = monotonicClock.now
    this.#newNodes = createLimiter({ tokens: newPerHour, windowMs: HOUR_MS, maxKeys: 1, now })
  }

  /** Throws `LinkRefusal` for another key than before, and for one node too many unless the configuration names it. */
  async check({ nodeId, nodeName, publicKey }: ProvenPeer, address: string, isNamed: boolean): Promise<void> {
    const known =
      (await this.#store.find(nodeId)) ??
      (await this.#pinning.run(() => this.#pin({ nodeId, nodeName, publicKey, address }, isNamed)))
    if (known?.public_key === '' && publicKey !== '') await this.#learnKey(nodeId, publicKey)
    else if (publicKey === '' && known?.public_key !== '')
      throw new LinkRefusal(
        403,
        `Node ${nodeId} has a key, which this form of the handshake does not show. To do without, run: ` +
          commandLine(`peer unpin ${nodeId}`),
      )
    else if (known?.public_key !== publicKey)
      throw new LinkRefusal(
        403,
        `The key of node ${nodeId} is not the one it had (${fingerprintOf(known?.public_key ?? '')}). If it was set ` +
          `up anew, run on the node that refuses it: ${commandLine(`peer unpin ${nodeId}`)}`,
      )
    await this.#store.touch({ node_id: nodeId, node_name: nodeName, address, last_seen: Date.now() })
  }

  async list(): Promise<readonly PinRow[]> {
    return await this.#store.list(MAX_LISTED)
  }
  async find(nodeId: string): Promise<PinRow | undefined> {
    return await this.#store.find(nodeId)
  }
  async count(): Promise<number> {
    return await this.#store.count()
  }

  /** Whether there was one. */
  async remove(nodeId: string): Promise<boolean> {
    const known = await this.#store.find(nodeId)
    if (!known) return false
    const entry = this.#audit.entry({
      event: 'wire_connect',
      details: `forgot the key of node ${nodeId} (${fingerprintOf(known.public_key)}): its next key is accepted`,
    })
    await this.#store.commit([this.#store.remove(nodeId), entry])
    return true
  }

  async #pin(
    peer: Pick<ProvenPeer, 'nodeId' | 'nodeName' | 'publicKey'> & { readonly address: string },
    isNamed: boolean,
  ) {
    const { nodeId, nodeName, publicKey, address } = peer
    if (!isNamed) await this.#checkNew(nodeId)
    const now = Date.now()
    const row = { node_id: nodeId, public_key: publicKey, node_name: nodeName, address, pinned_at: now, last_seen: now }
    const details =
      publicKey === ''
        ? `node ${nodeId} at ${address} is new and shows no key: whoever knows the secret can come under its name`
        : `node ${nodeId} at ${address} is new; its key ${fingerprintOf(publicKey)} is the one it must have from now on`
    const entry = this.#audit.entry({ event: 'wire_connect', details })
    const room = isNamed ? [] : [this.#store.requireRoom(nodeId, this.#max)]
    try {
      await this.#store.commit([this.#store.insert(row), ...room, entry])
    } catch (error) {
      // Another daemon may have taken the last place.
      if (!isNamed) this.#checkRoom(await this.count())
      throw error
    }
    return await this.#store.find(nodeId)
  }

  /** It was linked without one before. */
  async #learnKey(nodeId: string, publicKey: string): Promise<void> {
    const details = `node ${nodeId} shows a key for the first time; ${fingerprintOf(publicKey)} is the one it must have from now on`
    await this.#store.commit([
      this.#store.setKey(nodeId, publicKey),
      this.#audit.entry({ event: 'wire_connect', details }),
    ])
  }

  #checkRoom(known: number): void {
    if (known < this.#max) return
    throw new LinkRefusal(
      429,
      `${this.#max} nodes are known, which is all that network.max_known_peers allows; ` +
        `remove some with ${commandLine('peer unpin <peer>')}`,
    )
  }
  async #checkNew(nodeId: string): Promise<void> {
    const known = await this.list()
    const alike = known.find((row) => row.node_id.toLowerCase() === nodeId.toLowerCase())
    if (alike)
      throw new LinkRefusal(
        403,
        `The id "${nodeId}" looks like that of the known node "${alike.node_id}": choose another`,
      )
    this.#checkRoom(known.length)
    if (!this.#newNodes.take('', 1))
      throw new LinkRefusal(429, 'Too many nodes are new in this hour (network.new_peers_per_hour)')
  }
}
