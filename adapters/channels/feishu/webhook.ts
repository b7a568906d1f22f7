import { createDecipheriv, createHash } from 'node:crypto'
import * as v from 'valibot'
import { readJson, Refusal } from 'svc/sdk'
import { verifySecret, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import { Callback } from './wire.ts'

/** Feishu sends an event again for about seven hours. What comes twice within the window is dropped as a duplicate. */
const WINDOW_MS = 28_800_000
const IV_BYTES = 16

export interface WebhookSecrets {
  readonly encryptKey: string
  readonly verificationToken: string
}

/** Verifies a request of Feishu, passes it on, and answers; every refusal is the same. */
export async function answerWebhook(
  request: WebhookRequest,
  secrets: WebhookSecrets,
  now: number,
  receive: (callback: Callback) => Promise<void>,
): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const callback = readCallback(request.body, secrets.encryptKey)
  // When its address is entered, Feishu checks it with a request that need not be signed.
  if (callback.type === 'url_verification') {
    verifySecret(callback.token ?? undefined, secrets.verificationToken)
    return answer({ challenge: callback.challenge ?? '' })
  }
  verifyRequest(request, secrets.encryptKey, now)
  verifySecret(callback.header?.token ?? undefined, secrets.verificationToken)
  await receive(callback)
  return answer({})
}

function answer(body: object): WebhookAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** Source: https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case */
function verifyRequest(request: WebhookRequest, encryptKey: string, now: number): void {
  const timestamp = request.header('x-lark-request-timestamp') ?? ''
  const nonce = request.header('x-lark-request-nonce') ?? ''
  const hash = createHash('sha256')
    .update(timestamp + nonce + encryptKey)
    .update(request.body)
  verifySecret(request.header('x-lark-signature')?.toLowerCase(), hash.digest('hex'))
  verifyTimestamp(/^\d+$/.test(timestamp) ? Number(timestamp) * 1000 : NaN, now, WINDOW_MS)
}

function readCallback(body: Uint8Array, encryptKey: string): Callback {
  const outer = parsed(new TextDecoder().decode(body))
  return outer.encrypt == null ? outer : parsed(decrypt(outer.encrypt, encryptKey))
}

function parsed(text: string): Callback {
  try {
    return v.parse(Callback, readJson(text))
  } catch {
    throw unreadable()
  }
}

function decrypt(encrypted: string, encryptKey: string): string {
  const bytes = Buffer.from(encrypted, 'base64')
  const key = createHash('sha256').update(encryptKey).digest()
  try {
    const decipher = createDecipheriv('aes-256-cbc', key, bytes.subarray(0, IV_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES)), decipher.final()]).toString()
  } catch {
    throw unreadable()
  }
}

/** Also for what cannot be decrypted: who sends it does not learn how far it came. */
function unreadable(): Refusal {
  return new Refusal('unauthorized', 'The request is not one of Feishu for this app')
}
