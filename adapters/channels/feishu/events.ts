import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { ChannelLink, InboundMessage } from 'svc/channels'
import type { FeishuApi } from './api.ts'
import type { FeishuConfig } from './config.ts'
import { decodeMessage, decodePress } from './decode.ts'
import { CardEvent, MessageEvent } from './wire.ts'
import type { Bot, Callback, EventHeader } from './wire.ts'

const MAX_KNOWN = 2000
const MESSAGE = 'im.message.receive_v1'
const PRESS = 'card.action.trigger'

type ChatFacts = Pick<InboundMessage['chat'], 'kind' | 'title'>

/** Passes on messages and presses of buttons, with the names that events do not tell. */
export class FeishuEvents {
  readonly #link: ChannelLink<FeishuConfig>
  readonly #api: FeishuApi
  readonly #bot: Bot
  readonly #names = new RecentMap<string, string>(MAX_KNOWN)
  readonly #chats = new RecentMap<string, ChatFacts>(MAX_KNOWN)

  constructor(link: ChannelLink<FeishuConfig>, api: FeishuApi, bot: Bot) {
    this.#link = link
    this.#api = api
    this.#bot = bot
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
    const name = await this.#nameOf(message.sender.id)
    await this.#link.receive({ ...message, sender: { ...message.sender, name } })
  }

  async #nameOf(id: string): Promise<string> {
    return this.#known(this.#names, id, id, async () => (await this.#api.userName(id)) ?? id)
  }

  async #chat(id: string): Promise<ChatFacts> {
    return this.#known(this.#chats, id, { kind: 'group' }, async () => {
      const { name, chat_mode: mode } = await this.#api.chat(id)
      return omitUndefined({
        kind: mode === 'p2p' ? ('direct' as const) : ('group' as const),
        title: name || undefined,
      })
    })
  }

  /** Names are for reading: without the permission to ask for them something else stands for them. */
  async #known<T>(known: RecentMap<string, T>, id: string, otherwise: T, find: () => Promise<T>): Promise<T> {
    const earlier = known.get(id)
    if (earlier !== undefined) return earlier
    let found = otherwise
    try {
      found = await find()
    } catch (error) {
      this.#link.log.debug('Feishu did not tell a name', { error })
    }
    known.set(id, found)
    return found
  }
}
