import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Keeps what daemons say to each other to those that have the key of the vault: every role that may connect to a
 * database can listen on it and notify, without a right on any table.
 */
export class BroadcastCipher {
  readonly #key: Uint8Array
  /** `key`: 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** `place`, such as the channel, is needed to open it. Base64, a third longer than the text and 28 bytes. */
  seal(place: string, text: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(place))
    const sealed = cipher.update(text, 'utf8')
    return Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  /** `undefined` for what nobody with the key has sealed for this place. */
  open(place: string, payload: string): string | undefined {
    const bytes = Buffer.from(payload, 'base64')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
    } catch {
      return undefined
    }
  }
}
