import { hash, randomBytes, randomInt } from 'node:crypto'
import type { Vault } from '../storage/vault.ts'
import { readJson } from '../schema/nesting.ts'

const WINDOW_CHARS = 16
/** Shorter values occur in ordinary words. */
const MIN_SECRET_CHARS = 8
const MAX_TEXT_CHARS = 2_097_152

/** Characters of secrets that were replaced or removed, and are still searched for; the latest one is in any case. */
const MAX_FORMER_CHARS = 4_096

/** Of one length: rolling hashes that select candidates, and the keyed hashes that decide. */
interface Windows {
  readonly rolling: Set<number>
  readonly keyed: Set<string>
}
interface Known {
  readonly chars: number
  /** Until the first scan hashes them, to keep the start fast. */
  values: readonly string[]
  readonly hashes: { readonly size: number; readonly rolling: number; readonly keyed: string }[]
}

/**
 * Recognises secrets without storing them: it keeps keyed hashes of every window of 16 characters, in the encodings
 * that commonly hide a secret (security facts 1.2). A rolling hash makes a scan linear in the length of the text.
 */
export class SecretScanner {
  /** The key has a fixed length, so that key and text are unambiguous. */
  readonly #key = randomBytes(32).toString('base64')
  readonly #base = randomInt(1 << 16, 2 ** 31 - 1) | 1
  /** By a digest of name and values. */
  readonly #known = new Map<string, Known>()
  /** The digest of what is stored under a name. */
  readonly #stored = new Map<string, string>()
  /** Of what was stored, the oldest first. */
  readonly #former = new Set<string>()
  /** By window length, of all that is known; the next scan makes it again after a change. */
  #windows: Map<number, Windows> | undefined

