import * as v from 'valibot'
import type { WebexApi } from './api.ts'
import type { WebexConfig } from './config.ts'
import { List, Webhook } from './wire.ts'

const WANTED = [
  { resource: 'messages', event: 'created' },
  { resource: 'messages', event: 'updated' },
  { resource: 'attachmentActions', event: 'created' },
] as const

/**
 * Registers what Webex is to tell, or sets right what is registered: Webex switches off webhooks whose address does not
 * answer, and another secret or address may be configured by now.
 */
export async function registerWebhooks(api: WebexApi, { webhook_url: targetUrl, webhook_secret: secret }: WebexConfig) {
  const { items } = await api.call('/webhooks?max=100', {}, List, 'the list of webhooks')
  const known = items.flatMap((raw) => (v.is(Webhook, raw) ? [raw] : []))
  for (const { resource, event } of WANTED) {
    const name = `svc ${resource} ${event}`
    const found = known.find((one) => one.name === name && one.resource === resource && one.event === event)
    const request = found
      ? { method: 'PUT', json: { name, targetUrl, secret, status: 'active' } }
      : { json: { name, targetUrl, secret, resource, event } }
    const path = found ? `/webhooks/${encodeURIComponent(found.id)}` : '/webhooks'
    await api.call(path, request, Webhook, 'a webhook')
  }
}
