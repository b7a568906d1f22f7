import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Vault } from 'svc/sdk'

const NAME = 'checkpoint-key'

/** The signed text, with a different tag for each purpose. */
export interface Signed {
  readonly key_id: string
  readonly signature: string
}

/** Signs with an Ed25519 key that lies in the vault, made when it is first needed. */
export class Signer {
  readonly #vault: Pick<Vault, 'read' | 'write'>
  constructor(vault: Pick<Vault, 'read' | 'write'>) {
    this.#vault = vault
  }

  async sign(text: string): Promise<Signed> {
    const key = (await this.#find()) ?? (await this.#make())
    return { key_id: idOf(key), signature: sign(null, Buffer.from(text), key).toString('base64') }
  }

  /** Verifies signatures of this key; `undefined` when there is no key. */
  async verifier(): Promise<Verifier | undefined> {
    const key = await this.#find()
    return key && new Verifier(key)
  }

  async #find(): Promise<KeyObject | undefined> {
    const text = await this.#vault.read(NAME)
    return text === undefined
      ? undefined
      : createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' })
  }
  async #make(): Promise<KeyObject> {
    const { privateKey } = generateKeyPairSync('ed25519')
    await this.#vault.write(NAME, privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'))
    return privateKey
  }
}

export class Verifier {
  readonly #key: KeyObject
  /** The first 16 hex digits of the public key's SHA-256. */
  readonly id: string
  constructor(key: KeyObject) {
    this.#key = createPublicKey(key)
    this.id = idOf(key)
  }
  /** SPKI in PEM, for verification without this daemon. */
  get pem(): string {
    return this.#key.export({ format: 'pem', type: 'spki' }).toString()
  }
  holds(text: string, { signature }: Signed): boolean {
    return verify(null, Buffer.from(text), this.#key, Buffer.from(signature, 'base64'))
  }
}

function idOf(key: KeyObject): string {
  return hash('sha256', createPublicKey(key).export({ format: 'der', type: 'spki' }), 'hex').slice(0, 16)
}
