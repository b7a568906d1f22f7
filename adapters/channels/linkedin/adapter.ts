import { defineAdapter, isoTime } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { LinkedInApi } from './api.ts'
import { Comments } from './comments.ts'
import { LinkedInConfig } from './config.ts'

const DAY_MS = 86_400_000
const WARN_DAYS = 7

async function open(link: ChannelLink<LinkedInConfig>): Promise<ChannelConnection> {
  const api = new LinkedInApi(link)
  await api.organization()
  const tokenEnd = await api.tokenEnd()
  const comments = new Comments(link, api)
  const background = await comments.open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    warnings() {
      if (tokenEnd === undefined || tokenEnd - link.now() > WARN_DAYS * DAY_MS) return comments.warnings
      return [`The token of LinkedIn ends on ${isoTime(tokenEnd).slice(0, 10)}: get another one`, ...comments.warnings]
    },
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: LinkedInConfig,
  capabilities: {
    dialect: 'plain',
    // Of a comment; a post may have 3,000.
    maxLength: 1250,
    lengthUnit: 'characters',
    threads: true,
    idempotentSend: false,
    isPublic: true,
    // The limits are by day, and not published.
    rate: { overall: { perSecond: 0.2, burst: 5 } },
  },
  // Two polls at the longest interval, and the time that they may take.
  silenceMs: 2_000_000,
  open,
  probe: async (link) => ({ account: await new LinkedInApi(link).organization() }),
})
