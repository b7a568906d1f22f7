import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { pollInBackground } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import type { BotApi } from './bot-api.ts'
import type { BotContexts } from './bot-contexts.ts'
import { decodeBotMessage } from './bot-decode.ts'
import { forgetSession } from './bot-session.ts'
import { Message } from './bot-wire.ts'
import type { WeChatConfig } from './config.ts'

export const CURSOR = 'bot-cursor'
const START = 'bot-start'
/** Clocks differ: what was written a moment before the first start is no history. */
const CLOCK_MS = 60_000
/** Polls that were not answered, after which the connection counts as lost. */
const MAX_TIMEOUTS = 2
const MIN_POLL_MS = 1000
const MAX_POLL_MS = 90_000

/** Reads messages by long polling. */
export class BotUpdates {
  readonly #link: ChannelLink<WeChatConfig>
  readonly #api: BotApi
  readonly #contexts: BotContexts
  #cursor = ''
  #start = 0
  #pollMs = 35_000
  #timeouts = 0

  constructor(link: ChannelLink<WeChatConfig>, api: BotApi, contexts: BotContexts) {
    this.#link = link
    this.#api = api
    this.#contexts = contexts
  }

  async open(): Promise<Background> {
    this.#start = await this.#readStart()
    this.#cursor = (await this.#link.state.read(CURSOR)) ?? ''
    return pollInBackground(this.#link, async (signal) => {
      try {
        return await this.#poll(signal)
      } catch (error) {
        // Only another QR code helps: without a session the next attempt says so.
        if (error instanceof UpstreamFailure && error.reason === 'auth') await forgetSession(this.#link)
        throw error
      }
    })
  }

  /** The first time it is now: what was written before is not read. */
  async #readStart(): Promise<number> {
    const stored = await this.#link.state.read(START)
    if (stored !== undefined) return Number(stored)
    const now = this.#link.now()
    await this.#link.state.write(START, String(now))
    return now
  }

  /** Whether something came; `undefined` when no answer came in time. */
  async #poll(signal: AbortSignal): Promise<boolean | undefined> {
    const updates = await this.#next(signal)
    if (!updates) return undefined
    this.#pollMs = Math.min(Math.max(updates.longpolling_timeout_ms, MIN_POLL_MS), MAX_POLL_MS)
    for (const raw of updates.msgs) await this.#receive(raw)
    const hasMessages = updates.msgs.length > 0
    if (updates.get_updates_buf === '' || updates.get_updates_buf === this.#cursor) return hasMessages
    // The next poll acknowledges what came with this one.
    await this.#link.state.write(CURSOR, updates.get_updates_buf)
    this.#cursor = updates.get_updates_buf
    return hasMessages
  }

  /** WeChat may leave a poll without an answer when there is nothing. */
  async #next(signal: AbortSignal): Promise<Awaited<ReturnType<BotApi['updates']>> | undefined> {
    try {
      const updates = await this.#api.updates(this.#cursor, this.#pollMs, signal)
      this.#timeouts = 0
      return updates
    } catch (error) {
      const isQuiet = error instanceof UpstreamFailure && error.reason === 'timeout'
      if (!isQuiet || ++this.#timeouts > MAX_TIMEOUTS) throw error
      return undefined
    }
  }

  async #receive(raw: unknown): Promise<void> {
    const parsed = v.safeParse(Message, raw)
    if (!parsed.success) return this.#link.log.warn('WeChat sent a message in a form that cannot be read')
    const { from_user_id: person, context_token: context, create_time_ms: written } = parsed.output
    const message = decodeBotMessage(parsed.output, this.#link.now())
    if (!message || (written ?? Infinity) < this.#start - CLOCK_MS) return
    if (context) await this.#contexts.keep(person, context)
    await this.#link.receive(message)
  }
}
