import * as v from 'valibot'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { MessengerApi } from './api.ts'
import { MessengerConfig } from './config.ts'
import { MessengerWebhook } from './webhook.ts'
import { Reference } from './wire.ts'

async function open(link: ChannelLink<MessengerConfig>): Promise<ChannelConnection> {
  const api = new MessengerApi(link)
  const { id } = await api.page()
  const webhook = new MessengerWebhook(link, api, id)
  const background = waitForEnd(link)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    typing: ({ chatId }) => api.typing(chatId),
    react: ({ chatId }, messageId, emoji) => api.react(chatId, messageId, emoji),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    webhook: (request) => webhook.answer(request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: MessengerConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 2000,
    lengthUnit: 'utf16',
    // Shown for 20 seconds, or until the answer.
    typing: { repeatMs: 18_000 },
    replies: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 25_000_000 },
    idempotentSend: false,
    // Meta allows more texts than files.
    rate: { overall: { perSecond: 10, burst: 20 } },
  },
  open,
  probe: async (link) => ({ account: (await new MessengerApi(link).page()).name }),
})
