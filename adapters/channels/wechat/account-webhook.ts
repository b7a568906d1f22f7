import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { verifySecret, verifyTimestamp } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import { openEnvelope, signatureOf } from './account-crypto.ts'
import { decodeAccountMessage } from './account-decode.ts'
import { Message } from './account-wire.ts'
import { readXml } from './account-xml.ts'
import { accountFields } from './config.ts'
import type { WeChatConfig } from './config.ts'

const MAX_BODY_BYTES = 262_144
const WINDOW_MS = 600_000
const MAX_ECHO = 256
/** Whoever calls has proved nothing yet: only this element is looked for, as reading XML takes its time. */
const ENCRYPTED = /<Encrypt>(?:<!\[CDATA\[)?([A-Za-z0-9+/=\s]+)(?:\]\]>)?<\/Encrypt>/

type Link = ChannelLink<WeChatConfig>

const answer = (body: string): WebhookAnswer => ({
  status: 200,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body,
})

/** WeChat calls again twice unless it is answered within five seconds. */
export async function answerWebhook(request: WebhookRequest, link: Link): Promise<WebhookAnswer> {
  const { appId, aesKey } = accountFields(link.config)
  if (request.method === 'GET') {
    verify(request, link, 'signature')
    return answer((request.query.get('echostr') ?? '').slice(0, MAX_ECHO))
  }
  const encrypted = encryptedOf(request.body)
  // The other signature, of clear texts, does not cover what is in them.
  verify(request, link, 'msg_signature', encrypted)
  const opened = openEnvelope(encrypted, aesKey)
  if (!opened) throw new Refusal('invalid_request', 'The message is not encrypted with aes_key')
  if (opened.appId === appId) await receive(link, opened.xml)
  return answer('success')
}

function verify({ query }: WebhookRequest, link: Link, name: string, ...content: readonly string[]): void {
  const timestamp = query.get('timestamp') ?? ''
  const nonce = query.get('nonce') ?? ''
  const expected = signatureOf(accountFields(link.config).webhookToken, timestamp, nonce, ...content)
  verifySecret(query.get(name) ?? undefined, expected)
  verifyTimestamp(/^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1000 : NaN, link.now(), WINDOW_MS)
}

function encryptedOf(body: Uint8Array): string {
  if (body.length > MAX_BODY_BYTES) throw new Refusal('invalid_request', 'The body is too large')
  const [, encrypted] = ENCRYPTED.exec(new TextDecoder().decode(body)) ?? []
  // As for a wrong signature: a message in clear text has none.
  if (encrypted === undefined) throw new Refusal('unauthorized', 'The message is not encrypted: choose the safe mode')
  return encrypted.trim()
}

async function receive(link: Link, xml: string): Promise<void> {
  const message = v.safeParse(Message, readXml(xml))
  if (!message.success) return link.log.warn('WeChat sent a message in a form that cannot be read')
  const decoded = decodeAccountMessage(message.output)
  if (decoded) await link.receive(decoded)
}
