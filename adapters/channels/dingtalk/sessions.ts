import { RecentMap } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { DingTalkConfig } from './config.ts'
import type { RobotMessage } from './wire.ts'

const MAX_CHATS = 2000
/** An address is not used in the last minute of its time. */
const MARGIN_MS = 60_000

interface Session {
  readonly url: string
  readonly expiresAt: number
}

/**
 * The addresses by which a chat can be answered for an hour and a half after a message in it. They are credentials, so
 * they are kept in memory only: without them, as after a restart, answers go the other way.
 */
export class Sessions {
  readonly #link: Pick<ChannelLink<DingTalkConfig>, 'now' | 'config' | 'log'>
  readonly #sessions = new RecentMap<string, Session>(MAX_CHATS)

  constructor(link: Pick<ChannelLink<DingTalkConfig>, 'now' | 'config' | 'log'>) {
    this.#link = link
  }

  /** Keeps the address that came with a message of this chat. */
  note(chatId: string, { sessionWebhook: url, sessionWebhookExpiredTime: expiresAt }: RobotMessage): void {
    if (!url || expiresAt == null) return
    if (this.#isOfPlatform(url)) this.#sessions.set(chatId, { url, expiresAt })
    else this.#link.log.warn('DingTalk named an address for answers that is not its own: it is not used')
  }

  find(chatId: string): string | undefined {
    const session = this.#sessions.get(chatId)
    return session && this.#link.now() < session.expiresAt - MARGIN_MS ? session.url : undefined
  }

  forget(chatId: string): void {
    this.#sessions.delete(chatId)
  }

  #isOfPlatform(text: string): boolean {
    const url = URL.parse(text)
    if (!url) return false
    const isDingTalk = url.protocol === 'https:' && /(?:^|\.)dingtalk\.com$/.test(url.hostname)
    return isDingTalk || url.origin === new URL(this.#link.config.base_url).origin
  }
}
