import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { ViberApi } from './api.ts'
import { ViberConfig } from './config.ts'
import { answerWebhook, startWebhook } from './webhook.ts'
import { Reference } from './wire.ts'

async function open(link: ChannelLink<ViberConfig>): Promise<ChannelConnection> {
  const api = new ViberApi(link)
  await api.account()
  const background = startWebhook(link, api)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    webhook: (request) => answerWebhook(link, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: ViberConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 7000,
    lengthUnit: 'utf16',
    buttons: true,
    // Viber fetches what it sends from a public address, which the daemon does not have.
    attachments: { inbound: true, outbound: false, maxBytes: 200_000_000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 20, burst: 20 } },
  },
  // Two checks of the webhook.
  silenceMs: 700_000,
  open,
  probe: async (link) => {
    const { name, uri } = await new ViberApi(link).account()
    return { account: uri ? `${name} (${uri})` : name }
  },
})
