import type { ChannelAdapter, InboundMessage } from 'svc/channels'
import type { Logger } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'
import { isCommandText } from '../commands/text.ts'
import { deliveryKey } from '../inbox/schema.ts'
import type { Router } from '../routing/router.ts'
import { readCode } from './pairing.ts'
import type { Pairing } from './pairing.ts'
import { withDefaults } from './defaults.ts'
import { MentionPatterns } from './mention-patterns.ts'
import { standingOf } from './people.ts'
import type { Standing } from './people.ts'
import { RecentIds } from './recent-ids.ts'
import { SlidingWindow } from './sliding-window.ts'

export interface AdmissionDeps {
  readonly pairing: Pick<Pairing, 'find' | 'redeem'>
  readonly router: Pick<Router, 'isFollowed'>
  readonly now: () => number
  readonly log: Logger
  readonly settings: { readonly message_chars: number; readonly notices_per_minute: number }
}
/** What becomes of a message. `notice` is for its sender. */
export type Admission =
  | { readonly verdict: 'accepted'; readonly standing: Standing }
  | { readonly verdict: 'refused'; readonly reason: RefusalReason; readonly notice?: string }
export type RefusalReason =
  | 'bot'
  | 'duplicate'
  | 'stranger'
  | 'pairing'
  | 'policy'
  | 'chat'
  | 'rate_limit'
  | 'empty'
  | 'too_long'

const refused = (reason: RefusalReason, notice?: string): Admission =>
  notice === undefined ? { verdict: 'refused', reason } : { verdict: 'refused', reason, notice }

/** Decides by rules of the operator, in memory, before a message costs anything. */
export class AdmissionControl {
  readonly #deps: AdmissionDeps
  readonly #recent = new RecentIds()
  readonly #rates: SlidingWindow
  readonly #patterns: MentionPatterns
  constructor(deps: AdmissionDeps) {
    this.#deps = deps
    this.#patterns = new MentionPatterns(deps.log)
    this.#rates = new SlidingWindow(deps.now)
  }

  async decide(account: Account, adapter: ChannelAdapter, message: InboundMessage): Promise<Admission> {
    const { sender } = message
    // What an adapter passes on of a bot, although the operator did not let bots in, is refused here.
    if (sender.isBot === true && account.config['ignore_bots'] !== false) return refused('bot')
    const key = keyOf(account, message)
    if (message.isEdit !== true && this.#recent.has(key)) return refused('duplicate')
    const paired = await this.#deps.pairing.find(account, sender.id)
    const standing = standingOf(account, adapter, sender, paired)
    const pairing = await this.#pair(account, message, standing)
    if (pairing) return pairing
    if (standing === 'nobody') return refused('stranger', this.#introduce(account, message))
    const policy = await this.#checkPolicy(account, message, standing)
    if (policy) return policy
    return this.#checkLimits(account, message) ?? { verdict: 'accepted', standing }
  }
  /** The message is stored, or is never to be. */
  remember(account: Account, message: InboundMessage): void {
    this.#recent.add(keyOf(account, message))
  }

  async #pair(account: Account, { chat, text, sender }: InboundMessage, standing: Standing) {
    const found = chat.kind === 'direct' ? readCode(text) : undefined
    if (!found || (standing !== 'nobody' && !found.isExplicit)) return undefined
    const outcome = await this.#deps.pairing.redeem(account, sender, found.code)
    if (outcome === 'limited')
      return refused('pairing', this.#once(account, sender.id, 'Too many wrong codes. Try later.'))
    if (outcome === 'wrong') return refused('pairing', 'This pairing code is wrong, was used or has expired.')
    const role = outcome.role === 'operator' ? ' as an operator' : ''
    return refused('pairing', `You are paired${role}. Write a message to begin, or /help.`)
  }
  /** Strangers learn once how to get in, in a chat of their own. */
  #introduce(account: Account, { chat, sender }: InboundMessage): string | undefined {
    if (chat.kind !== 'direct' || withDefaults(account.settings).dm_policy === 'ignore') return undefined
    return this.#once(
      account,
      sender.id,
      `This bot does not know you (your id is ${sender.id}). ` +
        'Ask its operator for a pairing code and send the code here.',
    )
  }
  #once(account: Account, senderId: string, notice: string): string | undefined {
    if (!this.#rates.notify(`told\u0000${placeOf(account)}\u0000${senderId}`)) return undefined
    const limit = this.#deps.settings.notices_per_minute
    return this.#rates.take(`notices\u0000${placeOf(account)}`, limit) ? notice : undefined
  }

  async #checkPolicy(account: Account, message: InboundMessage, standing: Standing): Promise<Admission | undefined> {
    const { dm_policy: dm, group_policy: group, allowed_chats: chats } = withDefaults(account.settings)
    if (message.chat.kind === 'direct') {
      if (dm === 'ignore' || (dm === 'allowed_only' && standing === 'anybody')) return refused('policy')
      return undefined
    }
    if (chats.length > 0 && !chats.includes('*') && !chats.includes(message.chat.id)) return refused('chat')
    if (group === 'ignore') return refused('policy')
    if (group === 'commands_only' && !isCommandText(message)) return refused('policy')
    if (group === 'mention_only' && !(await this.#isMeant(account, message, standing))) return refused('policy')
    return undefined
  }
  async #isMeant(account: Account, message: InboundMessage, standing: Standing): Promise<boolean> {
    if (message.mentionsBot || (await this.#patterns.match(account.settings, message.text))) return true
    return this.#deps.router.isFollowed(account, message, standing)
  }

  #checkLimits(account: Account, message: InboundMessage): Admission | undefined {
    const { rate_limit_per_user: perUser, rate_limit_per_minute: perAccount } = withDefaults(account.settings)
    const place = placeOf(account)
    const person = `user\u0000${place}\u0000${message.sender.id}`
    if (!this.#rates.take(person, perUser)) {
      const notice = `Too many messages: at most ${perUser} a minute are answered. Wait a little and send it again.`
      return refused('rate_limit', this.#rates.notify(person) ? notice : undefined)
    }
    if (!this.#rates.take(`account\u0000${place}`, perAccount)) {
      const notice = 'Too many messages at the moment. Wait a little and send it again.'
      return refused('rate_limit', this.#rates.notify(person) ? notice : undefined)
    }
    if (message.text.trim() === '' && message.attachments.length === 0) return refused('empty')
    const { message_chars: maxChars } = this.#deps.settings
    if (message.text.length > maxChars)
      return refused('too_long', `This message is longer than ${maxChars} characters and was not read. Send less.`)
    return undefined
  }
}

function placeOf({ channel, id }: Account): string {
  return `${channel}\u0000${id}`
}
function keyOf(account: Account, message: InboundMessage): string {
  return `${placeOf(account)}\u0000${deliveryKey(message)}`
}
