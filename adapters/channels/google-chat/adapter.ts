import * as v from 'valibot'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { GoogleChatApi } from './api.ts'
import { GoogleChatConfig } from './config.ts'
import { Webhook } from './webhook.ts'
import { Attachment } from './wire.ts'

const Reference = v.object({ resource: Attachment.entries.attachmentDataRef.entries.resourceName })

async function open(link: ChannelLink<GoogleChatConfig>): Promise<ChannelConnection> {
  const api = new GoogleChatApi(link)
  await api.authorize()
  const webhook = new Webhook(link)
  const background = waitForEnd(link)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    readAttachment: async (reference, signal) => api.readFile(v.parse(Reference, reference).resource, signal),
    webhook: (request) => webhook.answer(request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: GoogleChatConfig,
  capabilities: {
    // The same signs: *bold* _italic_ ~strike~ `code`. What else a text has is not escaped.
    dialect: 'xmpp',
    // A message may have 32,000 bytes, its buttons included.
    maxLength: 28_000,
    lengthUnit: 'bytes',
    edit: { minIntervalMs: 1500 },
    threads: true,
    buttons: true,
    attachments: { inbound: true, outbound: false, maxBytes: 200_000_000 },
    idempotentSend: true,
    // One write in a second to each space, edits included; 3,000 messages a minute for the project.
    rate: { perChat: { perSecond: 1, burst: 1 }, overall: { perSecond: 50, burst: 50 } },
  },
  open,
  probe: async (link) => {
    const api = new GoogleChatApi(link)
    await api.authorize()
    return { account: api.email }
  },
})
