import * as v from 'valibot'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { PumbleApi } from './api.ts'
import { PumbleConfig } from './config.ts'
import { PumbleEvents } from './events.ts'
import { answerWebhook } from './webhook.ts'

const Reference = v.object({ channel: v.string(), message: v.string(), file: v.string() })

async function open(link: ChannelLink<PumbleConfig>): Promise<ChannelConnection> {
  const api = new PumbleApi(link)
  const events = new PumbleEvents(link, api, await api.identity())
  const background = waitForEnd(link)
  const { signing_secret: secret } = link.config
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(to, sent.id),
    react: (_, messageId, emoji) => api.react(messageId, emoji),
    readAttachment: async (reference, signal) => api.readFile(v.parse(Reference, reference), signal),
    webhook: (request) => answerWebhook(request, { events, secret, now: link.now() }),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: PumbleConfig,
  capabilities: {
    dialect: 'markdown',
    // The API takes 100,000.
    maxLength: 10_000,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 1500 },
    threads: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 100_000_000 },
    idempotentSend: false,
    // 80 messages a minute in a workspace.
    rate: { perChat: { perSecond: 1, burst: 5 }, overall: { perSecond: 1.3, burst: 20 } },
  },
  open,
  probe: async (link) => {
    const {
      workspaceUserName: name,
      workspaceUserId: id,
      workspaceName: workspace,
    } = await new PumbleApi(link).identity()
    return { account: workspace ? `${name ?? id} of ${workspace}` : (name ?? id) }
  },
})
