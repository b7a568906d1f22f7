import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * `X-Webhook-Signature: sha256=<hex>` over the raw body, as compatible services send it. The body holds id and time, so that a
 * receiver which remembers ids takes nothing twice.
 */
export function bodySignature(secret: string, body: Uint8Array | string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/** As the Standard Webhooks specification has it: over id, the time of this very attempt in seconds, and the raw body. */
export function standardSignature(secret: string, id: string, seconds: number, body: Uint8Array | string): string {
  return `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${seconds}.`).update(body).digest('base64')}`
}
function keyOf(secret: string): Buffer {
  const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return base64 === undefined ? Buffer.from(secret, 'utf8') : Buffer.from(base64, 'base64')
}

/** Whether one of the signatures in a header is right; there are several while a secret is replaced. */
export function holds(header: string, secret: string, id: string, seconds: number, body: Uint8Array): boolean {
  const wanted = Buffer.from(standardSignature(secret, id, seconds, body))
  return header
    .split(' ')
    .slice(0, 10)
    .map((given) => Buffer.from(given))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted))
}
