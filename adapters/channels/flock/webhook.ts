import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { readWebhookBody, verifyToken } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { FlockConfig } from './config.ts'
import { decodeEvent } from './decode.ts'
import { Event } from './wire.ts'

const TOKEN_HEADER = 'x-flock-event-token'

/**
 * Takes an event. Its token is signed for a user and not for the body, and a user may see it in a widget: whoever has
 * it can send events of this user only. Source: https://docs.flock.com/display/flockos/Events
 */
export async function answerWebhook(link: ChannelLink<FlockConfig>, request: WebhookRequest): Promise<WebhookAnswer> {
  const { app_id: appId, app_secret: secret } = link.config
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const token = request.header(TOKEN_HEADER)
  const claims = await verifyToken(token, secret, { algorithm: 'HS256', now: link.now() })
  const body = readWebhookBody(request)
  const event = v.safeParse(Event, body)
  const userId = event.success ? event.output.userId : undefined
  if (claims['appId'] !== appId || userId === undefined || claims['userId'] !== userId)
    throw new Refusal('unauthorized', 'The token is not for this event')
  const message = decodeEvent(body, { eventId: idOf(token ?? '', request.body), now: link.now() })
  if (message) await link.receive(message)
  return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' }
}

/** A token is made for one event, so the same event has the same id when it comes again. */
function idOf(token: string, body: Uint8Array): string {
  return createHash('sha256').update(token).update('\n').update(body).digest('base64url')
}
