import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { MAX_CHARACTERS, ZulipApi } from './api.ts'
import { ZulipConfig } from './config.ts'
import { ZulipEvents } from './events.ts'

const Reference = v.object({ path: v.pipe(v.string(), v.check(isUpload)) })

/** Somebody's message has the path, and the request has the key of the bot: `%2e%2e` leads upwards as `..` does. */
function isUpload(path: string): boolean {
  const url = URL.parse(`https://zulip.invalid/api${path}`)
  return url !== null && url.pathname.startsWith('/api/user_uploads/') && url.search === '' && url.hash === ''
}

async function open(link: ChannelLink<ZulipConfig>): Promise<ChannelConnection> {
  const api = new ZulipApi(link)
  const background = await new ZulipEvents(link, api, await api.me()).open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    typing: (to) => api.typing(to),
    react: (_, messageId, emoji) => api.react(messageId, emoji),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).path, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: ZulipConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: MAX_CHARACTERS,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 1000 },
    // The server forgets an indicator after 15 seconds.
    typing: { repeatMs: 10_000 },
    threads: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 25_000_000 },
    idempotentSend: false,
    // 200 requests a minute, edits and typing included.
    rate: { overall: { perSecond: 2, burst: 20 } },
  },
  // Two polls, which the server ends after 90 seconds at the latest.
  silenceMs: 200_000,
  open,
  probe: async (link) => ({ account: (await new ZulipApi(link).me()).email }),
})
