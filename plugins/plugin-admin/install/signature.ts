import { createPublicKey, verify } from 'node:crypto'
import { Refusal } from 'svc/sdk'

/** Of an Ed25519 public key in DER (RFC 8410). */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

/** The trusted key that signed these bytes. Throws `forbidden` when none did. */
export function verifySignature(bytes: Uint8Array, signature: string, trustedKeys: readonly string[]): string {
  const given = Buffer.from(signature.trim(), /^[0-9a-f]{128}$/i.test(signature.trim()) ? 'hex' : 'base64')
  if (given.length !== 64)
    throw new Refusal('invalid_request', 'signature: must be 64 bytes (Ed25519) in base64 or hexadecimal digits')
  const signer = trustedKeys.find((key) => {
    const der = Buffer.concat([SPKI_HEAD, Buffer.from(key, 'hex')])
    return verify(null, bytes, createPublicKey({ key: der, format: 'der', type: 'spki' }), given)
  })
  if (signer !== undefined) return signer.toLowerCase()
  throw new Refusal(
    'forbidden',
    'The signature is by none of plugins.plugin-admin.trusted_keys, or the archive was changed after it was signed',
  )
}