  /** Later scans find texts that contain the value or a part of it. Ignores values under eight characters. */
  add(value: string): void {
    this.#learn(this.#keyed(value), [value])
  }
  /** The same of what a name stands for from now on. Tokens change every hour: of former values the latest are kept. */
  store(name: string, values: readonly string[]): void {
    const digest = values.length === 0 ? undefined : this.#keyed(JSON.stringify([name, values]))
    const before = this.#stored.get(name)
    if (before === digest) return
    if (before !== undefined) this.#former.add(before)
    this.#stored.delete(name)
    if (digest !== undefined) {
      this.#former.delete(digest)
      this.#stored.set(name, digest)
      this.#learn(digest, values)
    }
    let chars = this.#former.values().reduce((sum, each) => sum + (this.#known.get(each)?.chars ?? 0), 0)
    for (const oldest of this.#former) {
      if (chars <= MAX_FORMER_CHARS || this.#former.size === 1) return
      chars -= this.#known.get(oldest)?.chars ?? 0
      this.#former.delete(oldest)
      this.#known.delete(oldest)
      this.#windows = undefined
    }
  }

  #learn(digest: string, values: readonly string[]): void {
    if (this.#known.has(digest)) return
    this.#known.set(digest, { values, chars: values.join('').length, hashes: [] })
    this.#windows = undefined
  }
  #index(): Map<number, Windows> {
    const index = new Map<number, Windows>()
    for (const known of this.#known.values()) {
      for (const value of known.values) this.#hash(value, known)
      known.values = []
      for (const { size, rolling, keyed } of known.hashes) {
        const windows = index.get(size) ?? { rolling: new Set(), keyed: new Set() }
        index.set(size, windows)
        windows.rolling.add(rolling)
        windows.keyed.add(keyed)
      }
    }
    return index
  }
  #hash(value: string, { hashes }: Known): void {
    const secret = secretPart(value.trim())
    if (secret.length < MIN_SECRET_CHARS) return
    for (const form of formsOf(secret)) {
      const size = Math.min(WINDOW_CHARS, form.length)
      this.#someWindow(form, size, (rolling, at) => {
        hashes.push({ size, rolling, keyed: this.#keyed(form.slice(at, at + size)) })
        return false
      })
    }
  }

  /** Whether any text in the value contains a part of a secret. */
  containsSecret(value: unknown): boolean {
    const index = (this.#windows ??= this.#index())
    if (index.size === 0) return false
    const text = textsIn(value, { keys: true }).join('\n').slice(0, MAX_TEXT_CHARS)
    const forms = new Set([text, text.toLowerCase(), text.replaceAll(/\s+/g, '')])
    for (const form of forms) {
      for (const [size, { rolling, keyed }] of index) {
        const isKnown = (hashed: number, at: number): boolean =>
          rolling.has(hashed) && keyed.has(this.#keyed(form.slice(at, at + size)))
        if (this.#someWindow(form, size, isKnown)) return true
      }
    }
    return false
  }

  /** Calls `visit` with the rolling hash of each window until it returns true. Returns whether it did. */
  #someWindow(text: string, size: number, visit: (rolling: number, at: number) => boolean): boolean {
    if (text.length < size) return false
    let highest = 1
    for (let n = 1; n < size; n++) highest = Math.imul(highest, this.#base)
    let rolling = 0
    for (let at = 0; at < text.length; at++) {
      if (at >= size) rolling = (rolling - Math.imul(text.charCodeAt(at - size), highest)) | 0
      rolling = (Math.imul(rolling, this.#base) + text.charCodeAt(at)) | 0
      if (at >= size - 1 && visit(rolling, at - size + 1)) return true
    }
    return false
  }
  #keyed(text: string): string {
    return hash('sha256', this.#key + text, 'base64')
  }
}

/** Tells the scanner of every secret that a plugin writes to the vault, reads from it or removes. */
export function scannedVault(scanner: Pick<SecretScanner, 'store'>, vault: Vault, plugin: string): Vault {
  const store = (name: string, secret: string | undefined): void =>
    scanner.store(`${plugin} ${name}`, secret === undefined ? [] : secretsIn(secret))
  return {
    ...vault,
    async read(name) {
      const secret = await vault.read(name)
      store(name, secret)
      return secret
    },
    async write(name, secret, entries) {
      await vault.write(name, secret, entries)
      store(name, secret)
    },
    async remove(name, entries) {
      const removed = await vault.remove(name, entries)
      store(name, undefined)
      return removed
    },
  }
}

/** A JSON record may contain other data, such as an address, so its texts are added one by one. */
function secretsIn(secret: string): readonly string[] {
  if (!secret.startsWith('{') && !secret.startsWith('[')) return [secret]
  try {
    return textsIn(readJson(secret), { keys: false })
  } catch {
    return [secret]
  }
}

/** Only the password of a URL is a secret: the rest also occurs in ordinary texts. */
function secretPart(value: string): string {
  const match = /^[a-z][a-z\d+.-]{0,20}:\/\/[^/?#@]{0,200}?:([^/?#@]{1,500})@/i.exec(value)
  if (match) return match[1] ?? ''
  return /^[a-z][a-z\d+.-]{0,20}:\/\//i.test(value) ? '' : value
}

function formsOf(secret: string): ReadonlySet<string> {
  const bytes = Buffer.from(secret)
  // Base64 of a longer text may shift the secret by up to two bytes; its first and last characters depend on the
  // neighbours.
  const shifted = [0, 1, 2].flatMap((shift) =>
    ['base64', 'base64url'].map((encoding) =>
      Buffer.concat([Buffer.alloc(shift), bytes])
        .toString(encoding as BufferEncoding)
        .replaceAll('=', '')
        .slice(shift === 0 ? 0 : shift + 1, -1),
    ),
  )
  const percent = encodeURIComponent(secret)
  return new Set(
    [
      secret,
      ...shifted,
      bytes.toString('hex'),
      percent,
      percent.toLowerCase(),
      [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
      [...secret].toReversed().join(''),
    ].filter((form) => form.length >= MIN_SECRET_CHARS),
  )
}

/** Every text in the value down to 20 levels; `keys`: names of fields too. */
function textsIn(value: unknown, { keys }: { readonly keys: boolean }, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth > 20) return []
  if (Array.isArray(value)) return value.flatMap((each) => textsIn(each, { keys }, depth + 1))
  return Object.entries(value).flatMap(([key, each]) => {
    const inner = textsIn(each, { keys }, depth + 1)
    return keys ? [key, ...inner] : inner
  })
}
