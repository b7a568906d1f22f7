import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { verifySecret, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import { decryptMessage } from './cipher.ts'
import { AppMessage } from './wire.ts'
import { parseXml } from './xml.ts'

const WINDOW_MS = 300_000
/** Whoever calls has proved nothing yet: only this element is looked for, as reading XML takes its time. */
const ENCRYPTED = /<Encrypt>(?:<!\[CDATA\[)?([A-Za-z0-9+/=\s]*)(?:\]\]>)?<\/Encrypt>/

export interface CallbackSecrets {
  readonly token: string
  readonly encodingAesKey: string
  readonly corpId: string
}

/**
 * Verifies a request of WeCom, passes it on, and answers. WeCom sends it again, three times, unless it is answered
 * within five seconds. Source: https://developer.work.weixin.qq.com/document/path/90930 (looked up in November 2026).
 */
export async function answerCallback(
  request: WebhookRequest,
  secrets: CallbackSecrets,
  now: number,
  receive: (message: AppMessage | undefined) => Promise<void>,
): Promise<WebhookAnswer> {
  if (request.method === 'GET') {
    const text = open(request, request.query.get('echostr') ?? '', secrets, now)
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: text }
  }
  const text = open(request, encryptedOf(request.body), secrets, now)
  await receive(messageOf(text))
  return { status: 200 }
}

/** What is in a request, once it is certain that WeCom wrote it for this company. */
function open({ query }: WebhookRequest, encrypted: string, secrets: CallbackSecrets, now: number): string {
  const timestamp = query.get('timestamp') ?? ''
  const signed = [secrets.token, timestamp, query.get('nonce') ?? '', encrypted].toSorted().join('')
  const signature = createHash('sha1').update(signed).digest('hex')
  verifySecret(query.get('msg_signature')?.toLowerCase(), signature)
  verifyTimestamp(/^\d+$/.test(timestamp) ? Number(timestamp) * 1000 : NaN, now, WINDOW_MS)
  const { text, id } = decrypted(secrets.encodingAesKey, encrypted)
  verifySecret(id, secrets.corpId)
  return text
}

function decrypted(key: string, encrypted: string): ReturnType<typeof decryptMessage> {
  try {
    return decryptMessage(key, encrypted)
  } catch {
    throw new Refusal('unauthorized', 'The request is not encrypted with the key of this channel')
  }
}

function encryptedOf(body: Uint8Array): string {
  const [, encrypted] = ENCRYPTED.exec(new TextDecoder().decode(body)) ?? []
  if (encrypted !== undefined) return encrypted.trim()
  throw new Refusal('invalid_request', 'The body is not a callback of WeCom')
}

/** `undefined` for what cannot be read: it is left, because it would come again the same. */
function messageOf(text: string): AppMessage | undefined {
  const message = v.safeParse(v.object({ xml: AppMessage }), readXml(text))
  return message.success ? message.output.xml : undefined
}

function readXml(text: string): unknown {
  try {
    return parseXml(text)
  } catch {
    return undefined
  }
}
