import * as v from 'valibot'
import { isoTime, RecentMap, SavedPosition, unlessRefused } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import { PAGE } from './api.ts'
import type { RevoltApi } from './api.ts'
import type { RevoltConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { lowestId, timeOf } from './ulid.ts'
import { Channel, Member, Message, Update, User } from './wire.ts'

const MAX_CHANNELS = 10_000
const MAX_USERS = 2000
const MAX_OWN = 2000
const MAX_WARNINGS = 100
/** Messages can become visible in another order than their ids say: what was read already is dropped as a duplicate. */
const OVERLAP_MS = 10_000

/** Passes on messages: those of the events, and those that were written while there were none. */
export class RevoltEvents {
  readonly #link: ChannelLink<RevoltConfig>
  readonly #api: RevoltApi
  readonly #botId: string
  readonly #position: SavedPosition
  readonly #channels = new RecentMap<string, Channel>(MAX_CHANNELS)
  readonly #users = new RecentMap<string, User>(MAX_USERS)
  /** Messages of the bot: an answer to one is an answer to the bot. */
  readonly #own = new RecentMap<string, true>(MAX_OWN)
  #since = 0
  /** What was written up to this time is history. */
  #start = 0
  /** By channel: what was left out. */
  readonly #warnings = new RecentMap<string, string>(MAX_WARNINGS)

  constructor(link: ChannelLink<RevoltConfig>, api: RevoltApi, botId: string) {
    this.#link = link
    this.#api = api
    this.#botId = botId
    this.#position = new SavedPosition(link, 'since')
  }

  noteOwn(id: string): void {
    this.#own.set(id, true)
  }

  noteChannel(raw: unknown): void {
    const channel = v.safeParse(Channel, raw)
    if (channel.success) this.#channels.set(channel.output._id, channel.output)
  }

  forgetChannel(raw: unknown): void {
    const changed = v.safeParse(v.object({ id: v.string() }), raw)
    if (changed.success) this.#channels.delete(changed.output.id)
  }

  /** Reads what was written since the last message that was dealt with. The first time there is nothing to read. */
  async catchUp(listed: readonly unknown[]): Promise<void> {
    const channels = listed.flatMap((raw) => (v.is(Channel, raw) ? [v.parse(Channel, raw)] : []))
    for (const channel of channels) this.#channels.set(channel._id, channel)
    const newest = Math.max(0, ...channels.map(({ last_message_id: last }) => timeOf(last ?? '')))
    const saved = await this.#position.read()
    if (saved === undefined) {
      this.#start = this.#since = newest
      return this.#position.write(this.#saved())
    }
    const [since = 0, start = 0] = saved.split(' ').map(Number)
    this.#since = Math.max(this.#since, since)
    this.#start = start
    const from = Math.max(this.#since - OVERLAP_MS, start)
    let last = this.#since
    for (const channel of channels)
      if (timeOf(channel.last_message_id ?? '') > from && this.#isRead(channel))
        last = Math.max(last, await this.#readChannel(channel, from))
    // Only now: a connection that ends in between reads all channels again.
    this.#advance(last)
  }

  /** A new message. Settles when it is durable. */
  async message(raw: unknown): Promise<void> {
    const message = v.safeParse(Message, raw)
    if (!message.success) return this.#link.log.warn('Revolt sent a message in a form that cannot be read')
    await this.#receive(message.output)
    this.#advance(timeOf(message.output._id))
  }

  /** A change, which is an edit if its time is set. It does not tell whose message it is. */
  async update(raw: unknown): Promise<void> {
    const update = v.safeParse(Update, raw)
    if (!update.success || update.output.data.edited == null || update.output.data.content == null) return
    const { id, channel } = update.output
    if (this.#own.has(id)) return
    const message = await unlessRefused(this.#api.message(channel, id))
    if (message) await this.#receive(message, true)
  }

  get warnings(): readonly string[] {
    return [...this.#warnings.values()]
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }

  /** Returns the time of the newest message. */
  async #readChannel({ _id: id }: Channel, from: number): Promise<number> {
    const limit = this.#link.config.catch_up_messages
    let after = lowestId(from)
    for (let read = 0; ;) {
      const listed = await unlessRefused(this.#api.messagesAfter(id, after))
      // The bot may not read the history of this channel.
      if (!listed) return 0
      for (const raw of listed.users) if (v.is(User, raw)) this.#users.set(raw._id, v.parse(User, raw))
      const members = new Map(
        listed.members.flatMap((raw) => (v.is(Member, raw) ? [[raw._id?.user, raw] as const] : [])),
      )
      for (const message of listed.messages.flatMap((raw) => this.#parse(raw))) {
        if (timeOf(message._id) <= from) continue
        if (read++ === limit) return this.#leaveOut(id, limit, after)
        await this.#receive(message, false, members.get(message.author))
        after = message._id
      }
      if (listed.messages.length < PAGE) return timeOf(after)
    }
  }

  #parse(raw: unknown): readonly Message[] {
    const message = v.safeParse(Message, raw)
    if (message.success) return [message.output]
    this.#link.log.warn('Revolt listed a message in a form that cannot be read')
    return []
  }

  #leaveOut(channel: string, limit: number, after: string): number {
    const last = timeOf(after)
    const warning =
      `Of the messages that were written in channel ${channel} meanwhile, the oldest ${limit} were read, and those after ` +
      `${isoTime(last)} were not: catch_up_messages of the account is the limit`
    this.#warnings.set(channel, warning)
    this.#link.log.warn(`Revolt: ${warning}`)
    return last
  }

  async #receive(message: Message, isEdit = false, member?: Member): Promise<void> {
    const context = {
      botId: this.#botId,
      ignoreBots: this.#link.config.ignore_bots,
      member,
      isReplyToBot: message.replies.some((id) => this.#own.has(id)),
    }
    if (message.author === this.#botId) this.noteOwn(message._id)
    // What is nobody's message costs no request.
    if (!decodeMessage(message, { ...context, isReplyToBot: true })) return
    const channel = await this.#channelOf(message.channel)
    if (!channel || !this.#isRead(channel)) return
    const user = message.user ?? (message.webhook ? undefined : await this.#userOf(message.author))
    const decoded = decodeMessage(message, { ...context, channel, user }, isEdit)
    if (decoded) await this.#link.receive(decoded)
  }

  #advance(time: number): void {
    if (time <= this.#since) return
    this.#since = time
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return `${this.#since} ${this.#start}`
  }

  #isRead({ server }: Channel): boolean {
    const { allowed_servers: allowed } = this.#link.config
    return server == null || allowed.length === 0 || allowed.includes(server)
  }

  async #channelOf(id: string): Promise<Channel | undefined> {
    const known = this.#channels.get(id)
    if (known) return known
    const channel = await unlessRefused(this.#api.channel(id))
    if (channel) this.#channels.set(id, channel)
    return channel
  }

  async #userOf(id: string): Promise<User | undefined> {
    const known = this.#users.get(id)
    if (known) return known
    const user = await unlessRefused(this.#api.user(id))
    if (user) this.#users.set(id, user)
    return user
  }
}
