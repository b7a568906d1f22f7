import { Refusal, UpstreamFailure } from 'svc/sdk'
import { ApiClient, signContent, verifySignature, verifyTimestamp, waitForEnd } from 'svc/channels'
import type {
  ChannelConnection,
  ChannelLink,
  OutboundMessage,
  SentMessage,
  WebhookAnswer,
  WebhookRequest,
} from 'svc/channels'
import type { WebhookConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { encodeMessage, senderIdOf } from './encode.ts'

type Link = ChannelLink<WebhookConfig>

/** Of the body alone, as many services sign. */
const BODY_SIGNATURE = 'x-webhook-signature'
/** Of `<timestamp>.<body>`: the request cannot be sent again later. */
const TIMED_SIGNATURE = 'x-webhook-timed-signature'
const TIMESTAMP = 'x-webhook-timestamp'

export async function openWebhook(link: Link): Promise<ChannelConnection> {
  const background = waitForEnd(link)
  return {
    closed: background.closed,
    send: (message) => postMessage(link, message),
    webhook: (request) => receiveRequest(link, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** Reaches the other side without a message, under the rules that every message is sent under. */
export async function probeCallback(link: Link): Promise<{ readonly account: string }> {
  const url = link.config.callback_url
  if (url === undefined) return { account: 'a webhook that only receives' }
  const response = await link.fetch(url, { method: 'HEAD', signal: link.signal })
  if (response.status >= 500)
    throw new UpstreamFailure('webhook', `webhook answered ${response.status}`, {
      reason: 'server_error',
      retry: 'later',
    })
  return { account: new URL(url).host }
}

async function receiveRequest(link: Link, request: WebhookRequest): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const timestampMs = verifyRequest(link, request)
  const message = decodeMessage(request.body, timestampMs)
  // The other side sent back what it was sent.
  const isOwn = message?.sender.id === senderIdOf(link.accountId)
  if (message && !isOwn) await link.receive(message)
  return { status: 200, headers: { 'content-type': 'application/json' }, body: '{"status":"ok"}' }
}

/** Throws `Refusal` unless the request is signed and recent. Returns its time in milliseconds. */
function verifyRequest(link: Link, request: WebhookRequest): number {
  const { config } = link
  const scheme = { secret: config.token, prefix: 'sha256=' }
  const stamp = request.header(TIMESTAMP)
  if (stamp !== undefined && !/^\d{1,15}$/.test(stamp))
    throw new Refusal('invalid_request', 'X-Webhook-Timestamp is not a time in milliseconds')
  const timed = request.header(TIMED_SIGNATURE)
  if (timed !== undefined || config.require_signed_timestamp)
    verifySignature(Buffer.concat([Buffer.from(`${stamp ?? ''}.`), request.body]), timed, scheme)
  else verifySignature(request.body, request.header(BODY_SIGNATURE), scheme)
  const timestampMs = Number(stamp ?? NaN)
  verifyTimestamp(timestampMs, link.now(), config.max_age_secs * 1000)
  return timestampMs
}

async function postMessage(link: Link, message: OutboundMessage): Promise<SentMessage> {
  const url = link.config.callback_url
  if (url === undefined)
    throw new UpstreamFailure(
      'webhook',
      'webhook has no callback_url to send messages to: set it in its configuration',
      {
        reason: 'invalid_request',
        retry: 'never',
      },
    )
  const scheme = { secret: link.config.token, prefix: 'sha256=' }
  const client = new ApiClient(link, { system: 'webhook', secrets: [link.config.token], refuseRedirects: true })
  const body = JSON.stringify(encodeMessage(message, link.accountId, link.now()))
  const stamp = String(link.now())
  const response = await client.open(url, {
    body,
    headers: {
      'content-type': 'application/json',
      'idempotency-key': message.id,
      [TIMESTAMP]: stamp,
      [BODY_SIGNATURE]: signContent(body, scheme),
      [TIMED_SIGNATURE]: signContent(`${stamp}.${body}`, scheme),
    },
  })
  // Read to its end, so that the connection serves the next message.
  await response.bytes()
  return { id: message.id }
}
