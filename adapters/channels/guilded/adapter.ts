import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { GuildedApi } from './api.ts'
import { GuildedConfig } from './config.ts'
import { GuildedEvents } from './events.ts'
import { GuildedSocket } from './socket.ts'

async function open(link: ChannelLink<GuildedConfig>): Promise<ChannelConnection> {
  const api = new GuildedApi(link)
  const events = new GuildedEvents(link, api, await api.me())
  const socket = new GuildedSocket(link, events)
  await socket.open(api.socketUrl)
  return {
    closed: socket.closed,
    send: async (message) => {
      const sent = await api.send(message)
      events.noteOwn(sent.id)
      return sent
    },
    edit: (sent, message) => api.edit(sent, message),
    delete: (sent, to) => api.delete(sent, to),
    [Symbol.asyncDispose]: () => socket.close(),
  }
}

export default defineAdapter({
  config: GuildedConfig,
  capabilities: {
    dialect: 'markdown',
    // 4,000; some are left for the signs that keep mentions from notifying people.
    maxLength: 3950,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 1500 },
    replies: true,
    idempotentSend: false,
    rate: { overall: { perSecond: 2, burst: 5 } },
  },
  // A ping about every 22 seconds, as the server says.
  silenceMs: 90_000,
  open,
  probe: async (link) => ({ account: (await new GuildedApi(link).me()).name }),
})
