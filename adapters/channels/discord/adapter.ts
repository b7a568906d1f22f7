import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, defineAdapter, Gateway, GatewaySession, trimSlashes } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { DiscordApi } from './api.ts'
import { CatchUp } from './catch-up.ts'
import { DiscordConfig } from './config.ts'
import { closeCodes } from './errors.ts'
import { Events } from './events.ts'
import type { GatewayBot } from './wire.ts'

type Link = ChannelLink<DiscordConfig>

async function open(link: Link): Promise<ChannelConnection> {
  const api = new DiscordApi(link)
  const me = await api.me()
  const session = new GatewaySession(link)
  const catchUp = new CatchUp(link, api)
  await Promise.all([session.load(), catchUp.load()])
  const events = new Events(link, api, catchUp, me.id)
  const gateway = new Gateway({
    system: 'discord',
    link,
    session,
    closeCodes,
    findUrl: async () => (await startableGateway(api)).url,
    addressOf: (url) => `${trimSlashes(url)}/?v=10&encoding=json`,
    token: async () => link.config.token,
    identify: { intents: link.config.intents, properties: { os: 'linux', browser: 'svc', device: 'svc' } },
    dispatch: events.dispatch,
    catchUp: () => events.catchUp(),
    flush: () => catchUp.flush(),
    random: Math.random,
  })
  await gateway.open()
  return {
    closed: gateway.closed,
    send: (message) => api.create(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(sent.id, to),
    typing: (to) => api.typing(to),
    react: (to, messageId, emoji) => api.react(to, messageId, emoji),
    readAttachment: (reference, signal) => readAttachment(link, api, reference, signal),
    warnings: () => catchUp.warnings,
    [Symbol.asyncDispose]: () => gateway.close(),
  }
}

/** Discord resets the token of a bot that begins more sessions than it may. */
async function startableGateway(api: DiscordApi): Promise<GatewayBot> {
  const gateway = await api.gateway()
  const limit = gateway.session_start_limit
  if (limit && limit.remaining <= 0)
    throw new UpstreamFailure('discord', 'discord permits no more sessions of this bot for now', {
      reason: 'rate_limit',
      retry: 'later',
      retryAfterSecs: limit.reset_after / 1000,
    })
  return gateway
}

const Reference = v.object({ channel: v.string(), message: v.string(), attachment: v.string(), url: v.string() })

async function readAttachment(link: Link, api: DiscordApi, raw: unknown, signal: AbortSignal) {
  const { channel, message, attachment, url } = v.parse(Reference, raw)
  // The address is signed and needs no token, which must not go to another host.
  const files = new ApiClient(link, { system: 'discord' })
  try {
    return (await files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
  }
  // Addresses expire after a day; the message has a new one.
  const current = (await api.message(channel, message)).attachments?.find(({ id }) => id === attachment)
  if (!current)
    throw new UpstreamFailure('discord', 'discord no longer has the file', { reason: 'not_found', retry: 'never' })
  return (await files.open(current.url, { signal, headers: { accept: '*/*' } })).chunks()
}

export default defineAdapter({
  config: DiscordConfig,
  capabilities: {
    dialect: 'discord',
    maxLength: 2000,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 1200 },
    typing: { repeatMs: 8000 },
    threads: true,
    replies: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 10_000_000 },
    idempotentSend: true,
    rate: { perChat: { perSecond: 1, burst: 5 }, overall: { perSecond: 45, burst: 45 } },
  },
  // The gateway asks for a heartbeat about every 41 seconds.
  silenceMs: 100_000,
  open,
  probe: async (link) => {
    const me = await new DiscordApi(link).me()
    return { account: me.username }
  },
})
