import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { GuildedApi } from './api.ts'
import type { GuildedConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { MessageEvent } from './wire.ts'
import type { Member, Message, User } from './wire.ts'

const MAX_MEMBERS = 2000
const MAX_OWN = 2000

/** Turns the events of the server into messages. */
export class GuildedEvents {
  readonly #link: ChannelLink<GuildedConfig>
  readonly #api: GuildedApi
  readonly #bot: User
  readonly #members = new RecentMap<string, Member>(MAX_MEMBERS)
  /** Messages of the bot: an answer to one is an answer to the bot. */
  readonly #own = new RecentMap<string, true>(MAX_OWN)

  constructor(link: ChannelLink<GuildedConfig>, api: GuildedApi, bot: User) {
    this.#link = link
    this.#api = api
    this.#bot = bot
  }

  noteOwn(id: string): void {
    this.#own.set(id, true)
  }

  /** Settles when the message is durable. */
  async dispatch(type: string | undefined, data: unknown): Promise<void> {
    if (type !== 'ChatMessageCreated' && type !== 'ChatMessageUpdated') return
    const event = v.safeParse(MessageEvent, data)
    if (!event.success) return this.#link.log.warn('Guilded sent a message in a form that cannot be read')
    const { message, serverId } = event.output
    const isEdit = type === 'ChatMessageUpdated'
    await this.#receive({ ...message, serverId: message.serverId ?? serverId }, isEdit)
  }

  async #receive(message: Message, isEdit: boolean): Promise<void> {
    const context = {
      bot: this.#bot,
      ignoreBots: this.#link.config.ignore_bots,
      isReplyToBot: message.replyMessageIds.some((id) => this.#own.has(id)),
    }
    // What is nobody's message costs no request.
    if (!decodeMessage(message, context, isEdit)) return
    const member = message.createdByWebhookId == null ? await this.#memberOf(message) : undefined
    const decoded = decodeMessage(message, { ...context, member }, isEdit)
    if (decoded) await this.#link.receive(decoded)
  }

  async #memberOf({ serverId, createdBy: id }: Message): Promise<Member | undefined> {
    const key = `${serverId ?? ''} ${id}`
    const known = this.#members.get(key)
    if (known) return known
    try {
      const member = await this.#api.member(serverId ?? undefined, id)
      this.#members.set(key, member)
      return member
    } catch (error) {
      // Somebody who left has no name any more; what may work later is tried again with the event.
      if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
      return undefined
    }
  }
}
