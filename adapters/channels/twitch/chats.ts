import * as v from 'valibot'
import { pause, runInBackground } from 'svc/channels'
import type { Background, ChannelLink, ConnectionEnd } from 'svc/channels'
import { UpstreamFailure } from 'svc/sdk'
import type { TwitchApi } from './api.ts'
import type { TwitchConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { EventSocket } from './socket.ts'
import { Notification } from './wire.ts'
import type { Account, Frame, User } from './wire.ts'

const HOUR_MS = 3_600_000

/** Reads the chats of the channels. */
export class Chats {
  readonly #link: ChannelLink<TwitchConfig>
  readonly #api: TwitchApi
  readonly #account: Account
  readonly #socket: EventSocket
  /** The channels that are read, by their ids. */
  readonly #channels = new Map<string, User>()
  /** What the operator should know, by the name of the channel. */
  readonly #warnings = new Map<string, string>()
  #checks: Background | undefined

  constructor(link: ChannelLink<TwitchConfig>, api: TwitchApi, account: Account) {
    this.#link = link
    this.#api = api
    this.#account = account
    this.#socket = new EventSocket({
      link,
      subscribe: (sessionId) => this.#subscribe(sessionId),
      receive: (frame) => this.#receive(frame),
      revoked: (reason, id = '') => this.#leave(this.#channels.get(id), reason),
    })
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#socket.closed
  }
  get warnings(): readonly string[] {
    return [...this.#warnings.values()]
  }

  /** Settles when messages arrive. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    await this.#find()
    await this.#socket.open()
    this.#checks = runInBackground(this.#link, (signal) => this.#checkHourly(signal))
  }

  async close(): Promise<void> {
    await this.#checks?.[Symbol.asyncDispose]()
    await this.#socket.close()
  }

  async #find(): Promise<void> {
    const { channels } = this.#link.config
    const names = channels.length === 0 ? [this.#account.login] : channels.map((name) => name.toLowerCase())
    for (const user of await this.#api.users(names)) this.#channels.set(user.id, user)
    const found = new Set([...this.#channels.values()].map(({ login }) => login))
    for (const name of names) if (!found.has(name)) this.#warn(name, `There is no channel ${name} on Twitch`)
    this.#requireOne()
  }

  async #subscribe(sessionId: string): Promise<void> {
    for (const channel of this.#channels.values()) {
      try {
        await this.#api.subscribe(channel.id, this.#account.user_id, sessionId)
      } catch (error) {
        // Such as a channel that has banned the bot.
        if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
        this.#leave(channel, error.message)
      }
    }
    this.#requireOne()
  }

  #leave(channel: User | undefined, reason: string): void {
    if (!channel) return
    this.#channels.delete(channel.id)
    this.#warn(channel.login, `The chat of ${channel.login} is not read: ${reason}`)
  }
  #warn(name: string, warning: string): void {
    this.#warnings.set(name, warning)
    this.#link.log.warn(warning)
  }
  #requireOne(): void {
    if (this.#channels.size > 0) return
    const [reason = 'there is no channel to read'] = this.#warnings.values()
    throw new UpstreamFailure('twitch', reason, { reason: 'invalid_request', retry: 'never' })
  }

  async #receive({ metadata, payload }: Frame): Promise<void> {
    if (metadata.subscription_type !== 'channel.chat.message') return
    const parsed = v.safeParse(Notification, payload)
    if (!parsed.success) {
      this.#link.log.warn('Twitch sent a message in a form that cannot be read')
      return
    }
    const { event } = parsed.output
    if (!this.#channels.has(event.broadcaster_user_id)) return
    const context = { botId: this.#account.user_id, sentAt: metadata.message_timestamp }
    const message = decodeMessage(event, context)
    if (message) await this.#link.receive(message)
  }

  /** Twitch wants to be asked once an hour, so that a token that was taken back is not used. */
  async #checkHourly(signal: AbortSignal): Promise<void> {
    while (await pause(this.#link, HOUR_MS, signal)) {
      try {
        await this.#api.account()
      } catch (error) {
        if (error instanceof UpstreamFailure && error.reason === 'auth')
          return this.#socket.end({ retry: 'never', reason: error.message })
        this.#link.log.warn('Twitch could not be asked whether the token is valid', error)
      }
    }
  }
}
