import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type {
  ChannelAdapter,
  ChannelCapabilities,
  ChannelConnection,
  ChannelLink,
  InboundMessage,
  OutboundMessage,
} from 'svc/channels'
import { Recorded } from '../../support/platforms/http.ts'

const capabilities: ChannelCapabilities = {
  dialect: 'markdown',
  maxLength: 4000,
  lengthUnit: 'utf16',
  idempotentSend: true,
  rate: { overall: { perSecond: 100_000, burst: 100_000 } },
}

export interface Shown {
  readonly chat: string
  readonly text: string
  readonly id: string
  readonly message: OutboundMessage
}
/** A chat platform in memory: people write to the bot, and see what it sends. */
export class ChatPlatform {
  /** What people see, in order. */
  readonly shown: Shown[] = []
  readonly edits = new Recorded<{ readonly id: string; readonly text: string }>('edits')
  /** Every attempt to send. */
  readonly attempts: OutboundMessage[] = []
  readonly typed: string[] = []
  /** What happens to the next sends, one each. */
  readonly faults: (() => Promise<void> | void)[] = []
  /** What happens when one of the next messages is shown, before the daemon learns that it is. */
  readonly afterSend: (() => Promise<void>)[] = []
  files = new Map<string, Uint8Array>()
  /** What happens when the daemon ends one of the next connections. */
  readonly onClose: (() => void)[] = []
  /** Files that fail to be read, by name. */
  readonly broken = new Map<string, Error>()
  /** The connected accounts; who writes without naming one writes to the last. */
  readonly links = new Map<string, ChannelLink<unknown>>()
  #link: ChannelLink<unknown> | undefined
  #count = 0
  readonly #chats = new Map<string, Recorded<Shown>>()
  readonly #seen = new Map<string, string>()
  readonly #open = Promise.withResolvers<void>()

  install(more: Partial<ChannelCapabilities> = {}, adapter: Partial<ChannelAdapter> = {}): void {
    Reflect.set(globalThis, Symbol.for('svc.test.adapter'), this.adapter({ ...capabilities, ...more }, adapter))
  }
  adapter(can: ChannelCapabilities, more: Partial<ChannelAdapter> = {}): ChannelAdapter {
    return {
      ...defineAdapter({
        config: v.object({ token: v.optional(v.string(), 'x') }),
        capabilities: can,
        open: (link) => this.#connect(link, can),
        probe: async () => ({ account: '@bot' }),
      }),
      ...more,
    }
  }
  /** Settles when the bot is connected. */
  connected(): Promise<void> {
    return this.#open.promise
  }
  async #connect(link: ChannelLink<unknown>, can: ChannelCapabilities): Promise<ChannelConnection> {
    this.#link = link
    this.links.set(link.accountId, link)
    const { promise: closed } = Promise.withResolvers<never>()
    this.#open.resolve()
    return {
      closed,
      send: async (message) => {
        this.attempts.push(message)
        await this.faults.shift()?.()
        const id = this.#show(message, can.idempotentSend)
        await this.afterSend.shift()?.()
        return { id }
      },
      ...(can.edit && {
        edit: async ({ id }, { text }) => {
          this.edits.add({ id, text })
        },
      }),
      ...(can.typing && { typing: async ({ chatId }) => void this.typed.push(chatId) }),
      readAttachment: async ({ name }) => {
        const failure = this.broken.get(String(name))
        if (failure) throw failure
        const bytes = this.files.get(String(name))
        if (!bytes) throw new Error(`no file ${String(name)}`)
        return (async function* () {
          yield bytes
        })()
      },
      [Symbol.asyncDispose]: async () => this.onClose.shift()?.(),
    }
  }
  #show(message: OutboundMessage, isIdempotent: boolean): string {
    const known = isIdempotent ? this.#seen.get(message.id) : undefined
    if (known !== undefined) return known
    const id = `p-${++this.#count}`
    this.#seen.set(message.id, id)
    const shown = { chat: message.to.chatId, text: message.text, id, message }
    this.shown.push(shown)
    this.#in(shown.chat).add(shown)
    return id
  }

  /** Somebody writes. Settles when the host has acknowledged the message. */
  async write(text: string, more: Partial<InboundMessage> = {}, account?: string): Promise<void> {
    const link = account === undefined ? this.#link : this.links.get(account)
    await link?.receive({
      id: `m-${++this.#count}`,
      chat: { id: 'chat-1', kind: 'direct' },
      sender: { id: 'ada', name: 'Ada' },
      text,
      attachments: [],
      mentionsBot: false,
      sentAt: '2026-01-01T00:00:00.000Z',
      ...more,
    })
  }
  /** Settles with the texts that are shown in a chat, when there are so many. */
  async texts(count: number, chat: string): Promise<readonly string[]> {
    return (await this.#in(chat).wait(count)).map(({ text }) => text)
  }
  #in(chat: string): Recorded<Shown> {
    const found = this.#chats.get(chat) ?? new Recorded<Shown>(`messages in ${chat}`)
    this.#chats.set(chat, found)
    return found
  }
}
