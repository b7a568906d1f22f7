import { Refusal } from 'svc/sdk'
import type { WebhookAnswer, WebhookRequest } from './channel.ts'
import { readWebhookBody } from './webhook-body.ts'
import { verifySecret, verifySignature } from './webhook-signature.ts'

/** What Meta proves itself with, for products of its Graph API. */
export interface GraphSecrets {
  /** Sent when the webhook is set. */
  readonly verifyToken: string
  /** Signs what is sent to it. */
  readonly appSecret: string
}

/**
 * Answers a request of the Graph API of Meta: the handshake, or a notification, which `receive` gets once its signature
 * is verified. Meta repeats for hours what is not answered with 200, so `receive` leaves out what it does not know.
 */
export async function answerGraphRequest(
  request: WebhookRequest,
  { verifyToken, appSecret }: GraphSecrets,
  receive: (notification: unknown) => Promise<void>,
): Promise<WebhookAnswer> {
  if (request.method === 'GET') {
    verifySecret(request.query.get('hub.verify_token') ?? undefined, verifyToken)
    if (request.query.get('hub.mode') !== 'subscribe') throw new Refusal('invalid_request', 'hub.mode is not subscribe')
    const challenge = (request.query.get('hub.challenge') ?? '').slice(0, 256)
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: challenge }
  }
  verifySignature(request.body, request.header('x-hub-signature-256'), { secret: appSecret, prefix: 'sha256=' })
  await receive(readWebhookBody(request))
  return { status: 200 }
}
