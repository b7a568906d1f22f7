import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { defineAdapter, pause, pollInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { SlackApi } from './api.ts'
import { SlackConfig } from './config.ts'
import { SlackEvents } from './events.ts'
import { SocketMode } from './socket.ts'
import { answerWebhook } from './webhook.ts'
import type { Envelope } from './wire.ts'

type Link = ChannelLink<SlackConfig>
const CHECK_MS = 40_000
const Reference = v.object({ file: v.string() })

async function open(link: Link): Promise<ChannelConnection> {
  const api = new SlackApi(link)
  const identity = await api.identity()
  const events = new SlackEvents(link, api, identity.user_id)
  const receiving = await receive(link, api, events)
  const { signing_secret: secret } = link.config
  return {
    closed: receiving.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(to.chatId, sent.id),
    react: (to, messageId, emoji) => api.react(to.chatId, messageId, emoji),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).file, signal),
    webhook: (request) => {
      if (secret === undefined) throw new Refusal('unauthorized', 'This channel has no signing_secret')
      return answerWebhook(request, events, secret, link.now())
    },
    [Symbol.asyncDispose]: () => receiving[Symbol.asyncDispose](),
  }
}

/** Without an app token messages come to the webhook only: whether the token still holds is all there is to hear. */
async function receive(link: Link, api: SlackApi, events: SlackEvents): Promise<Receiving> {
  if (link.config.app_token === undefined)
    return pollInBackground(link, async (signal) => {
      if (await pause(link, CHECK_MS, signal)) await api.identity()
    })
  const deliver = (envelope: Envelope): Promise<void> => deliverEnvelope(events, envelope)
  const socket = new SocketMode({ link, findUrl: () => api.connect(), deliver })
  await socket.open()
  return { closed: socket.closed, [Symbol.asyncDispose]: () => socket.close() }
}
type Receiving = Pick<ChannelConnection, 'closed' | typeof Symbol.asyncDispose>

async function deliverEnvelope(events: SlackEvents, { type, payload }: Envelope): Promise<void> {
  if (type === 'events_api') await events.event(payload)
  else if (type === 'interactive') await events.interaction(payload)
  else if (type === 'slash_commands') await events.command(payload)
}

export default defineAdapter({
  config: SlackConfig,
  capabilities: {
    dialect: 'slack',
    maxLength: 4000,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 1500 },
    threads: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 100_000_000 },
    // Slack documents no key by which a message that is sent again is recognised.
    idempotentSend: false,
    rate: { perChat: { perSecond: 1, burst: 3 }, overall: { perSecond: 20, burst: 20 } },
  },
  silenceMs: 90_000,
  open,
  probe: async (link) => {
    const { user, user_id: id, team } = await new SlackApi(link).identity()
    return { account: team == null ? (user ?? id) : `${user ?? id} of ${team}` }
  },
})
