import * as v from 'valibot'
import { defineAdapter, Gateway, GatewaySession, pause, pollInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { QqApi } from './api.ts'
import { QqConfig } from './config.ts'
import { decodeMessage, isMessageType } from './decode.ts'
import { closeCodes } from './errors.ts'
import { Webhook } from './webhook.ts'
import { Message } from './wire.ts'

type Link = ChannelLink<QqConfig>
type Receiving = Pick<ChannelConnection, 'closed' | 'webhook' | typeof Symbol.asyncDispose>
type Dispatch = (type: string, data: unknown) => Promise<void>

const CHECK_MS = 60_000
const Reference = v.object({ url: v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i)) })

async function open(link: Link): Promise<ChannelConnection> {
  const api = new QqApi(link)
  const { id } = await api.me()
  const receiving = await receive(link, api, dispatchTo(link, id))
  return {
    ...receiving,
    send: (message) => api.send(message),
    delete: (sent, to) => api.delete(sent, to),
    typing: (to) => api.typing(to),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
  }
}

async function receive(link: Link, api: QqApi, dispatch: Dispatch): Promise<Receiving> {
  const { app_id: appId, mode, token: secret } = link.config
  if (mode === 'webhook') {
    const webhook = new Webhook({ appId, secret, dispatch, now: () => link.now() })
    // Whether the credentials still hold is all there is to hear.
    const background = pollInBackground(link, async (signal) => {
      if (await pause(link, CHECK_MS, signal)) await api.me()
    })
    return { ...background, webhook: (request) => webhook.answer(request) }
  }
  const session = new GatewaySession(link)
  await session.load()
  const gateway = new Gateway({
    system: 'qq',
    link,
    session,
    closeCodes,
    findUrl: async () => (await api.gateway()).url,
    token: async () => `QQBot ${await api.token()}`,
    identify: { intents: link.config.intents, shard: [0, 1], properties: {} },
    dispatch,
    random: Math.random,
  })
  await gateway.open()
  return { closed: gateway.closed, [Symbol.asyncDispose]: () => gateway.close() }
}

/** Passes on messages. Other events are none of a conversation. */
function dispatchTo(link: Link, botId: string): Dispatch {
  return async (type, data) => {
    if (!isMessageType(type)) return
    const parsed = v.safeParse(Message, data)
    if (!parsed.success) return link.log.warn('QQ sent a message in a form that cannot be read', { type })
    const message = decodeMessage(type, parsed.output, { botId, ignoreBots: link.config.ignore_bots })
    if (message) await link.receive(message)
  }
}

export default defineAdapter({
  config: QqConfig,
  capabilities: {
    dialect: 'plain',
    maxLength: 2000,
    lengthUnit: 'utf16',
    // Shown for a minute.
    typing: { repeatMs: 50_000 },
    // Larger ones are uploaded in parts, in another way.
    attachments: { inbound: true, outbound: true, maxBytes: 5_000_000 },
    // Replies appear once, and messages that answer none have no key.
    idempotentSend: false,
    // Five messages a second in a channel of a server.
    rate: { overall: { perSecond: 5, burst: 5 } },
  },
  // The gateway asks for a heartbeat about every 41 seconds.
  silenceMs: 130_000,
  open,
  probe: async (link) => ({ account: (await new QqApi(link).me()).username }),
})
