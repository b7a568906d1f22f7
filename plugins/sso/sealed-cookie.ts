import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readOwnJson } from 'svc/internal'

const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts the state of a sign-in into a cookie that the browser can neither read nor change, so that abandoned
 * sign-ins take no memory here. Daemons with the same key open each other's.
 */
export class SealedCookie {
  readonly #key: Uint8Array
  /** `key`: 32 bytes; without it one that lasts as long as the process. */
  constructor(key: Uint8Array = randomBytes(32)) {
    this.#key = key
  }

  seal(value: unknown): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** `undefined` for text that was not sealed with this key. */
  open(text: string): unknown {
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length < IV_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    }).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    try {
      return readOwnJson(
        Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8'),
      )
    } catch {
      // Sealed with another key, or forged: the caller treats both alike.
      return undefined
    }
  }
}
