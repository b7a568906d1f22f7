import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import { NameCache, RecentMap } from 'svc/channels'
import type { ChannelLink, InboundMessage } from 'svc/channels'
import type { FeishuApi } from './api.ts'
import type { FeishuConfig } from './config.ts'
import { decodeMessage, decodePress } from './decode.ts'
import { CardEvent, MessageEvent } from './wire.ts'
import type { Bot, Callback, EventHeader } from './wire.ts'

const MAX_CHATS = 2000
const MESSAGE = 'im.message.receive_v1'
const PRESS = 'card.action.trigger'

type ChatFacts = Pick<InboundMessage['chat'], 'kind' | 'title'>

/** Passes on messages and presses of buttons, with the names that events do not tell. */
export class FeishuEvents {
  readonly #link: ChannelLink<FeishuConfig>
  readonly #api: FeishuApi
  readonly #bot: Bot
  readonly #names: NameCache
  readonly #chats = new RecentMap<string, ChatFacts>(MAX_CHATS)

  constructor(link: ChannelLink<FeishuConfig>, api: FeishuApi, bot: Bot) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#names = new NameCache(link, 'feishu')
  }

  /** Settles when what is in the event is durable. Events of other kinds are left. */
  async receive({ header, event }: Callback): Promise<void> {
    if (!header) return
    if (header.app_id !== this.#link.config.app_id) {
      this.#link.log.warn('Feishu sent an event of another app', { app: header.app_id })
      return
    }
    if (header.event_type === MESSAGE) await this.#message(event, header)
    else if (header.event_type === PRESS) await this.#press(event, header)
  }

  async #message(raw: unknown, { tenant_key: tenant }: EventHeader): Promise<void> {
    const event = v.safeParse(MessageEvent, raw)
    if (!event.success) {
      this.#link.log.warn('Feishu sent a message in a form that cannot be read')
      return
    }
    const message = decodeMessage(event.output, this.#bot, tenant ?? undefined)
    if (!message) return
    const { id, kind } = message.chat
    if (kind === 'direct') this.#chats.set(id, { kind })
    const chat =
      kind === 'group' ? omitUndefined({ ...message.chat, title: (await this.#chat(id)).title }) : message.chat
    await this.#pass({ ...message, chat })
  }

  async #press(raw: unknown, header: EventHeader): Promise<void> {
    const event = v.safeParse(CardEvent, raw)
    // Of a card that the adapter did not make.
    if (!event.success) return
    const id = event.output.context.open_chat_id
    const chat = omitUndefined({ id, ...(await this.#chat(id)), guildId: header.tenant_key ?? undefined })
    await this.#pass(decodePress(event.output, header, chat))
  }

  async #pass(message: InboundMessage): Promise<void> {
    const { sender } = message
    const name = await this.#names.find(sender.id, async () => (await this.#api.userName(sender.id)) ?? '')
    await this.#link.receive({ ...message, sender: { ...sender, name } })
  }

  async #chat(id: string): Promise<ChatFacts> {
    const known = this.#chats.get(id)
    if (known) return known
    let facts: ChatFacts = { kind: 'group' }
    try {
      const { name, chat_mode: mode } = await this.#api.chat(id)
      facts = omitUndefined({
        kind: mode === 'p2p' ? ('direct' as const) : ('group' as const),
        title: name || undefined,
      })
    } catch (error) {
      this.#link.log.debug('Feishu did not tell of a chat', { error })
      // Without the permission to ask it is a group without a name; what passes is asked again.
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') return facts
    }
    this.#chats.set(id, facts)
    return facts
  }
}
