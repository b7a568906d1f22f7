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
/** A body in the format of another protocol. */
export interface WebhookMessage {
  /** The same on every attempt: the receiver can tell a repetition by it. */
  readonly id: string
  readonly body: string
  readonly contentType: string
  /** Signs the body, as that of a webhook with a secret. */
  readonly secret?: string | undefined
  /** Headers of that protocol, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
}
/** The outcome of one attempt; `error` is `null` when the receiver took it. */
export interface WebhookAttempt {
  readonly status: number | null
  readonly error: string | null
  readonly retryAfterMs: number | undefined
}
export interface WebhookSender {
  /** Throws unless requests to this address are permitted. */
  admit(url: string): Promise<void>
  /** One attempt. Rejects only when the signal aborts. */
  post(url: string, event: WebhookEvent, signal: AbortSignal): Promise<WebhookAttempt>
  /** The same with a body of the caller's own. */
  send(url: string, message: WebhookMessage, signal: AbortSignal): Promise<WebhookAttempt>
}
export const WebhookSender = defineService<WebhookSender>()('webhook-sender')
