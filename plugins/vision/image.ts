import { Refusal } from 'svc/sdk'

const kinds: readonly (readonly [mime: string, is: (bytes: Uint8Array) => boolean])[] = [
  ['image/png', (bytes) => starts(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
  ['image/jpeg', (bytes) => starts(bytes, [0xff, 0xd8, 0xff])],
  ['image/gif', (bytes) => text(bytes, 0, 6) === 'GIF87a' || text(bytes, 0, 6) === 'GIF89a'],
  ['image/webp', (bytes) => text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP'],
]
const starts = (bytes: Uint8Array, signature: readonly number[]): boolean =>
  signature.every((byte, index) => bytes[index] === byte)
const text = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to))

/** What kind of picture it is, by its bytes and not by its name. Throws `invalid_request` for anything else. */
export function mimeOf(name: string, bytes: Uint8Array): string {
  const found = kinds.find(([, is]) => is(bytes))
  if (!found) throw new Refusal('invalid_request', `"${name}" is no PNG, JPEG, GIF or WebP picture`)
  return found[0]
}
