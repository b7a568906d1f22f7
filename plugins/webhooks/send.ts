import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { DeliveryRow, Target } from './schema.ts'
import { bodySignature, standardSignature } from './signature.ts'

/** The outcome of one attempt. */
export interface SendResult {
  readonly status: number | null
  readonly error: string | null
  readonly retryAfterMs: number | undefined
}
export interface Message {
  readonly id: string
  readonly body: string
}

/** The same bytes at every attempt. */
export function toMessage(
  target: Pick<Target, 'id'>,
  { event_id: id, event, occurred_at: timestamp, data }: DeliveryRow,
): Message {
  const head = JSON.stringify({ id, event, timestamp, webhook_id: target.id })
  // `data` is JSON already.
  return { id, body: `${head.slice(0, -1)},"data":${data}}` }
}

/** One attempt. Never rejects because of the receiver. Redirects are not followed: nobody subscribed their target. */
export async function send(
  fetch: Fetch,
  target: Pick<Target, 'url'>,
  { id, body }: Message,
  options: {
    readonly secret: string | undefined
    readonly timeoutMs: number
    readonly seconds: number
    readonly signal: AbortSignal
    /** Further headers, by lower-case name. */
    readonly headers?: Readonly<Record<string, string>>
  },
): Promise<SendResult> {
  const { secret, timeoutMs, seconds, signal, headers } = options
  const url = new URL(target.url)
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body,
      signal,
      headersTimeoutMs: timeoutMs,
      totalTimeoutMs: timeoutMs,
      maxBytes: 65_536,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Svc-Webhook/1.0',
        'x-webhook-id': id,
        'x-webhook-timestamp': String(seconds),
        'webhook-id': id,
        'idempotency-key': id,
        'webhook-timestamp': String(seconds),
        ...(secret === undefined
          ? {}
          : {
              'x-webhook-signature': bodySignature(secret, body),
              'webhook-signature': standardSignature(secret, id, seconds, body),
            }),
        ...headers,
      },
      check(next) {
        if (next.href !== url.href)
          throw new Refusal('forbidden', `it redirected to ${next.origin}, which is not followed`)
      },
    })
    // Only the status counts; breaking off the body closes the connection.
    for await (const _ of answer.chunks()) break
    return {
      status: answer.status,
      error: answer.ok ? null : `the receiver answered ${answer.status}`,
      retryAfterMs: parseRetryAfter(answer.header('retry-after')),
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof Refusal || error instanceof UpstreamFailure)) throw error
    return { status: null, error: error.message, retryAfterMs: undefined }
  }
}
function parseRetryAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d{1,6}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return ms > 0 ? ms : undefined
}
