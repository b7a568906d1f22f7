import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { defineAdapter, pause, pollInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { FeishuApi } from './api.ts'
import { FeishuConfig } from './config.ts'
import { FeishuEvents } from './events.ts'
import { LongConnection } from './socket.ts'
import { TypingReactions } from './typing.ts'
import { answerWebhook } from './webhook.ts'

type Link = ChannelLink<FeishuConfig>
type Receiving = Pick<ChannelConnection, 'closed' | typeof Symbol.asyncDispose>

const CHECK_MS = 120_000
const Reference = v.object({ message: v.string(), key: v.string(), type: v.picklist(['image', 'file']) })

async function open(link: Link): Promise<ChannelConnection> {
  const api = new FeishuApi(link)
  const events = new FeishuEvents(link, api, await api.bot())
  const receiving = await receive(link, api, events)
  const typing = new TypingReactions(link, api)
  const { mode, encrypt_key: encryptKey = '', verification_token: verificationToken = '' } = link.config
  return {
    closed: receiving.closed,
    send: async (message) => {
      const sent = await api.send(message)
      await typing.stop(message.to)
      return sent
    },
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    typing: (to) => typing.start(to),
    react: async (_, messageId, emoji) => void (await api.react(messageId, emoji)),
    readAttachment: (reference, signal) => api.readResource(v.parse(Reference, reference), signal),
    webhook: async (request) => {
      if (mode !== 'webhook') throw new Refusal('unauthorized', 'This channel receives over a long connection')
      return answerWebhook(request, { encryptKey, verificationToken }, link.now(), (event) => events.receive(event))
    },
    [Symbol.asyncDispose]: () => receiving[Symbol.asyncDispose](),
  }
}

/** With the webhook, whether the credentials still hold is all there is to hear. */
async function receive(link: Link, api: FeishuApi, events: FeishuEvents): Promise<Receiving> {
  if (link.config.mode === 'webhook')
    return pollInBackground(link, async (signal) => {
      if (await pause(link, CHECK_MS, signal)) await api.bot()
    })
  const connection = new LongConnection(link, events)
  await connection.open(await api.endpoint())
  return { closed: connection.closed, [Symbol.asyncDispose]: () => connection.close() }
}

export default defineAdapter({
  config: FeishuConfig,
  capabilities: {
    dialect: 'markdown',
    // A card may have 30 KB, with what JSON adds to the text.
    maxLength: 12_000,
    lengthUnit: 'bytes',
    edit: { minIntervalMs: 1000 },
    // It is a reaction, which stays until the answer.
    typing: { repeatMs: 60_000 },
    threads: true,
    replies: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 30_000_000 },
    idempotentSend: true,
    rate: { perChat: { perSecond: 5, burst: 5 }, overall: { perSecond: 15, burst: 50 } },
  },
  // Two signs of life.
  silenceMs: 300_000,
  open,
  probe: async (link) => {
    const { app_name: name, open_id: id } = await new FeishuApi(link).bot()
    return { account: name || id }
  },
})
