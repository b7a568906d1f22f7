import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readOwnJson } from 'svc/internal'

const IV = 12,
  TAG = 16

/**
 * Gives a browser something to keep for us that nobody can read or change: so a sign-in that was begun takes no memory
 * here, however many begin one and never come back. The key lasts as long as the process.
 */
export class Sealed {
  readonly #key = randomBytes(32)

  close(value: unknown): string {
    const iv = randomBytes(IV)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** `undefined` when it was not sealed here. */
  open(text: string): unknown {
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length < IV + TAG) return undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV), {
      authTagLength: TAG,
    }).setAuthTag(bytes.subarray(IV, IV + TAG))
    try {
      return readOwnJson(Buffer.concat([decipher.update(bytes.subarray(IV + TAG)), decipher.final()]).toString('utf8'))
    } catch {
      return undefined
    } // Sealed by another process, or forged: to the caller both are nothing.
  }
}
