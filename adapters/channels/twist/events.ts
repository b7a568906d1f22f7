import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { pause, pollInBackground, RecentMap, SavedPosition, unlessRefused } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import { PAGE } from './api.ts'
import type { TwistApi } from './api.ts'
import type { TwistConfig } from './config.ts'
import { decodeEntry } from './decode.ts'
import type { Place } from './decode.ts'
import { Entry, User } from './wire.ts'
import type { Channel, SessionUser, Thread } from './wire.ts'

const POLL_MS = 10_000
const MAX_KNOWN = 2000
/** Before the first comment of a thread. */
const NONE = -1
const START = 'start'
const Positions = v.array(v.tuple([v.string(), v.number()]))

type Source = { readonly kind: 'thread' | 'conversation'; readonly id: number; readonly unread: number }

/** Passes on what the server lists as unread, and marks it as read when it is durable. */
export class TwistEvents {
  readonly #link: ChannelLink<TwistConfig>
  readonly #api: TwistApi
  readonly #bot: SessionUser
  readonly #workspace: number
  readonly #position: SavedPosition
  /** The place of the last entry that was dealt with. */
  readonly #last = new RecentMap<string, readonly [string, number]>(MAX_KNOWN)
  readonly #users = new RecentMap<number, User | 'unknown'>(MAX_KNOWN)
  readonly #channels = new RecentMap<number, Channel>(MAX_KNOWN)
  /** In seconds: what was written before is history. */
  #start = 0

  constructor(link: ChannelLink<TwistConfig>, api: TwistApi, bot: SessionUser, workspace: number) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#workspace = workspace
    this.#position = new SavedPosition(link, 'last')
  }

  async open(): Promise<Background> {
    await this.#begin()
    await this.#read(this.#link.signal)
    const background = pollInBackground(this.#link, async (signal) => {
      if (await pause(this.#link, POLL_MS, signal)) await this.#read(signal)
    })
    return { ...background, closed: this.#flushAfter(background), [Symbol.asyncDispose]: () => this.#end(background) }
  }

  async #flushAfter(background: Background): Background['closed'] {
    const end = await background.closed
    try {
      await this.#position.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Twist could not be saved', { error })
    }
    return end
  }
  async #end(background: Background): Promise<void> {
    await background[Symbol.asyncDispose]()
    await this.#position.flush()
  }

  async #begin(): Promise<void> {
    const start = await this.#link.state.read(START)
    this.#start = start === undefined ? Math.floor(this.#link.now() / 1000) : Number(start)
    if (start === undefined) await this.#link.state.write(START, String(this.#start))
    const saved = await this.#position.read()
    if (saved === undefined) return
    for (const [key, index] of v.parse(Positions, readJson(saved))) this.#last.set(key, [key, index])
  }

  async #read(signal: AbortSignal): Promise<void> {
    for (const { conversation_id: id, obj_index: unread } of await this.#api.unreadConversations(
      this.#workspace,
      signal,
    ))
      await this.#readSource({ kind: 'conversation', id, unread })
    for (const { thread_id: id, obj_index: unread } of await this.#api.unreadThreads(this.#workspace, signal))
      await this.#readSource({ kind: 'thread', id, unread })
  }

  async #readSource(source: Source): Promise<void> {
    const { kind, id, unread } = source
    const place = await unlessRefused(this.#placeOf(source))
    const key = `${kind[0]}${id}`
    const known = this.#last.get(key)?.[1]
    let last = known ?? NONE
    if (place && this.#isRead(place)) {
      if (known === undefined && 'thread' in place) await this.#receive(place.thread, place)
      last = await this.#readEntries(source, place, key, known)
      this.#note(key, last)
    }
    await unlessRefused(this.#api.markRead(kind, id, Math.max(last, unread)))
  }

  #note(key: string, last: number): void {
    if (this.#last.get(key)?.[1] === last) return
    this.#last.set(key, [key, last])
    this.#position.set(JSON.stringify(this.#last.values()))
  }

  /** The place of the last entry. */
  async #readEntries({ kind, id }: Source, place: Place, key: string, known: number | undefined): Promise<number> {
    let last = known ?? NONE
    let from = known === undefined ? undefined : known + 1
    for (;;) {
      const page = await this.#api.entries(kind, id, from)
      // The latest ones, and those before them can be new, too.
      if (from === undefined && page.length >= PAGE && page.every((raw) => this.#isNew(raw))) {
        from = 0
        continue
      }
      const later = page.filter(({ obj_index: index }) => index > last).toSorted(byIndex)
      for (const raw of later) {
        const entry = v.safeParse(Entry, raw)
        if (entry.success) await this.#receive(entry.output, place)
        else this.#link.log.warn('Twist sent a message in a form that cannot be read')
        last = raw.obj_index
        this.#note(key, last)
      }
      if (later.length < PAGE || from === undefined) return last
      from = last + 1
    }
  }

  #isNew(raw: unknown): boolean {
    return !v.is(Entry, raw) || raw.posted_ts >= this.#start
  }

  async #receive(entry: Entry | Thread, place: Place): Promise<void> {
    if (entry.posted_ts < this.#start) return
    const context = { bot: this.#bot, ignoreBots: this.#link.config.ignore_bots }
    if (!decodeEntry(entry, place, { ...context, sender: undefined })) return
    const message = decodeEntry(entry, place, { ...context, sender: await this.#userOf(entry.creator) })
    if (message) await this.#link.receive(message)
  }

  /** Throws for what is gone or closed to the bot. */
  async #placeOf({ kind, id }: Source): Promise<Place> {
    if (kind === 'conversation') return { conversation: await this.#api.conversation(id) }
    const thread = await this.#api.thread(id)
    return { thread, channel: await this.#channelOf(thread.channel_id) }
  }

  #isRead(place: Place): boolean {
    const { channels } = this.#link.config
    if (!('channel' in place) || channels.length === 0) return true
    return channels.includes(String(place.channel.id)) || channels.includes(place.channel.name)
  }

  async #channelOf(id: number): Promise<Channel> {
    const known = this.#channels.get(id)
    if (known) return known
    const channel = await this.#api.channel(id)
    this.#channels.set(id, channel)
    return channel
  }

  async #userOf(id: number): Promise<User | undefined> {
    if (!this.#users.has(id)) {
      const users = await this.#api.users(this.#workspace)
      for (const raw of users) if (v.is(User, raw)) this.#users.set(raw.id, v.parse(User, raw))
      if (!this.#users.has(id)) this.#users.set(id, 'unknown')
    }
    const user = this.#users.get(id)
    return user === 'unknown' ? undefined : user
  }
}

const byIndex = (one: { readonly obj_index: number }, other: { readonly obj_index: number }): number =>
  one.obj_index - other.obj_index
