import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Vault } from 'svc/sdk'
import type { Writers } from '../writers/writers.ts'

const NAME = 'checkpoint-key'

/** The signed text, with a different tag for each purpose. */
export interface Signed {
  readonly key_id: string
  readonly signature: string
}

/** Signs with an Ed25519 key that lies in the vault, made when it is first needed. */
export class Signer {
  readonly #vault: Pick<Vault, 'read' | 'write'>
  readonly #writers: Pick<Writers, 'makeKey'> | undefined
  /** `writers`: the other daemons on the database, which have the same key. */
  constructor(vault: Pick<Vault, 'read' | 'write'>, writers?: Pick<Writers, 'makeKey'>) {
    this.#vault = vault
    this.#writers = writers
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
    return text === undefined ? undefined : parseKey(text)
  }
  async #make(): Promise<KeyObject> {
    const { privateKey } = generateKeyPairSync('ed25519')
    const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
    if (this.#writers) return parseKey(await this.#writers.makeKey(this.#vault, NAME, text))
    await this.#vault.write(NAME, text)
    return privateKey
  }
}

const parseKey = (text: string): KeyObject =>
  createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' })

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
