import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { RocketChatApi } from './api.ts'
import { RocketChatConfig } from './config.ts'
import { RocketChatEvents } from './events.ts'
import { RocketChatSocket } from './socket.ts'
import type { Me } from './wire.ts'

type Link = ChannelLink<RocketChatConfig>
/** A part of the address of a file: none that leads to another place, as `..` does. */
const Part = v.pipe(v.string(), v.regex(/^(?!\.{1,2}$)/))
const Reference = v.object({ file: Part, name: Part })

async function open(link: Link): Promise<ChannelConnection> {
  const api = new RocketChatApi(link)
  const bot = await readBot(link, api)
  const events = new RocketChatEvents(link, api, bot)
  const socket = new RocketChatSocket(link, events)
  await socket.open(api.socketUrl)
  return {
    closed: socket.closed,
    send: async (message) => {
      const sent = await api.send(message)
      events.noteOwnMessage(sent.id)
      return sent
    },
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(sent.id, to),
    typing: (to) => socket.typing(to.chatId, bot.username),
    react: (_, messageId, emoji) => api.react(messageId, emoji),
    readAttachment: (reference, signal) => {
      const { file, name } = v.parse(Reference, reference)
      return api.readFile(file, name, signal)
    },
    [Symbol.asyncDispose]: () => socket.close(),
  }
}

async function readBot(link: Link, api: RocketChatApi): Promise<Me> {
  const bot = await api.me()
  if (bot._id === link.config.user_id) return bot
  throw new UpstreamFailure('rocketchat', 'The token belongs to another user', { reason: 'auth', retry: 'never' })
}

export default defineAdapter({
  config: RocketChatConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: 5000,
    lengthUnit: 'utf16',
    // Ten calls a minute of each kind, unless the bot may make more.
    edit: { minIntervalMs: 6500 },
    typing: { repeatMs: 7000 },
    threads: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 100_000_000 },
    idempotentSend: true,
    rate: { overall: { perSecond: 0.16, burst: 10 } },
  },
  // The server pings at least every 30 seconds.
  silenceMs: 90_000,
  open,
  probe: async (link) => ({ account: `@${(await readBot(link, new RocketChatApi(link))).username}` }),
})
