import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { MatrixApi } from './api.ts'
import { MatrixConfig } from './config.ts'
import { Credentials } from './credentials.ts'
import { Sync } from './sync.ts'

type Link = ChannelLink<MatrixConfig>
const Reference = v.object({ url: v.string() })

async function open(link: Link): Promise<ChannelConnection> {
  const { api, credentials, botId } = await signIn(link)
  const sync = new Sync({ link, api, credentials, botId })
  const background = await sync.start()
  return {
    closed: background.closed,
    send: async (message) => {
      const sent = await credentials.renewing(() => api.send(message))
      sync.noteOwnEvent(sent.id)
      return sent
    },
    edit: async (sent, message) => {
      await credentials.renewing(() => api.edit(sent.id, message))
    },
    delete: async (sent, to) => {
      await credentials.renewing(() => api.redact(to.chatId, sent.id))
    },
    typing: (to) => api.typing(to, botId),
    react: (to, messageId, emoji) => api.react(to, messageId, emoji),
    warnings: sync.warnings,
    readAttachment: (reference, signal) => api.download(v.parse(Reference, reference).url, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** A token that was kept from an earlier sign-in may have ended. */
async function signIn(link: Link) {
  const credentials = new Credentials(link)
  const api = new MatrixApi(link, credentials)
  const { user_id: botId } = await credentials.renewing(() => api.whoAmI())
  return { api, credentials, botId }
}

export default defineAdapter({
  config: MatrixConfig,
  capabilities: {
    dialect: 'matrix-html',
    // An event has at most 65,536 bytes, and holds the text twice.
    maxLength: 16_000,
    lengthUnit: 'bytes',
    edit: { minIntervalMs: 1000 },
    typing: { repeatMs: 20_000 },
    threads: true,
    replies: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 50_000_000 },
    idempotentSend: true,
    rate: { overall: { perSecond: 5, burst: 10 } },
  },
  silenceMs: 120_000,
  open,
  probe: async (link) => ({ account: (await signIn(link)).botId }),
})
