import { createHmac, timingSafeEqual } from 'node:crypto'

/** Bytes of a decoded base64 secret; the specification recommends at least 24. */
const MIN_KEY_BYTES = 24

/**
 * `X-Webhook-Signature: sha256=<hex>` over the raw body, as compatible services send it. The body has id and time, so
 * that a receiver can drop ids it has seen.
 */
export function bodySignature(secret: string, body: Uint8Array | string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/** As in the Standard Webhooks specification: over the id, the time of this attempt in seconds, and the raw body. */
export function standardSignature(secret: string, id: string, seconds: number, body: Uint8Array | string): string {
  return signatureOf(keyOf(secret), id, seconds, body)
}
function signatureOf(key: Buffer, id: string, seconds: number, body: Uint8Array | string): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.`).update(body).digest('base64')}`
}
function keyOf(secret: string): Buffer {
  const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return base64 === undefined ? Buffer.from(secret, 'utf8') : Buffer.from(base64, 'base64')
}

/** Whether one of the signatures in a header is right; there are several while a secret is replaced. */
export function verifySignature(
  header: string,
  secret: string,
  id: string,
  seconds: number,
  body: Uint8Array,
): boolean {
  const expected = keysOf(secret).map((key) => Buffer.from(signatureOf(key, id, seconds, body)))
  return header
    .split(' ')
    .slice(0, 10)
    .map((given) => Buffer.from(given))
    .some((given) => expected.some((one) => given.length === one.length && timingSafeEqual(given, one)))
}
/** The libraries of the specification decode any secret as base64; other senders sign with the text itself. */
function keysOf(secret: string): readonly Buffer[] {
  const key = keyOf(secret)
  const decoded =
    secret.startsWith('whsec_') || !/^[A-Za-z0-9+/]+={0,2}$/.test(secret) ? key : Buffer.from(secret, 'base64')
  return decoded.equals(key) || decoded.length < MIN_KEY_BYTES ? [key] : [key, decoded]
}
