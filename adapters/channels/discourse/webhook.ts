import * as v from 'valibot'
import { readJson, Refusal } from 'svc/sdk'
import { verifySignature } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import { Hook } from './wire.ts'

const CHANGE = 'post_edited'
const EVENTS: ReadonlySet<string | undefined> = new Set(['post_created', CHANGE, 'post_recovered'])

/**
 * Takes a request of the forum. What is in it is written for the system, which sees the messages of everybody: only the
 * id of the post is used, so that a request that is sent again changes nothing.
 */
export async function answerWebhook(
  request: WebhookRequest,
  secret: string | undefined,
  look: (post: number, isChange: boolean) => Promise<void>,
): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  verifySignature(request.body, request.header('x-discourse-event-signature'), {
    secret: secret ?? '',
    prefix: 'sha256=',
  })
  const hook = v.safeParse(Hook, readBody(request.body))
  if (!hook.success) throw new Refusal('invalid_request', 'The body is no event')
  const { post } = hook.output
  const event = request.header('x-discourse-event')
  if (post && EVENTS.has(event)) await look(post.id, event === CHANGE)
  return { status: 200 }
}

function readBody(body: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder().decode(body))
  } catch {
    throw new Refusal('invalid_request', 'The body is not JSON: choose application/json in the settings of the webhook')
  }
}
