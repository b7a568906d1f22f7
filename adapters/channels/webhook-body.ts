import { readJson, Refusal } from 'svc/sdk'
import type { WebhookRequest } from './channel.ts'

/** The JSON of a request whose signature was verified. Throws `Refusal('invalid_request')` when it is none. */
export function readWebhookBody({ body }: Pick<WebhookRequest, 'body'>): unknown {
  try {
    return readJson(new TextDecoder().decode(body))
  } catch {
    throw new Refusal('invalid_request', 'The body is not JSON')
  }
}
