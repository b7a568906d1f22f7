import { createHmac, randomBytes } from 'node:crypto'

/** 32 characters that are not taken for each other: none of 0, 1, I and O. Six of them are 30 bits. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
const CHARACTERS = 6

/** Three plus three characters, such as `K7M-2QX`. */
export function makeCode(random: (bytes: number) => Uint8Array = randomBytes): string {
  // 256 is a multiple of 32: each character is as likely as any other.
  const text = Array.from(random(CHARACTERS), (byte) => ALPHABET[byte & 31]).join('')
  return `${text.slice(0, 3)}-${text.slice(3)}`
}

/**
 * What is stored of a code: 30 bits could be found from a plain hash in a second, so it takes a key that is not in the
 * same place.
 */
export function digestCode(code: string, key: string): string {
  return createHmac('sha256', Buffer.from(key, 'hex'))
    .update(code.toUpperCase().replaceAll(/[^0-9A-Z]/g, ''))
    .digest('hex')
}
