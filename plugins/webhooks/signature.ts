import { createHmac, timingSafeEqual } from 'node:crypto'

/** Bytes; of a secret that was base64 (the specification asks for 24). */
const LEAST_KEY = 24

/**
 * `X-Webhook-Signature: sha256=<hex>` over the raw body, as compatible services send it. The body holds id and time, so that a
 * receiver which remembers ids takes nothing twice.
 */
export function bodySignature(secret: string, body: Uint8Array | string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/** As the Standard Webhooks specification has it: over id, the time of this very attempt in seconds, and the raw body. */
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
export function holds(header: string, secret: string, id: string, seconds: number, body: Uint8Array): boolean {
  const wanted = keysOf(secret).map((key) => Buffer.from(signatureOf(key, id, seconds, body)))
  return header
    .split(' ')
    .slice(0, 10)
    .map((given) => Buffer.from(given))
    .some((given) => wanted.some((one) => given.length === one.length && timingSafeEqual(given, one)))
}
/** Senders by the libraries of the specification take any secret for base64; others sign with the text itself. */
function keysOf(secret: string): readonly Buffer[] {
  const key = keyOf(secret)
  const decoded =
    secret.startsWith('whsec_') || !/^[A-Za-z0-9+/]+={0,2}$/.test(secret) ? key : Buffer.from(secret, 'base64')
  return decoded.equals(key) || decoded.length < LEAST_KEY ? [key] : [key, decoded]
}
