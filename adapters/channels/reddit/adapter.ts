import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { RedditApi } from './api.ts'
import { RedditConfig } from './config.ts'
import { RedditFeed } from './feed.ts'

async function open(link: ChannelLink<RedditConfig>): Promise<ChannelConnection> {
  const api = new RedditApi(link)
  await api.account()
  const feed = new RedditFeed(link, api)
  const background = await feed.open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    warnings: () => feed.warnings,
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: RedditConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: 10_000,
    lengthUnit: 'characters',
    threads: true,
    replies: true,
    idempotentSend: false,
    isPublic: true,
    // 100 requests a minute, polls included.
    rate: { overall: { perSecond: 0.5, burst: 10 } },
  },
  // Two polls at the longest interval, or the ten minutes after which Reddit takes requests again.
  silenceMs: 700_000,
  open,
  probe: async (link) => ({ account: `u/${(await new RedditApi(link).account()).name}` }),
})
