import { defineService, notify } from 'svc/sdk'

/** `POST /api/hooks/wake` was called. The wake is on disk when this is emitted. */
export const HookReceived = notify<{
  readonly id: string
  readonly mode: 'now' | 'next_heartbeat'
  readonly text: string
}>('webhooks:hook-received')

/** One event for a receiver that has no subscription. */
export interface WebhookEvent {
  /** The same on every attempt: the receiver can tell a repetition by it. */
  readonly id: string
  readonly event: string
  /** ISO 8601 UTC. */
  readonly timestamp: string
  readonly data: unknown
}
export interface WebhookSender {
  /** Throws unless requests to this address are permitted. */
  admit(url: string): Promise<void>
  /** One attempt. Rejects only when the signal aborts; `error` is `null` when the receiver took the event. */
  post(
    url: string,
    event: WebhookEvent,
    signal: AbortSignal,
  ): Promise<{
    readonly status: number | null
    readonly error: string | null
    readonly retryAfterMs: number | undefined
  }>
}
export const WebhookSender = defineService<WebhookSender>()('webhook-sender')
