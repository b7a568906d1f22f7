import { commandLine } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { ProvenPeer } from '../links/establish.ts'
import { fingerprintOf } from '../identity.ts'
import { LinkRefusal } from '../mac.ts'
import type { PinRow, PinStore } from '../store.ts'

const MAX_PINS = 100_000

/** The key that each node showed first, which is the only one it may have until an operator removes it. */
export class Pins {
  readonly #store: PinStore
  readonly #audit: Audit
  constructor(store: PinStore, audit: Audit) {
    this.#store = store
    this.#audit = audit
  }

  /** Throws `LinkRefusal` for another key than before. */
  async check({ nodeId, nodeName, publicKey }: ProvenPeer, address: string): Promise<void> {
    const known = (await this.#store.find(nodeId)) ?? (await this.#pin({ nodeId, nodeName, publicKey, address }))
    if (known?.public_key !== publicKey)
      throw new LinkRefusal(
        403,
        `The key of node ${nodeId} is not the one it had (${fingerprintOf(known?.public_key ?? '')}). If it was set ` +
          `up anew, run: ${commandLine(`peer unpin ${nodeId}`)}`,
      )
    await this.#store.touch({ node_id: nodeId, node_name: nodeName, address, last_seen: Date.now() })
  }

  async list(): Promise<readonly PinRow[]> {
    return await this.#store.list(MAX_PINS)
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

  async #pin(peer: Pick<ProvenPeer, 'nodeId' | 'nodeName' | 'publicKey'> & { readonly address: string }) {
    const { nodeId, nodeName, publicKey, address } = peer
    if ((await this.#store.count()) >= MAX_PINS)
      throw new LinkRefusal(429, `${MAX_PINS} nodes are known; remove some with ${commandLine('peer unpin')}`)
    const now = Date.now()
    const row = { node_id: nodeId, public_key: publicKey, node_name: nodeName, address, pinned_at: now, last_seen: now }
    const details = `node ${nodeId} at ${address} is new; its key ${fingerprintOf(publicKey)} is the one it must have from now on`
    await this.#store.commit([this.#store.insert(row), this.#audit.entry({ event: 'wire_connect', details })])
    return await this.#store.find(nodeId)
  }
}
