import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { TwitchApi } from './api.ts'
import { Chats } from './chats.ts'
import { TwitchConfig } from './config.ts'
import { KEEPALIVE_SECS } from './socket.ts'

async function open(link: ChannelLink<TwitchConfig>): Promise<ChannelConnection> {
  const api = new TwitchApi(link)
  const account = await api.account()
  const chats = new Chats(link, api, account)
  await chats.open()
  return {
    closed: chats.closed,
    send: (message) => api.send(message, account.user_id),
    warnings: () => chats.warnings,
    [Symbol.asyncDispose]: () => chats.close(),
  }
}

export default defineAdapter({
  config: TwitchConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 500,
    lengthUnit: 'characters',
    replies: true,
    idempotentSend: false,
    isPublic: true,
    // 20 messages in 30 seconds, and one a second in each chat, for those who are no moderators.
    rate: { perChat: { perSecond: 1, burst: 1 }, overall: { perSecond: 0.6, burst: 20 } },
  },
  silenceMs: (2 * KEEPALIVE_SECS + 5) * 1000,
  open,
  probe: async (link) => ({ account: (await new TwitchApi(link).account()).login }),
})
