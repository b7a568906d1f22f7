import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { DiscordApi } from './api.ts'
import type { CatchUp } from './catch-up.ts'
import type { DiscordConfig } from './config.ts'
import { decodeMessage, decodePress } from './decode.ts'
import { Interaction, Message } from './wire.ts'
import type { Channel } from './wire.ts'

const MAX_CHANNELS = 1000
const MESSAGE_COMPONENT = 3

/** Turns the events of the gateway into messages. */
export class Events {
  readonly #link: ChannelLink<DiscordConfig>
  readonly #api: DiscordApi
  readonly #catchUp: CatchUp
  readonly #botId: string
  readonly #channels = new RecentMap<string, Channel>(MAX_CHANNELS)

  constructor(link: ChannelLink<DiscordConfig>, api: DiscordApi, catchUp: CatchUp, botId: string) {
    this.#link = link
    this.#api = api
    this.#catchUp = catchUp
    this.#botId = botId
  }

  dispatch = async (type: string, data: unknown): Promise<void> => {
    if (type === 'MESSAGE_CREATE') await this.#receive(data, false)
    else if (type === 'MESSAGE_UPDATE') await this.#receive(data, true)
    else if (type === 'INTERACTION_CREATE') await this.#press(data)
    else if (type === 'CHANNEL_UPDATE' || type === 'THREAD_UPDATE' || type === 'CHANNEL_DELETE') this.#change(data)
  }

  /** Reads what was written while there was no session. */
  async catchUp(): Promise<void> {
    await this.#catchUp.run((message) => this.#receive(message, false))
  }

  async #receive(data: unknown, isEdit: boolean): Promise<void> {
    const parsed = v.safeParse(Message, data)
    if (!parsed.success) {
      // An update may be of the preview alone.
      if (!isEdit) this.#link.log.warn('Discord sent a message in a form that cannot be read')
      return
    }
    if (!this.#isAllowed(parsed.output.guild_id)) return
    const isRead = await this.#pass(parsed.output, isEdit)
    const { channel_id: channel, guild_id: guild, id } = parsed.output
    if (!isEdit) this.#catchUp.note({ channel, guild, id }, isRead)
  }

  /** Returns whether it was the message of a person. */
  async #pass(received: Message, isEdit: boolean): Promise<boolean> {
    const context = { botId: this.#botId, ignoreBots: this.#link.config.ignore_bots }
    // What is nobody's message costs no request for its channel.
    if (!decodeMessage(received, context, isEdit)) return false
    const channel = await this.#channelOf(received)
    const message = decodeMessage(received, { ...context, channel }, isEdit)
    if (message) await this.#link.receive(message)
    return message !== undefined
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
