import { createHash } from 'node:crypto'

/** Sorts as the numbers do. */
const ALPHABET = '234567abcdefghijklmnopqrstuvwxyz'
const LENGTH = 13

/**
 * The key of the record of a message: the same each time, so that it is posted once. It has the form of a timestamp, as
 * the keys of posts must; its time means nothing. Source: https://atproto.com/specs/tid
 */
export function recordKey(messageId: string): string {
  // The first bit of 64 is 0; 13 characters of 5 bits begin with another one.
  let rest = createHash('sha256').update(messageId).digest().readBigUInt64BE() >> 1n
  let key = ''
  for (let at = 0; at < LENGTH; at++) {
    key = ALPHABET.charAt(Number(rest & 31n)) + key
    rest >>= 5n
  }
  return key
}
