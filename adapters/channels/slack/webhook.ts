import * as v from 'valibot'
import { readJson, Refusal } from 'svc/sdk'
import { verifySignature, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { SlackEvents } from './events.ts'
import { EventCallback } from './wire.ts'

const WINDOW_MS = 300_000

/**
 * Answers a request of the Events API, of interactivity or of a slash command. Slack sends it again unless it is
 * answered within three seconds.
 */
export async function answerWebhook(
  request: WebhookRequest,
  events: SlackEvents,
  secret: string,
  now: number,
): Promise<WebhookAnswer> {
  verify(request, secret, now)
  const body = new TextDecoder().decode(request.body)
  if (request.header('content-type')?.startsWith('application/x-www-form-urlencoded')) {
    const fields = new URLSearchParams(body)
    const interaction = fields.get('payload')
    if (interaction === null) await events.command(Object.fromEntries(fields))
    else await events.interaction(parsed(interaction))
    return { status: 200 }
  }
  const payload = parsed(body)
  const callback = v.safeParse(EventCallback, payload)
  if (callback.success && callback.output.type === 'url_verification')
    return { status: 200, headers: { 'content-type': 'text/plain' }, body: callback.output.challenge ?? '' }
  await events.event(payload)
  return { status: 200 }
}

/** Source: https://docs.slack.dev/authentication/verifying-requests-from-slack */
function verify(request: WebhookRequest, secret: string, now: number): void {
  const timestamp = request.header('x-slack-request-timestamp') ?? ''
  verifyTimestamp(/^\d+$/.test(timestamp) ? Number(timestamp) * 1000 : NaN, now, WINDOW_MS)
  const signed = Buffer.concat([Buffer.from(`v0:${timestamp}:`), request.body])
  verifySignature(signed, request.header('x-slack-signature'), { secret, prefix: 'v0=' })
}

function parsed(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    throw new Refusal('invalid_request', 'The body is not JSON')
  }
}
