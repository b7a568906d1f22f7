import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

const SECRET_BYTES = 32
const MAC_BYTES = 32

/**
 * Why a link is refused, with the numbers of the protocol (API facts, appendix C): 1 version, 400 out of order,
 * 401 before the handshake, 403 not proven, 408 too late, 409 a link that is there already, 429 too much.
 */
export class LinkRefusal extends Error {
  override readonly name = 'LinkRefusal'
  readonly code: 1 | 400 | 401 | 403 | 408 | 409 | 429
  constructor(code: LinkRefusal['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** The shared secret as bytes. Throws when it is short enough to be guessed. */
export function secretOf(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.byteLength < SECRET_BYTES)
    throw new LinkRefusal(403, `The shared secret has ${bytes.byteLength} bytes; at least ${SECRET_BYTES} are needed`)
  return bytes
}

/** HMAC-SHA256 over parts, each with its length before it: no byte can move from one part into the next. */
export function mac(key: Buffer, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac('sha256', key)
  const length = Buffer.allocUnsafe(4)
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part
    length.writeUInt32BE(bytes.byteLength)
    hmac.update(length).update(bytes)
  }
  return hmac.digest()
}

/** Takes the same time whether and wherever two codes differ. */
export function isSame(expected: Buffer, given: Uint8Array): boolean {
  return given.byteLength === MAC_BYTES && timingSafeEqual(expected, given)
}

/** HKDF-SHA256: a separate key for each session and direction. */
export function derive(secret: Buffer, salt: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, MAC_BYTES))
}
