import { readWebhookBody, verifySignature, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { PumbleEvents } from './events.ts'

const WINDOW_MS = 300_000
/** A time in seconds is less until the year 5138, and one in milliseconds more since 1973. */
const LEAST_MS = 100_000_000_000

export interface WebhookDeps {
  readonly events: PumbleEvents
  readonly secret: string
  readonly now: number
}

/** Takes a request of Pumble, which waits three seconds for the answer. */
export async function answerWebhook(
  request: WebhookRequest,
  { events, secret, now }: WebhookDeps,
): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const timestamp = request.header('x-pumble-request-timestamp') ?? ''
  verifyTimestamp(timeOf(timestamp), now, WINDOW_MS)
  const signed = Buffer.concat([Buffer.from(`${timestamp}:`), request.body])
  verifySignature(signed, request.header('x-pumble-request-signature'), { secret })
  await events.receive(readWebhookBody(request))
  return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' }
}

/** Pumble does not document the unit. */
function timeOf(timestamp: string): number {
  if (!/^\d{1,15}$/.test(timestamp)) return NaN
  const time = Number(timestamp)
  return time < LEAST_MS ? time * 1000 : time
}
