import { hsalsa, xsalsa20poly1305 } from '@noble/ciphers/salsa.js'
import { x25519 } from '@noble/curves/ed25519.js'

/** `crypto_box` of NaCl from the parts of @noble: another implementation than that of the adapter. */
export interface BoxPair {
  readonly secret: Uint8Array
  readonly public: Uint8Array
}
export function newBoxPair(secret: Uint8Array = x25519.utils.randomSecretKey()): BoxPair {
  return { secret, public: x25519.getPublicKey(secret) }
}

export function sealBox(plain: Uint8Array, nonce: Uint8Array, reader: Uint8Array, writer: Uint8Array): Uint8Array {
  return xsalsa20poly1305(keyOf(writer, reader), nonce).encrypt(plain)
}
/** Throws when the box was altered, or is for somebody else. */
export function openBox(box: Uint8Array, nonce: Uint8Array, writer: Uint8Array, reader: Uint8Array): Uint8Array {
  return xsalsa20poly1305(keyOf(reader, writer), nonce).decrypt(box)
}

/** `crypto_secretbox` of NaCl. */
export const secretBox = (key: Uint8Array, nonce: Uint8Array) => xsalsa20poly1305(key, nonce)

/** The constant of Salsa20: "expand 32-byte k". */
const SIGMA = wordsOf(Buffer.from('expand 32-byte k'))

function keyOf(secret: Uint8Array, other: Uint8Array): Uint8Array {
  const key = new Uint32Array(8)
  hsalsa(SIGMA, wordsOf(x25519.getSharedSecret(secret, other)), new Uint32Array(4), key)
  return new Uint8Array(key.buffer)
}
function wordsOf(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Uint32Array.from({ length: bytes.length / 4 }, (_, index) => view.getUint32(index * 4, true))
}
