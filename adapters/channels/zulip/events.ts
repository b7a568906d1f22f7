import * as v from 'valibot'
import { pollInBackground, RecentMap, SavedPosition, unlessRefused } from 'svc/channels'
import type { Background, ChannelLink, InboundMessage } from 'svc/channels'
import type { ZulipApi } from './api.ts'
import type { ZulipConfig } from './config.ts'
import { channelOf, decodeMessage } from './decode.ts'
import { Changed, Listed, Posted } from './wire.ts'
import type { Event, Message, User } from './wire.ts'

const MAX_SENDERS = 2000
/** The bots that Zulip itself writes with are of no organization. Source: zproject/default_settings.py of zulip/zulip */
const SYSTEM_REALM = 'zulipinternal'
const SYSTEM_BOT = /^(?:notification-bot|welcome-bot|emailgateway)@zulip\.com$/
/** Pages of 200 messages. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 50

/** Passes on messages: those of the event queue, and those that were written while there was none. */
export class ZulipEvents {
  readonly #link: ChannelLink<ZulipConfig>
  readonly #api: ZulipApi
  readonly #bot: User
  readonly #position: SavedPosition
  /** Whether they are bots. */
  readonly #senders = new RecentMap<number, boolean>(MAX_SENDERS)
  #last = 0

  constructor(link: ChannelLink<ZulipConfig>, api: ZulipApi, bot: User) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#position = new SavedPosition(link, 'last')
  }

  /** Registers a queue and reads what was missed; then listens until the connection ends. */
  async open(): Promise<Background> {
    // Before the past is read, so that nothing falls between the two: what is in both is dropped as a duplicate.
    const queue = await this.#api.register()
    await this.#catchUp()
    let lastEventId = queue.last_event_id
    const background = pollInBackground(this.#link, async (signal) => {
      const { events } = await this.#api.events(queue, lastEventId, signal)
      for (const event of events) {
        await this.#receiveEvent(event)
        lastEventId = Math.max(lastEventId, event.id)
      }
      return events.length > 0
    })
    return { ...background, closed: this.#flushAfter(background), [Symbol.asyncDispose]: () => this.#end(background) }
  }

  async #flushAfter(background: Background): Background['closed'] {
    const end = await background.closed
    try {
      await this.#position.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Zulip could not be saved', { error })
    }
    return end
  }
  async #end(background: Background): Promise<void> {
    await background[Symbol.asyncDispose]()
    await this.#position.flush()
  }

  /** Reads what was written since the last message that was dealt with. The first time there is nothing to read. */
  async #catchUp(): Promise<void> {
    const saved = await this.#position.read()
    if (saved === undefined) {
      const { messages } = await this.#api.messages('newest')
      this.#last = Math.max(0, ...messages.flatMap((raw) => (v.is(Listed, raw) ? [raw.id] : [])))
      return this.#position.write(String(this.#last))
    }
    this.#last = Number(saved)
    for (let page = 0; page < MAX_PAGES; page++) {
      const before = this.#last
      const { messages, found_newest: isEnd } = await this.#api.messages(before)
      for (const raw of messages) await this.#receiveListed(raw)
      if (isEnd || this.#last === before) return
    }
    this.#link.log.warn('There were too many messages on Zulip meanwhile: those after message', { id: this.#last })
  }

  async #receiveListed(raw: unknown): Promise<void> {
    const message = v.safeParse(Listed, raw)
    if (message.success) return this.#receive(message.output, message.output.flags, false)
    this.#link.log.warn('Zulip listed a message in a form that cannot be read')
  }

  async #receiveEvent(event: Event): Promise<void> {
    if (event.type === 'message') {
      const posted = v.safeParse(Posted, event)
      if (posted.success) return this.#receive(posted.output.message, posted.output.flags, false)
      this.#link.log.warn('Zulip sent a message in a form that cannot be read')
    }
    if (event.type === 'update_message') await this.#receiveChange(event)
  }

  /** An event of a change does not tell whose message it is. */
  async #receiveChange(event: Event): Promise<void> {
    const changed = v.safeParse(Changed, event)
    if (!changed.success || changed.output.content == null || changed.output.rendering_only) return
    if (changed.output.user_id === this.#bot.user_id) return
    const message = await unlessRefused(this.#api.message(changed.output.message_id))
    if (message) await this.#receive(message, message.flags, true)
  }

  async #receive(message: Message, flags: readonly string[], isEdit: boolean): Promise<void> {
    const decoded = this.#isRead(message) ? decodeMessage(message, { bot: this.#bot, flags, isEdit }) : undefined
    if (decoded) await this.#link.receive((await this.#isBot(message)) ? ofBot(decoded) : decoded)
    if (isEdit || message.id <= this.#last) return
    this.#last = message.id
    this.#position.set(String(message.id))
  }

  /** A message does not tell. Whom the bot may not look up is a person. */
  async #isBot({ sender_id: id, sender_email: email, sender_realm_str: realm }: Message): Promise<boolean> {
    if (realm === SYSTEM_REALM || SYSTEM_BOT.test(email)) return true
    const known = this.#senders.get(id)
    if (known !== undefined) return known
    const isBot = (await unlessRefused(this.#api.isBot(id))) ?? false
    this.#senders.set(id, isBot)
    return isBot
  }

  #isRead(message: Message): boolean {
    const { streams } = this.#link.config
    const channel = channelOf(message)
    return channel === undefined || streams.length === 0 || streams.includes(channel)
  }
}

const ofBot = (message: InboundMessage): InboundMessage => ({ ...message, sender: { ...message.sender, isBot: true } })
