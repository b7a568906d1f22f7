import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto'
import type { JsonWebKey, KeyObject } from 'node:crypto'
import { LinkRefusal } from './mac.ts'

/** The raw public key of a key pair of curve 25519, as hexadecimal digits. */
export function rawPublicKey(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return Buffer.from(x ?? '', 'base64url').toString('hex')
}
/** The opposite. Throws for what is no key. */
export function readPublicKey(curve: 'X25519' | 'Ed25519', raw: string): KeyObject {
  const key: JsonWebKey = { kty: 'OKP', crv: curve, x: Buffer.from(raw, 'hex').toString('base64url') }
  return createPublicKey({ key, format: 'jwk' })
}

/** The half of a key exchange (X25519) that one side makes anew for each link. */
export class Ephemeral {
  readonly #private: KeyObject
  /** Hexadecimal digits. */
  readonly publicKey: string
  constructor(private_ = generateKeyPairSync('x25519').privateKey) {
    this.#private = private_
    this.publicKey = rawPublicKey(private_)
  }

  /** The secret that both sides compute. Throws when the other key leads to one that everybody knows. */
  agree(otherPublicKey: string): Buffer {
    try {
      return diffieHellman({ privateKey: this.#private, publicKey: readPublicKey('X25519', otherPublicKey) })
    } catch (error) {
      throw new LinkRefusal(403, 'The key of the peer for the encryption is none', { cause: error })
    }
  }
}

/** The private key as text, for the vault. */
export function exportPrivate(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}
export function importPrivate(pem: string): KeyObject {
  return createPrivateKey(pem)
}
