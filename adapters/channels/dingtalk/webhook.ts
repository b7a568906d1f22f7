import { readWebhookBody, verifySignature, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'

/** The documentation of DingTalk says how old a request may be. */
const WINDOW_MS = 3_600_000

/**
 * Verifies a request of DingTalk and passes it on. The signature is one of the time, and not of the body.
 * Source: https://open.dingtalk.com/document/orgapp/receive-message (looked up in November 2026).
 */
export async function answerWebhook(
  request: WebhookRequest,
  secret: string,
  now: number,
  receive: (message: unknown) => Promise<void>,
): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const timestamp = request.header('timestamp') ?? ''
  verifySignature(`${timestamp}\n${secret}`, request.header('sign'), { secret, encoding: 'base64' })
  verifyTimestamp(/^\d+$/.test(timestamp) ? Number(timestamp) : NaN, now, WINDOW_MS)
  await receive(readWebhookBody(request))
  return { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
}
