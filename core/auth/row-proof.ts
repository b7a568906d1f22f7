import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { Vault } from '../storage/vault.ts'

export interface RowProofsDeps {
  /** A key of the vault's key, for these rows only; `undefined` while there is none (`DatabaseSnapshots.deriveKey`). */
  readonly derive: () => Promise<Uint8Array | undefined>
  readonly vault: Pick<Vault, 'write'>
}

/**
 * Codes of rows that let somebody in: only daemons with the key of the vault can make one, so who can write to the
 * database only cannot add such a row or change it.
 */
export class RowProofs {
  readonly #deps: RowProofsDeps
  #key: Uint8Array | undefined
  constructor(deps: RowProofsDeps) {
    this.#deps = deps
  }

  /** Makes the key of the vault if there is none. */
  async of(fields: readonly unknown[]): Promise<string> {
    if (!(await this.#findKey())) await this.#deps.vault.write('proofs', randomUUID())
    const key = await this.#findKey()
    if (!key) throw new Error('the vault has no key')
    return codeOf(key, fields).toString('base64url')
  }
  async holds(fields: readonly unknown[], proof: string | null): Promise<boolean> {
    const key = await this.#findKey()
    if (!key || proof === null) return false
    const given = Buffer.from(proof, 'base64url')
    const own = codeOf(key, fields)
    return given.length === own.length && timingSafeEqual(given, own)
  }

  async #findKey(): Promise<Uint8Array | undefined> {
    this.#key ??= await this.#deps.derive()
    return this.#key
  }
}

const codeOf = (key: Uint8Array, fields: readonly unknown[]): Buffer =>
  createHmac('sha256', key).update(JSON.stringify(fields)).digest()
