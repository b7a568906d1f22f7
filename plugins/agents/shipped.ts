import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import * as v from 'valibot'
import { readOwnJson } from 'svc/internal'
import type { DatabaseSnapshots } from 'svc/internal'
import type { Vault } from 'svc/sdk'

const Envelope = v.object({ shipped: v.string(), proof: v.string() })

export interface ShippedProofsDeps {
  readonly snapshots: Pick<DatabaseSnapshots, 'deriveKey'>
  readonly vault: Pick<Vault, 'write'>
}

/**
 * Envelopes of manifests that a plugin made of what came with svc. Only daemons with the key of the vault can make one,
 * so who can write to the database only cannot add such an agent.
 */
export class ShippedProofs {
  readonly #deps: ShippedProofsDeps
  #key: Uint8Array | undefined
  constructor(deps: ShippedProofsDeps) {
    this.#deps = deps
  }

  /** Reads the key, before `read`. Makes the key of the vault if there is none. */
  async open(): Promise<Uint8Array> {
    const derive = () => this.#deps.snapshots.deriveKey('agents-shipped')
    this.#key ??= await derive()
    if (!this.#key) await this.#deps.vault.write('shipped', randomUUID())
    this.#key ??= await derive()
    if (!this.#key) throw new Error('the vault has no key')
    return this.#key
  }
  async seal(manifestToml: string): Promise<string> {
    const proof = codeOf(await this.open(), manifestToml).toString('base64url')
    return JSON.stringify({ shipped: manifestToml, proof })
  }
  /** The manifest in it; `undefined` when no daemon with the key has made it. */
  read(envelope: string): string | undefined {
    const found = v.safeParse(Envelope, readOwnJson(envelope))
    if (!found.success || !this.#key) return undefined
    const { proof, shipped } = found.output
    const [given, own] = [Buffer.from(proof, 'base64url'), codeOf(this.#key, shipped)]
    return given.length === own.length && timingSafeEqual(given, own) ? shipped : undefined
  }
}

const codeOf = (key: Uint8Array, manifestToml: string): Buffer =>
  createHmac('sha256', key).update(manifestToml).digest()
