import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../errors/error.ts'
import type { Limiter } from '../limit/gcra.ts'
import { enforced } from '../scope/enforcement.ts'
import type { CredentialRegistry } from './credentials.ts'
import type { Principal } from './principal.ts'

export interface AuthFailure {
  readonly clientAddress: string
  readonly method: string
  readonly path: string
  readonly requestId: string
  /** What was wrong, such as `a wrong code`; a key when it is not said. */
  readonly what?: string
}
/** What authentication reads of a request. */
export interface Credentials {
  readonly method: string
  readonly path: string
  readonly requestId: string
  header(name: string): string | undefined
}
export interface AuthOptions {
  /** Asked at every request, so that a changed key holds at once. */
  readonly apiKey: () => string | undefined
  /** Counts failed attempts per address. */
  readonly failures: Limiter
  /** Credentials beside the key. */
  readonly further?: Pick<CredentialRegistry, 'find' | 'holds'>
  onFailure?(failure: AuthFailure): void
  /** The key in force became another one: what was opened with the old one has to end. */
  onChange?(): void
}
export interface Auth {
  /**
   * Who calls. Throws `unauthorized`, or `rate_limit` after too many wrong keys from this address. `token`: what counts
   * here instead of the key; `signed`: without it the handler checks a signature.
   */
  check(
    level: 'public' | 'bearer' | 'signed',
    request: Credentials,
    clientAddress: string,
    limiterKey: string,
    token?: string,
    signed?: boolean,
  ): Principal
  /** Names the key in force; changes with it. Sockets remember it and are closed when it is another one. */
  generation(): number
  /** Whether what this principal presented when the key had this generation still opens what it did. */
  holds(principal: Principal, generation: number): boolean
  /** Tells the key in force from others, to whoever knows the salt. Every daemon with the same key has the same one. */
  keyMark(salt: string): string
  /** Whether this is the mark of a key that was in force here and no longer is. */
  isReplaced(mark: string, salt: string): boolean
  /** Throws `rate_limit` after too many wrong credentials of this address. */
  checkAttempts(limiterKey: string): void
  /** A wrong credential: counts, and is told. */
  failed(failure: AuthFailure, limiterKey: string): void
  /** Whether a key is set. */
  required(): boolean
}

/** Of replaced keys that are remembered. */
const MAX_REPLACED = 100
const anonymous: Principal = { kind: 'anonymous' }
const operator: Principal = { kind: 'operator' }
const platform: Principal = { kind: 'platform' }
const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

export function createAuth(options: AuthOptions): Auth {
  let configuredKey: string | undefined
  let keyDigest: Buffer | undefined
  let generation = 0
  /** Of keys that were in force, the newest last. */
  const replaced: Buffer[] = []

  const key = (): Buffer | undefined => {
    const configured = options.apiKey()
    if (configured === configuredKey && generation > 0) return keyDigest
    configuredKey = configured
    generation++
    // Whitespace around the key is not part of it, and a blank key is no key.
    const trimmed = configured?.trim() ?? ''
    if (keyDigest) replaced.push(keyDigest)
    if (replaced.length > MAX_REPLACED) replaced.shift()
    keyDigest = trimmed === '' ? undefined : digest(trimmed)
    if (generation > 1) options.onChange?.()
    return keyDigest
  }

  const checkAttempts = (limiterKey: string): void => {
    if (options.failures.allows(limiterKey, 1)) return
    enforced('gcra_rate_limiter')
    throw new Refusal('rate_limit', 'Too many failed authentication attempts', { retryAfterSecs: 60 })
  }
  const failed = (failure: AuthFailure, limiterKey: string): void => {
    options.failures.take(limiterKey, 1)
    options.onFailure?.(failure)
  }

  return {
    check(level, request, clientAddress, limiterKey, token, signed = false) {
      if (level === 'public') return anonymous
      if (level === 'signed') return platform
      const expected = token === undefined ? key() : digest(token)
      if (expected === undefined) return anonymous
      const presented = presentedKey(request)
      if (presented === undefined && token !== undefined && signed) {
        checkAttempts(limiterKey)
        return platform
      }
      if (presented === undefined) throw new Refusal('unauthorized', 'Missing Authorization: Bearer <api_key> header')
      // Before comparing: a guesser learns nothing more, not even whether this guess was right.
      checkAttempts(limiterKey)
      if (timingSafeEqual(digest(presented), expected)) return token === undefined ? operator : platform
      const holder = token === undefined ? options.further?.find(presented) : undefined
      if (holder) return holder
      failed({ clientAddress, method: request.method, path: request.path, requestId: request.requestId }, limiterKey)
      throw new Refusal('unauthorized', token === undefined ? 'Invalid API key' : 'Invalid token')
    },
    generation() {
      key()
      return generation
    },
    holds(principal, since) {
      key()
      return since === generation && (options.further?.holds(principal) ?? true)
    },
    keyMark: (salt) => markOf(key(), salt),
    isReplaced: (mark, salt) => mark !== markOf(key(), salt) && replaced.some((old) => markOf(old, salt) === mark),
    checkAttempts,
    failed,
    required: () => key() !== undefined,
  }
}

const markOf = (key: Buffer | undefined, salt: string): string =>
  createHmac('sha256', salt)
    .update(key ?? '')
    .digest('base64url')

function presentedKey(request: Credentials): string | undefined {
  const authorization = request.header('authorization')
  const token = authorization === undefined ? undefined : /^bearer +(.*)$/i.exec(authorization.trim())?.[1]?.trim()
  if (token !== undefined && token.includes(',') && /, *bearer /i.test(token))
    throw new Refusal('invalid_request', 'There is more than one Authorization header; send one')
  if (token !== undefined && token !== '') return token
  const header = request.header('x-api-key')?.trim()
  if (header !== undefined && header !== '') return header
  // A header of another scheme is an attempt with a wrong credential, not a missing one; no key holds a NUL.
  return authorization === undefined || authorization.trim() === '' || /^bearer\s*$/i.test(authorization.trim())
    ? undefined
    : `\0${authorization}`
}
