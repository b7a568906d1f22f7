import { RecentMap } from 'svc/channels'
import type { ChannelLink, Destination } from 'svc/channels'
import type { FeishuApi } from './api.ts'

const MAX_MESSAGES = 1000
const EMOJI = 'Typing'

/**
 * Bots have no typing indicator: while one works on a message it puts a reaction on it, which goes when it has answered.
 */
export class TypingReactions {
  readonly #link: Pick<ChannelLink<unknown>, 'log'>
  readonly #api: FeishuApi
  /** By message: the reaction, and `undefined` once the message is answered. */
  readonly #reactions = new RecentMap<string, Promise<string | undefined>>(MAX_MESSAGES)

  constructor(link: Pick<ChannelLink<unknown>, 'log'>, api: FeishuApi) {
    this.#link = link
    this.#api = api
  }

  async start({ replyContext }: Destination): Promise<void> {
    const messageId = replyContext?.['messageId']
    if (typeof messageId !== 'string' || this.#reactions.has(messageId)) return
    const reaction = this.#api.react(messageId, EMOJI)
    this.#reactions.set(messageId, reaction)
    try {
      await reaction
    } catch (error) {
      this.#reactions.delete(messageId)
      throw error
    }
  }

  /** A reaction that stays is ugly, and no reason to send the answer again. */
  async stop({ replyContext }: Destination): Promise<void> {
    const messageId = replyContext?.['messageId']
    if (typeof messageId !== 'string') return
    const reaction = this.#reactions.get(messageId)
    this.#reactions.set(messageId, Promise.resolve(undefined))
    try {
      const id = await reaction
      if (id !== undefined) await this.#api.removeReaction(messageId, id)
    } catch (error) {
      this.#link.log.debug('The typing reaction could not be taken away', { error })
    }
  }
}
