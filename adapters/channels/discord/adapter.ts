import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, defineAdapter, RecentMap, trimSlashes } from 'svc/channels'
import type { ChannelConnection, ChannelLink, Destination, OutboundMessage, SentMessage } from 'svc/channels'
import { DiscordConfig } from './config.ts'
import { decodeMessage, decodePress } from './decode.ts'
import { encodeEdit, encodeForm, encodeMessage } from './encode.ts'
import { findError } from './errors.ts'
import { Gateway } from './gateway.ts'
import { SavedSession } from './session.ts'
import { Attachment, Channel, GatewayBot, Interaction, Message, SentId, User } from './wire.ts'

type Link = ChannelLink<DiscordConfig>

const MAX_CHANNELS = 1000
const DEFERRED_UPDATE = 6
const MESSAGE_COMPONENT = 3
const USER_AGENT = 'DiscordBot (https://www.npmjs.com/package/svc, 1.0)'

/** The requests of one bot. */
class DiscordApi {
  readonly #client: ApiClient
  readonly #base: string

  constructor(link: Link) {
    this.#base = trimSlashes(link.config.base_url)
    this.#client = new ApiClient(link, {
      system: 'discord',
      findError,
      secrets: [link.config.token],
      authenticate: () => ({ authorization: `Bot ${link.config.token}`, 'user-agent': USER_AGENT }),
    })
  }

  me = () => this.#client.json(`${this.#base}/users/@me`, {}, User, 'the bot')

  gateway = () => this.#client.json(`${this.#base}/gateway/bot`, {}, GatewayBot, 'the address of the gateway')

  channel = (id: string) => this.#client.json(this.#channel(id), {}, Channel, 'a channel')

  message = (channel: string, id: string) =>
    this.#client.json(`${this.#channel(channel)}/messages/${encodeURIComponent(id)}`, {}, Files, 'a message')

  async create(message: OutboundMessage): Promise<SentMessage> {
    const body =
      message.attachments.length === 0 ? { json: encodeMessage(message) } : { form: await encodeForm(message) }
    const url = `${this.#channel(channelOf(message.to))}/messages`
    const { id } = await this.#client.json(url, { method: 'POST', ...body }, SentId, 'the sent message')
    return { id }
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const url = `${this.#channel(channelOf(message.to))}/messages/${encodeURIComponent(id)}`
    await this.#client.open(url, { method: 'PATCH', json: encodeEdit(message) })
  }

  async typing(to: Destination): Promise<void> {
    await this.#client.open(`${this.#channel(channelOf(to))}/typing`, { method: 'POST' })
  }

  async react(to: Destination, messageId: string, emoji: string): Promise<void> {
    const message = `${this.#channel(channelOf(to))}/messages/${encodeURIComponent(messageId)}`
    await this.#client.open(`${message}/reactions/${encodeURIComponent(emoji)}/@me`, { method: 'PUT' })
  }

  /** Tells Discord that the press of a button was taken, which it wants to hear within three seconds. */
  async acknowledge({ id, token }: Interaction): Promise<void> {
    const url = `${this.#base}/interactions/${encodeURIComponent(id)}/${encodeURIComponent(token)}/callback`
    await this.#client.open(url, { json: { type: DEFERRED_UPDATE } })
  }

  #channel(id: string): string {
    return `${this.#base}/channels/${encodeURIComponent(id)}`
  }
}

const Files = v.object({ attachments: v.nullish(v.array(Attachment), []) })

/** A thread is a channel: messages are sent to it as to any other. */
function channelOf({ chatId, threadId }: Destination): string {
  return threadId ?? chatId
}

/** Turns the events of the gateway into messages. */
class Events {
  readonly #link: Link
  readonly #api: DiscordApi
  readonly #botId: string
  readonly #channels = new RecentMap<string, Channel>(MAX_CHANNELS)

  constructor(link: Link, api: DiscordApi, botId: string) {
    this.#link = link
    this.#api = api
    this.#botId = botId
  }

  dispatch = async (type: string, data: unknown): Promise<void> => {
    if (type === 'MESSAGE_CREATE') await this.#receive(data, false)
    else if (type === 'MESSAGE_UPDATE') await this.#receive(data, true)
    else if (type === 'INTERACTION_CREATE') await this.#press(data)
    else if (type === 'CHANNEL_UPDATE' || type === 'THREAD_UPDATE' || type === 'CHANNEL_DELETE') this.#change(data)
  }

  async #receive(data: unknown, isEdit: boolean): Promise<void> {
    const parsed = v.safeParse(Message, data)
    if (!parsed.success) {
      // An update may be of the preview alone.
      if (!isEdit) this.#link.log.warn('Discord sent a message in a form that cannot be read')
      return
    }
    if (!this.#isAllowed(parsed.output.guild_id)) return
    const { ignore_bots: ignoreBots } = this.#link.config
    const context = { botId: this.#botId, ignoreBots }
    // What is nobody's message costs no request for its channel.
    if (!decodeMessage(parsed.output, context, isEdit)) return
    const channel = await this.#channelOf(parsed.output)
    const message = decodeMessage(parsed.output, { ...context, channel }, isEdit)
    if (message) await this.#link.receive(message)
  }

  async #press(data: unknown): Promise<void> {
    const parsed = v.safeParse(Interaction, data)
    if (!parsed.success || parsed.output.type !== MESSAGE_COMPONENT) return
    const press = parsed.output
    if (!this.#isAllowed(press.guild_id) || press.channel_id == null) return
    const channel = await this.#channelOf({ channel_id: press.channel_id, guild_id: press.guild_id })
    const message = decodePress(press, channel, this.#link.now())
    if (!message) return
    await this.#link.receive(message)
    await this.#api.acknowledge(press).catch((error: unknown) => {
      // The press is durable; Discord only shows that nobody answered it in time.
      this.#link.log.warn('Discord did not take the acknowledgement of a button', { error })
    })
  }

  #isAllowed(guild: string | null | undefined): boolean {
    const { allowed_guilds: allowed } = this.#link.config
    return guild == null || allowed.length === 0 || allowed.includes(guild)
  }

  /** Tells threads from chats. Direct messages are neither. */
  async #channelOf(place: { channel_id: string; guild_id?: string | null | undefined }): Promise<Channel | undefined> {
    if (place.guild_id == null) return undefined
    const known = this.#channels.get(place.channel_id)
    if (known) return known
    try {
      const channel = await this.#api.channel(place.channel_id)
      this.#channels.set(channel.id, channel)
      return channel
    } catch (error) {
      // A thread taken for a chat would start another conversation; what may work later is tried again with the event.
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      return undefined
    }
  }

  #change(data: unknown): void {
    const parsed = v.safeParse(v.object({ id: v.string() }), data)
    if (parsed.success) this.#channels.delete(parsed.output.id)
  }
}

async function open(link: Link): Promise<ChannelConnection> {
  const api = new DiscordApi(link)
  const me = await api.me()
  const session = new SavedSession(link)
  await session.load()
  const gateway = new Gateway({
    link,
    session,
    findUrl: async () => (await startableGateway(api)).url,
    dispatch: new Events(link, api, me.id).dispatch,
    random: Math.random,
  })
  await gateway.open()
  return {
    closed: gateway.closed,
    send: (message) => api.create(message),
    edit: (sent, message) => api.edit(sent.id, message),
    typing: (to) => api.typing(to),
    react: (to, messageId, emoji) => api.react(to, messageId, emoji),
    readAttachment: (reference, signal) => readAttachment(link, api, reference, signal),
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
