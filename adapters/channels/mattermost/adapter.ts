import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { MattermostApi } from './api.ts'
import { MattermostConfig } from './config.ts'
import { MattermostEvents } from './events.ts'
import { MattermostSocket } from './socket.ts'

const Reference = v.object({ file: v.string() })

async function open(link: ChannelLink<MattermostConfig>): Promise<ChannelConnection> {
  const api = new MattermostApi(link)
  const bot = await api.me()
  const events = new MattermostEvents(link, api, bot)
  const socket = new MattermostSocket(link, events)
  await socket.open(api.socketUrl)
  return {
    closed: socket.closed,
    send: async (message) => {
      const sent = await api.send(message, bot.id)
      events.noteOwnPost(sent.id)
      return sent
    },
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    typing: (to) => api.typing(to),
    react: (_, messageId, emoji) => api.react(messageId, emoji, bot.id),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).file, signal),
    [Symbol.asyncDispose]: () => socket.close(),
  }
}

export default defineAdapter({
  config: MattermostConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: 16_383,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 1000 },
    typing: { repeatMs: 4000 },
    threads: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 50_000_000 },
    idempotentSend: true,
    rate: { overall: { perSecond: 10, burst: 20 } },
  },
  silenceMs: 90_000,
  open,
  probe: async (link) => ({ account: `@${(await new MattermostApi(link).me()).username}` }),
})
