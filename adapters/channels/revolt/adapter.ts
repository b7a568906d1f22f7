import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { RevoltApi } from './api.ts'
import { RevoltConfig } from './config.ts'
import { handleOf } from './decode.ts'
import { RevoltEvents } from './events.ts'
import { RevoltSocket } from './socket.ts'

/** A part of the address of a file: none that leads to another place, as `..` does. */
const Part = v.pipe(v.string(), v.regex(/^(?!\.{1,2}$)/))
const Reference = v.object({ file: Part, name: Part })

async function open(link: ChannelLink<RevoltConfig>): Promise<ChannelConnection> {
  const api = new RevoltApi(link)
  const { _id: botId } = await api.me()
  const events = new RevoltEvents(link, api, botId)
  const socket = new RevoltSocket(link, events)
  await socket.open(await api.discover())
  return {
    closed: socket.closed,
    send: async (message) => {
      const sent = await api.send(message)
      events.noteOwn(sent.id)
      return sent
    },
    edit: (sent, message) => api.edit(sent, message),
    delete: (sent, to) => api.delete(sent, to),
    typing: ({ chatId }) => socket.typing(chatId),
    react: (to, messageId, emoji) => api.react(to, messageId, emoji),
    readAttachment: (reference, signal) => {
      const { file, name } = v.parse(Reference, reference)
      return api.readFile(file, name, signal)
    },
    warnings: () => events.warnings,
    [Symbol.asyncDispose]: () => socket.close(),
  }
}

export default defineAdapter({
  config: RevoltConfig,
  capabilities: {
    dialect: 'markdown',
    // The server counts 2,000 bytes; some are left for the signs that keep mentions from notifying people.
    maxLength: 1940,
    lengthUnit: 'bytes',
    edit: { minIntervalMs: 1200 },
    // Shown for four seconds.
    typing: { repeatMs: 3000 },
    replies: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 20_000_000 },
    idempotentSend: true,
    // Ten messages in ten seconds to one channel.
    rate: { perChat: { perSecond: 1, burst: 8 }, overall: { perSecond: 10, burst: 20 } },
  },
  // A ping every 20 seconds.
  silenceMs: 60_000,
  open,
  probe: async (link) => ({ account: handleOf(await new RevoltApi(link).me()) }),
})
