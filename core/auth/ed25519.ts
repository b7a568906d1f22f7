import { createPublicKey, verify } from 'node:crypto'
import { Refusal } from '../errors/error.ts'

/** Of an Ed25519 public key in DER (RFC 8410). */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * The key, of 64 hexadecimal digits, that signed these bytes; `undefined` when none of them did. Throws
 * `invalid_request` for what is no signature: 64 bytes in base64 or hexadecimal digits.
 */
export function verifyEd25519(
  bytes: Uint8Array,
  signature: string,
  trustedKeys: readonly string[],
): string | undefined {
  const given = Buffer.from(signature.trim(), /^[0-9a-f]{128}$/i.test(signature.trim()) ? 'hex' : 'base64')
  if (given.length !== 64)
    throw new Refusal('invalid_request', 'signature: must be 64 bytes (Ed25519) in base64 or hexadecimal digits')
  const signer = trustedKeys.find((key) => {
    const der = Buffer.concat([SPKI_HEAD, Buffer.from(key, 'hex')])
    return verify(null, bytes, createPublicKey({ key: der, format: 'der', type: 'spki' }), given)
  })
  return signer?.toLowerCase()
}
