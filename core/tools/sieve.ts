import { hash, randomBytes, randomInt } from 'node:crypto'
import type { Vault } from '../storage/vault.ts'
import { readJson } from '../schema/nesting.ts'

const WINDOW = 16
/** Shorter values would be found in ordinary words. */
const LEAST = 8
const MOST_TEXT = 2_097_152

/**
 * Knows secrets again without keeping them: keyed hashes of every stretch of 16 characters of each, in the forms in which they are
 * usually hidden (security facts 1.2). Looking through a text costs no more than its length.
 */
export class SecretSieve {
  /** Always of the same length, so that it cannot run into the text behind it. */
  readonly #key = randomBytes(32).toString('base64')
  readonly #base = randomInt(1 << 16, 2 ** 31 - 1) | 1
  /** Told and not looked for yet: a start must not wait for hashes that nobody needs. */
  readonly #told = new Set<string>()
  /** By the length of the stretches: the quick hashes, and those that decide. */
  readonly #known = new Map<number, { readonly quick: Set<number>; readonly sure: Set<string> }>()

  /** From now on texts that hold the value, or a part of it, are known. Values under eight characters are not. */
  learn(value: string): void {
    this.#told.add(value)
  }

  #take(value: string): void {
    const secret = secretPart(value.trim())
    if (secret.length < LEAST) return
    for (const form of formsOf(secret)) {
      const size = Math.min(WINDOW, form.length)
      const known = this.#known.get(size) ?? { quick: new Set<number>(), sure: new Set<string>() }
      this.#known.set(size, known)
      this.#each(form, size, (quick, at) => {
        known.quick.add(quick)
        known.sure.add(this.#sure(form.slice(at, at + size)))
        return false
      })
    }
  }

  /** Whether any text in the value holds a part of a secret. */
  holds(value: unknown): boolean {
    for (const each of this.#told) this.#take(each)
    this.#told.clear()
    if (this.#known.size === 0) return false
    const text = textsIn(value).join('\n').slice(0, MOST_TEXT)
    const forms = new Set([text, text.toLowerCase(), text.replaceAll(/\s+/g, '')])
    for (const form of forms) {
      for (const [size, known] of this.#known) {
        if (
          this.#each(
            form,
            size,
            (quick, at) => known.quick.has(quick) && known.sure.has(this.#sure(form.slice(at, at + size))),
          )
        )
          return true
      }
    }
    return false
  }

  /** Calls with the quick hash of each stretch until it answers true; whether it did. */
  #each(text: string, size: number, visit: (quick: number, at: number) => boolean): boolean {
    if (text.length < size) return false
    let highest = 1
    for (let n = 1; n < size; n++) highest = Math.imul(highest, this.#base)
    let hash = 0
    for (let at = 0; at < text.length; at++) {
      if (at >= size) hash = (hash - Math.imul(text.charCodeAt(at - size), highest)) | 0
      hash = (Math.imul(hash, this.#base) + text.charCodeAt(at)) | 0
      if (at >= size - 1 && visit(hash, at - size + 1)) return true
    }
    return false
  }
  #sure(text: string): string {
    return hash('sha256', this.#key + text, 'base64')
  }
}

/** What a plugin keeps or reads there is known as a secret from then on. */
export function learning(sieve: SecretSieve, vault: Vault): Vault {
  return {
    ...vault,
    async read(name) {
      const secret = await vault.read(name)
      if (secret !== undefined) for (const part of secretsIn(secret)) sieve.learn(part)
      return secret
    },
    async write(name, secret, entries) {
      await vault.write(name, secret, entries)
      for (const part of secretsIn(secret)) sieve.learn(part)
    },
  }
}

/** A record that holds secrets beside other things, such as the address they are for, is not a secret as a whole: its texts are looked at. */
function secretsIn(secret: string): readonly string[] {
  if (!secret.startsWith('{') && !secret.startsWith('[')) return [secret]
  try {
    return valuesIn(readJson(secret))
  } catch {
    return [secret]
  }
}
function valuesIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(valuesIn) : []
}

/** Of an address only what stands before its host: the rest is in ordinary texts too. */
function secretPart(value: string): string {
  const match = /^[a-z][a-z\d+.-]{0,20}:\/\/[^/?#@]{0,200}?:([^/?#@]{1,500})@/i.exec(value)
  if (match) return match[1] ?? ''
  return /^[a-z][a-z\d+.-]{0,20}:\/\//i.test(value) ? '' : value
}

function formsOf(secret: string): ReadonlySet<string> {
  const bytes = Buffer.from(secret)
  // What stands before it in the same base64 text shifts it by up to two bytes; the first and last signs depend on the neighbours.
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
    ].filter((form) => form.length >= LEAST),
  )
}

function textsIn(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth > 20) return []
  return Array.isArray(value)
    ? value.flatMap((each) => textsIn(each, depth + 1))
    : Object.entries(value).flatMap(([key, each]) => [key, ...textsIn(each, depth + 1)])
}
