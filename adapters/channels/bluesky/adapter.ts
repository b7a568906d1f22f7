import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { BlueskyApi } from './api.ts'
import { BlueskyConfig } from './config.ts'
import { Notifications } from './notifications.ts'

const Reference = v.object({
  did: v.pipe(v.string(), v.regex(/^did:[a-z]+:[A-Za-z0-9.%_-]{1,200}$/)),
  cid: v.pipe(v.string(), v.regex(/^[A-Za-z0-9]{1,200}$/)),
})

async function open(link: ChannelLink<BlueskyConfig>): Promise<ChannelConnection> {
  const api = new BlueskyApi(link)
  const background = await new Notifications(link, api, await api.account()).open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    readAttachment: async (reference, signal) => api.readImage(v.parse(Reference, reference), signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: BlueskyConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 300,
    lengthUnit: 'graphemes',
    threads: true,
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: 2_000_000 },
    idempotentSend: true,
    isPublic: true,
    // 35,000 points a day, of which a post takes two.
    rate: { overall: { perSecond: 0.2, burst: 30 } },
  },
  // Two polls at the longest interval, and the time that they may take.
  silenceMs: 300_000,
  open,
  probe: async (link) => ({ account: `@${(await new BlueskyApi(link).account()).handle}` }),
})
