import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { RecentMap, SavedPosition } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { DiscordApi } from './api.ts'
import type { DiscordConfig } from './config.ts'
import { timeOf } from './snowflake.ts'
import { LastMessages } from './wire.ts'
import type { LastMessage } from './wire.ts'

/** Channels whose last message is kept: those in which something was written last. */
const MAX_CHANNELS = 200
const PER_PAGE = 100
/** What is older is not answered any more. */
const MAX_AGE_MS = 86_400_000

export type CatchUpLink = Pick<
  ChannelLink<Pick<DiscordConfig, 'catch_up_messages'>>,
  'config' | 'state' | 'sleep' | 'signal' | 'log' | 'now'
>
/** Deals with a message as with one of the gateway. Settles when it is durable. */
export type ReceiveMessage = (message: unknown) => Promise<void>

/** Discord keeps events for a session that is resumed. What was written between two sessions is read over REST. */
export class CatchUp {
  readonly #link: CatchUpLink
  readonly #api: Pick<DiscordApi, 'messagesBefore'>
  readonly #position: SavedPosition
  readonly #last = new RecentMap<string, LastMessage>(MAX_CHANNELS)
  /** By channel: what was left out. */
  readonly #warnings = new RecentMap<string, string>(MAX_CHANNELS)

  constructor(link: CatchUpLink, api: Pick<DiscordApi, 'messagesBefore'>) {
    this.#link = link
    this.#api = api
    this.#position = new SavedPosition(link, 'last_messages')
  }

  async load(): Promise<void> {
    const text = await this.#position.read()
    const parsed = text === undefined ? undefined : v.safeParse(LastMessages, readJson(text))
    for (const last of parsed?.success ? parsed.output : []) this.#last.set(last.channel, last)
  }

  /** A message is dealt with. One that nobody reads advances the position of a channel that is kept. */
  note({ channel, guild, id }: LastMessage, isRead: boolean): void {
    const known = this.#last.get(channel)
    if (!isRead && !known) return
    if (!isSnowflake(id) || (known && BigInt(known.id) >= BigInt(id))) return
    this.#last.set(channel, { channel, guild, id })
    this.#position.set(JSON.stringify([...this.#last.values()]))
  }

  /** Reads what was written in the kept channels after their last message, the oldest first. */
  async run(receive: ReceiveMessage): Promise<void> {
    for (const last of this.#last.values()) {
      for (const message of await this.#missed(last)) await receive({ ...message, guild_id: last.guild })
    }
  }

  get warnings(): readonly string[] {
    return [...this.#warnings.values()]
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }

  async #missed({ channel, id: last }: LastMessage): Promise<readonly Listed[]> {
    const { config, now } = this.#link
    const oldest = now() - MAX_AGE_MS
    const limit = config.catch_up_messages
    const found: Listed[] = []
    try {
      // One more than are read tells whether some are left out.
      while (found.length <= limit) {
        const listed = (await this.#api.messagesBefore(channel, found.at(-1)?.id, PER_PAGE)).filter(isListed)
        const fresh = listed.filter(({ id }) => BigInt(id) > BigInt(last) && timeOf(id, oldest) >= oldest)
        found.push(...fresh)
        if (fresh.length < listed.length || listed.length < PER_PAGE) break
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
      // The channel is gone, or closed to the bot.
      this.#link.log.debug('The messages of a channel of Discord could not be read', { error })
      this.#last.delete(channel)
    }
    if (found.length > limit) this.#warn(channel, limit, found.length - limit)
    return found.slice(0, limit).toReversed()
  }

  #warn(channel: string, limit: number, more: number): void {
    const warning =
      `Of the messages that were written in chat ${channel} meanwhile, the newest ${limit} were read, and ${more} or ` +
      'more were not: catch_up_messages of the account is the limit'
    this.#warnings.set(channel, warning)
    this.#link.log.warn(`Discord: ${warning}`)
  }
}

interface Listed {
  readonly id: string
}

function isListed(value: unknown): value is Listed {
  return v.is(v.looseObject({ id: v.string() }), value) && isSnowflake(value.id)
}

function isSnowflake(id: string): boolean {
  return /^\d{1,20}$/.test(id)
}
