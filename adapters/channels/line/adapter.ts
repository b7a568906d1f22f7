import * as v from 'valibot'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { LineApi } from './api.ts'
import { LineConfig } from './config.ts'
import { LineSender } from './sender.ts'
import { LineWebhook } from './webhook.ts'

const Reference = v.object({ messageId: v.string() })

async function open(link: ChannelLink<LineConfig>): Promise<ChannelConnection> {
  const api = new LineApi(link)
  const { userId } = await api.me()
  const sender = new LineSender(link, api)
  const webhook = new LineWebhook(link, api, sender, userId)
  const background = waitForEnd(link)
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    typing: (to) => sender.typing(to),
    readAttachment: (reference, signal) => api.readContent(v.parse(Reference, reference).messageId, signal),
    webhook: (request) => webhook.answer(request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: LineConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 5000,
    lengthUnit: 'utf16',
    // Shown for 20 seconds, or until the answer.
    typing: { repeatMs: 18_000 },
    replies: true,
    buttons: true,
    // LINE fetches what it sends from a public address, which the daemon does not have.
    attachments: { inbound: true, outbound: false, maxBytes: 200_000_000 },
    idempotentSend: true,
    // LINE allows 2,000 requests a second.
    rate: { overall: { perSecond: 100, burst: 100 } },
  },
  open,
  probe: async (link) => {
    const { displayName, basicId } = await new LineApi(link).me()
    return { account: `${displayName} (${basicId})` }
  },
})
