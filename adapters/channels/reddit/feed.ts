import * as v from 'valibot'
import { pause, pollInBackground, RecentMap, SavedPosition, unlessRefused } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import type { RedditApi } from './api.ts'
import type { RedditConfig } from './config.ts'
import { decodeItem } from './decode.ts'
import { Item } from './wire.ts'

const MAX_SEEN = 5000
/** Pages of 100. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 10
/** Lists may show a comment later than one that was written after it. */
const OVERLAP_SECS = 120

const Position = v.pipe(
  v.string(),
  v.transform((text) => text.split(' ').map(Number)),
  v.tuple([v.number(), v.number()]),
)

/** Reads the inbox, and the comments of the communities of the configuration, again and again. */
export class RedditFeed {
  readonly #link: ChannelLink<RedditConfig>
  readonly #api: RedditApi
  readonly #position: SavedPosition
  /** Names of what was dealt with. */
  readonly #seen = new RecentMap<string, true>(MAX_SEEN)
  readonly #comments: string | undefined
  /** What the operator should know. */
  warnings: readonly string[] = []
  /** What was written up to this time, in seconds, is history. */
  #start = 0
  /** The time of the newest comment that was dealt with, in seconds. */
  #last = 0

  constructor(link: ChannelLink<RedditConfig>, api: RedditApi) {
    this.#link = link
    this.#api = api
    this.#position = new SavedPosition(link, 'last')
    const communities = link.config.subreddits.map((name) => name.replace(/^\/?r\//, ''))
    this.#comments = communities.length === 0 ? undefined : `/r/${communities.join('+')}/comments`
  }

  /** Settles when what was missed is durable. Throws `UpstreamFailure`. */
  async open(): Promise<Background> {
    await this.#begin()
    const pollSecs = this.#link.config.poll_seconds
    return pollInBackground(this.#link, async (signal) => {
      const secs = Math.max(pollSecs, this.#api.pauseSecs)
      if (await pause(this.#link, secs * 1000, signal)) await this.#read(signal)
    })
  }

  async #begin(): Promise<void> {
    const saved = v.safeParse(Position, await this.#position.read())
    if (saved.success) {
      const [start, last] = saved.output
      this.#start = start
      this.#last = last
      return this.#read(this.#link.signal)
    }
    const paths = ['/message/unread', ...(this.#comments === undefined ? [] : [this.#comments])]
    for (const path of paths)
      for (const { data } of (await this.#page(path, undefined, this.#link.signal)).items)
        this.#start = Math.max(this.#start, data.created_utc)
    this.#last = this.#start
    await this.#save()
  }

  async #read(signal: AbortSignal): Promise<void> {
    // The inbox says which comments are for the account: what is in the first list has to be in it by then.
    const comments = await this.#listComments(signal)
    const inbox = await this.#list('/message/unread', this.#start, signal)
    const told = new Set(inbox.map(({ data }) => data.name))
    for (const item of inOrder([...comments, ...inbox])) await this.#receive(item, told.has(item.data.name))
    // Read is what is durable.
    await this.#api.markRead([...told])
    const [newest] = comments.map(({ data }) => data.created_utc).toSorted((one, other) => other - one)
    if (newest === undefined || newest <= this.#last) return
    this.#last = newest
    await this.#save()
  }

  /** A community may close at any time: the inbox is read all the same. */
  async #listComments(signal: AbortSignal): Promise<readonly Item[]> {
    if (this.#comments === undefined) return []
    const listed = await unlessRefused(this.#list(this.#comments, this.#oldest(), signal))
    const warnings = listed ? [] : [`Reddit does not show the comments of ${this.#comments}`]
    if (warnings.length > this.warnings.length) this.#link.log.warn(warnings.join())
    this.warnings = warnings
    return listed ?? []
  }

  #oldest(): number {
    return Math.max(this.#start, this.#last - OVERLAP_SECS)
  }
  async #save(): Promise<void> {
    await this.#position.write(`${this.#start} ${this.#last}`)
  }

  async #receive(item: Item, isInbox: boolean): Promise<void> {
    if (this.#seen.has(item.data.name)) return
    const message = decodeItem(item, { username: this.#link.config.username, isInbox })
    if (message) await this.#link.receive(message)
    this.#seen.set(item.data.name, true)
  }

  /** What is new since this time. */
  async #list(path: string, since: number, signal: AbortSignal): Promise<readonly Item[]> {
    const found: Item[] = []
    let after: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const { items, next } = await this.#page(path, after, signal)
      const fresh = items.filter(({ data }) => data.created_utc > since)
      found.push(...fresh)
      if (fresh.length === 0 || next === undefined) return found
      after = next
    }
    this.#link.log.warn(`More than ${found.length} messages came on Reddit meanwhile: older ones are left out`)
    return found
  }

  async #page(path: string, after: string | undefined, signal: AbortSignal) {
    const { data } = await this.#api.list(path, after, signal)
    const items = data.children.flatMap((raw) => {
      const parsed = v.safeParse(Item, raw)
      return parsed.success ? [parsed.output] : []
    })
    return { items, next: data.after ?? undefined }
  }
}

/** Oldest first. */
function inOrder(newestFirst: readonly Item[]): readonly Item[] {
  return newestFirst.toReversed().toSorted((one, other) => one.data.created_utc - other.data.created_utc)
}
