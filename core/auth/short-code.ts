import { createHmac, randomBytes } from 'node:crypto'

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
 * The stored form of a code: 30 bits could be found from a plain hash in a second, so it needs a key that is stored
 * elsewhere.
 */
export function digestCode(code: string, key: string): string {
  return createHmac('sha256', Buffer.from(key, 'hex'))
    .update(code.toUpperCase().replaceAll(/[^0-9A-Z]/g, ''))
    .digest('hex')
}
