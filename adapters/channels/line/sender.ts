import * as v from 'valibot'
import { RecentMap } from 'svc/channels'
import type { ChannelLink, Destination, OutboundMessage, SentMessage } from 'svc/channels'
import type { LineApi } from './api.ts'
import type { LineConfig } from './config.ts'
import { encodeText } from './encode.ts'
import { AlreadySent, isSpentToken } from './errors.ts'
import { ReplyTokens } from './reply-tokens.ts'
import { ReplyContext } from './wire.ts'

const MAX_OWN = 1000
/** Ids of people begin with it; only their chats show the animation. */
const USER = 'U'

/** Sends messages: as a reply while there is a token for one, which is free, and else as a push. */
export class LineSender {
  readonly #link: ChannelLink<LineConfig>
  readonly #api: LineApi
  readonly #tokens: ReplyTokens
  readonly #own = new RecentMap<string, true>(MAX_OWN)

  constructor(link: ChannelLink<LineConfig>, api: LineApi) {
    this.#link = link
    this.#api = api
    this.#tokens = new ReplyTokens(link)
  }

  /** Whether this is one of the messages that were sent lately. */
  isOwn(id: string): boolean {
    return this.#own.has(id)
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const parsed = v.safeParse(ReplyContext, message.to.replyContext)
    const context = parsed.success ? parsed.output : undefined
    const messages = [encodeText(message, context)]
    const sent = (await this.#reply(message, messages, context)) ?? (await this.#push(message, messages))
    this.#own.set(sent.id, true)
    return sent
  }

  async typing({ chatId }: Destination): Promise<void> {
    if (chatId.startsWith(USER)) await this.#api.showLoading(chatId)
  }

  /** `undefined` when there is no token that this message may use. */
  async #reply(
    { id }: OutboundMessage,
    messages: readonly object[],
    { replyToken, replyBy }: Partial<ReplyContext> = {},
  ): Promise<SentMessage | undefined> {
    if (replyToken === undefined || replyBy === undefined || replyBy <= this.#link.now()) return undefined
    const claim = await this.#tokens.claim(replyToken, replyBy, id)
    if (claim === 'taken') return undefined
    try {
      return { id: await this.#api.reply(replyToken, messages) }
    } catch (error) {
      if (!isSpentToken(error)) throw error
      // The token is not too old: if this message claimed it, an earlier attempt has used it.
      if (claim === 'again') return { id: '', wasSentBefore: true }
      await this.#tokens.giveUp(replyToken)
      return undefined
    }
  }

  async #push({ id, to }: OutboundMessage, messages: readonly object[]): Promise<SentMessage> {
    try {
      return { id: await this.#api.push(to.chatId, messages, id) }
    } catch (error) {
      if (error instanceof AlreadySent) return { id: error.messageId, wasSentBefore: true }
      throw error
    }
  }
}
