import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ChannelLink, Destination, OutboundMessage, SentMessage } from 'svc/channels'
import type { DiscordConfig } from './config.ts'
import { encodeEdit, encodeForm, encodeMessage } from './encode.ts'
import { findError, globalPauseOf } from './errors.ts'
import { Attachment, Channel, GatewayBot, SentId, User } from './wire.ts'
import type { Interaction } from './wire.ts'

const DEFERRED_UPDATE = 6
const USER_AGENT = 'DiscordBot (https://www.npmjs.com/package/svc, 1.0)'
const Files = v.object({ attachments: v.nullish(v.array(Attachment), []) })

/** The requests of one bot. */
export class DiscordApi {
  readonly #client: ApiClient
  readonly #link: ChannelLink<DiscordConfig>
  readonly #base: string
  /** The end of a pause that Discord asked for on all routes of the bot. */
  #pausedUntil = 0

  constructor(link: ChannelLink<DiscordConfig>) {
    this.#link = link
    this.#base = trimSlashes(link.config.base_url)
    this.#client = new ApiClient(link, {
      system: 'discord',
      findError: (answer) => this.#findError(answer),
      secrets: [link.config.token],
      authenticate: () => {
        this.#checkPause()
        return { authorization: `Bot ${link.config.token}`, 'user-agent': USER_AGENT }
      },
    })
  }

  me = () => this.#client.json(`${this.#base}/users/@me`, {}, User, 'the bot')

  gateway = () => this.#client.json(`${this.#base}/gateway/bot`, {}, GatewayBot, 'the address of the gateway')

  channel = (id: string) => this.#client.json(this.#channel(id), {}, Channel, 'a channel')

  message = (channel: string, id: string) => this.#client.json(this.#message(channel, id), {}, Files, 'a message')

  /** Messages of a channel, the newest first: the last ones, or those before one of them. */
  messagesBefore(channel: string, before: string | undefined, limit: number): Promise<readonly unknown[]> {
    const query = new URLSearchParams({ limit: String(limit), ...(before !== undefined && { before }) })
    const url = `${this.#channel(channel)}/messages?${query.toString()}`
    return this.#client.json(url, {}, v.array(v.unknown()), 'the messages of a channel')
  }

  async create(message: OutboundMessage): Promise<SentMessage> {
    const body =
      message.attachments.length === 0 ? { json: encodeMessage(message) } : { form: await encodeForm(message) }
    const url = `${this.#channel(channelOf(message.to))}/messages`
    const { id } = await this.#client.json(url, { method: 'POST', ...body }, SentId, 'the sent message')
    return { id }
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const url = this.#message(channelOf(message.to), id)
    await this.#client.json(url, { method: 'PATCH', json: encodeEdit(message) }, SentId, 'the edited message')
  }

  async delete(id: string, to: Destination): Promise<void> {
    await ignoreMissing(this.#client.open(this.#message(channelOf(to), id), { method: 'DELETE' }))
  }

  async typing(to: Destination): Promise<void> {
    await this.#client.open(`${this.#channel(channelOf(to))}/typing`, { method: 'POST' })
  }

  async react(to: Destination, messageId: string, emoji: string): Promise<void> {
    const message = this.#message(channelOf(to), messageId)
    await this.#client.open(`${message}/reactions/${encodeURIComponent(emoji)}/@me`, { method: 'PUT' })
  }

  /** Tells Discord that the press of a button was taken, which it wants to hear within three seconds. */
  async acknowledge({ id, token }: Interaction): Promise<void> {
    const url = `${this.#base}/interactions/${encodeURIComponent(id)}/${encodeURIComponent(token)}/callback`
    await this.#client.open(url, { json: { type: DEFERRED_UPDATE } })
  }

  /** What Discord refuses during a pause counts against the bot, so nothing is sent. */
  #checkPause(): void {
    const leftMs = this.#pausedUntil - this.#link.now()
    if (leftMs <= 0) return
    throw new UpstreamFailure('discord', 'discord limits all requests of this bot for now', {
      reason: 'rate_limit',
      retry: 'later',
      retryAfterSecs: leftMs / 1000,
    })
  }

  #findError(answer: ApiAnswer): ApiError | undefined {
    const pauseSecs = globalPauseOf(answer)
    if (pauseSecs !== undefined) this.#pausedUntil = Math.max(this.#pausedUntil, this.#link.now() + pauseSecs * 1000)
    return findError(answer)
  }

  #channel(id: string): string {
    return `${this.#base}/channels/${encodeURIComponent(id)}`
  }

  #message(channel: string, id: string): string {
    return `${this.#channel(channel)}/messages/${encodeURIComponent(id)}`
  }
}

/** A thread is a channel: messages are sent to it as to any other. */
function channelOf({ chatId, threadId }: Destination): string {
  return threadId ?? chatId
}
