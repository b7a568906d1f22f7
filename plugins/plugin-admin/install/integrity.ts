import { createHash, hash, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Refusal } from 'svc/sdk'

type Algorithm = 'sha512' | 'sha256'
interface Digest {
  readonly algorithm: Algorithm
  readonly bytes: Buffer
}
const LENGTHS: Readonly<Record<Algorithm, number>> = { sha512: 64, sha256: 32 }

/** The hash that records and lists show, in the form of npm: `sha512-` and base64. */
export function integrityOf(bytes: Uint8Array): string {
  return `sha512-${hash('sha512', bytes, 'base64')}`
}

/**
 * Throws `invalid_request` if the bytes do not have this hash: `sha512-<base64>` as npm writes it, `sha256-<base64>`,
 * or hexadecimal digits, alone or after `sha256:`. Of several, each separated by a space, one must match.
 */
export function verifyIntegrity(bytes: Uint8Array, expected: string, what: string): void {
  const digests = expected.trim().split(/\s+/).map(parseDigest)
  const isSame = digests.some((digest) =>
    timingSafeEqual(digest.bytes, createHash(digest.algorithm).update(bytes).digest()),
  )
  if (isSame) return
  throw new Refusal('invalid_request', `${what} does not have the hash ${expected}: it has ${integrityOf(bytes)}`, {
    details: { expected, actual: integrityOf(bytes) },
  })
}

/** Throws `invalid_request` for a hash that cannot be checked. */
export function parseDigest(text: string): Digest {
  const digest = readDigest(text)
  if (digest && digest.bytes.length === LENGTHS[digest.algorithm]) return digest
  throw new Refusal(
    'invalid_request',
    `"${text}" is no hash: write sha512-<base64> as in npm, sha256-<base64>, or the digits that sha256sum prints`,
  )
}
function readDigest(text: string): Digest | undefined {
  const base64 = /^(sha512|sha256)-([A-Za-z0-9+/]+={0,2})$/.exec(text)
  if (base64) return { algorithm: base64[1] as Algorithm, bytes: Buffer.from(base64[2] ?? '', 'base64') }
  const digits = /^(?:(?:sha512|sha256):)?([0-9a-f]{64}|[0-9a-f]{128})$/i.exec(text)?.[1]
  if (digits === undefined) return undefined
  return { algorithm: digits.length === 64 ? 'sha256' : 'sha512', bytes: Buffer.from(digits, 'hex') }
}

/** The hash of a folder: over the names and hashes of its files in order. */
export async function integrityOfFolder(folder: string): Promise<string> {
  const total = createHash('sha512')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files.toSorted()) {
    const digest = createHash('sha512')
    await pipeline(createReadStream(file), digest)
    total.update(`${file.slice(folder.length + 1)}\0${digest.digest('hex')}\n`)
  }
  return `sha512-${total.digest('base64')}`
}
