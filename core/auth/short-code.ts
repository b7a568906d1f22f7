import { createHmac, randomBytes } from 'node:crypto'
import type { Vault } from '../storage/vault.ts'

/** 32 characters that are not confused with each other: without 0, 1, I and O. Six of them are 30 bits. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
const CHARACTERS = 6

/** Three plus three characters, such as `K7M-2QX`. */
export function makeCode(random: (bytes: number) => Uint8Array = randomBytes): string {
  // 256 is a multiple of 32: each character is as likely as any other.
  const text = Array.from(random(CHARACTERS), (byte) => ALPHABET[byte & 31]).join('')
  return `${text.slice(0, 3)}-${text.slice(3)}`
}

/**
 * Makes the stored form of codes: 30 bits could be found from a plain hash in a second, so it needs a key that is stored
 * elsewhere. The key is made when it is first needed and kept in the vault.
 */
export class CodeHasher {
  readonly #vault: Pick<Vault, 'read' | 'write'>
  readonly #name: string
  #key: Promise<string> | undefined
  constructor(vault: Pick<Vault, 'read' | 'write'>, name: string) {
    this.#vault = vault
    this.#name = name
  }

  async digest(code: string): Promise<string> {
    return createHmac('sha256', Buffer.from(await this.#readKey(), 'hex'))
      .update(code.toUpperCase().replaceAll(/[^0-9A-Z]/g, ''))
      .digest('hex')
  }

  #readKey(): Promise<string> {
    this.#key ??= this.#findKey()
    // A vault that failed once is asked again.
    this.#key.catch(() => {
      this.#key = undefined
    })
    return this.#key
  }
  async #findKey(): Promise<string> {
    const stored = await this.#vault.read(this.#name)
    if (stored !== undefined) return stored
    const key = randomBytes(32).toString('hex')
    await this.#vault.write(this.#name, key)
    return key
  }
}
