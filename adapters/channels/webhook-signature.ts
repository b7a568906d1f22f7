import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { Refusal } from 'svc/sdk'

/** How a platform signs the requests that it sends. */
export interface SignatureScheme {
  readonly secret: string
  readonly hash?: 'sha256' | 'sha1' | 'sha512'
  readonly encoding?: 'hex' | 'base64'
  /** What stands before the signature in the header, such as `sha256=`. */
  readonly prefix?: string
}

/** The value of the signature header for this content: the raw body, or what else the platform signs. */
export function signContent(content: string | Uint8Array, scheme: SignatureScheme): string {
  const { secret, hash = 'sha256', encoding = 'hex', prefix = '' } = scheme
  return prefix + createHmac(hash, secret).update(content).digest(encoding)
}

/** Throws `Refusal('unauthorized')` unless the header is the signature of the content. */
export function verifySignature(
  content: string | Uint8Array,
  header: string | undefined,
  scheme: SignatureScheme,
): void {
  // An HMAC with an empty secret is one that everybody can make.
  if (scheme.secret === '' || header === undefined) throw unauthorized()
  const expected = signContent(content, scheme)
  const given = scheme.encoding === 'base64' ? header : header.toLowerCase()
  verifySecret(given, expected)
}

/** Throws `Refusal('unauthorized')` unless both are the same. Takes the same time wherever they differ. */
export function verifySecret(given: string | undefined, expected: string): void {
  if (expected === '' || given === undefined || !timingSafeEqual(digest(given), digest(expected))) throw unauthorized()
}

/** Throws `Refusal('unauthorized')` for a time in milliseconds that is further away than the window. */
export function verifyTimestamp(ms: number, now: number, windowMs: number): void {
  if (!Number.isFinite(ms) || Math.abs(now - ms) > windowMs) throw unauthorized()
}

/** The same for every cause, so that an answer does not tell an attacker what was right. */
export function unauthorized(): Refusal {
  return new Refusal('unauthorized', 'The request is not signed with the secret of this channel')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
