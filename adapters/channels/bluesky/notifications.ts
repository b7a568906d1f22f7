import * as v from 'valibot'
import { isoTime, pause, pollInBackground, RecentMap, SavedPosition } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import type { BlueskyApi } from './api.ts'
import type { BlueskyConfig } from './config.ts'
import { decodeNotification } from './decode.ts'
import { Notification } from './wire.ts'
import type { Account } from './wire.ts'

/**
 * Bluesky orders notifications by the times that posts name themselves, if those are earlier: one that comes late can
 * stand below others that were read.
 */
const OVERLAP_MS = 600_000
const MAX_SEEN = 5000
/** Pages of 50. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 20

interface Listed {
  readonly at: number
  readonly notification: Notification
}

/** Reads what the account is told of, again and again. */
export class Notifications {
  readonly #link: ChannelLink<BlueskyConfig>
  readonly #api: BlueskyApi
  readonly #account: Account
  readonly #position: SavedPosition
  readonly #seen = new RecentMap<string, true>(MAX_SEEN)
  /** The time of the newest one that was dealt with, in milliseconds. */
  #last = 0
  /** What was there up to this time is history. */
  #start = 0

  constructor(link: ChannelLink<BlueskyConfig>, api: BlueskyApi, account: Account) {
    this.#link = link
    this.#api = api
    this.#account = account
    this.#position = new SavedPosition(link, 'last')
  }

  /** Settles when what was missed is durable. Throws `UpstreamFailure`. */
  async open(): Promise<Background> {
    await this.#begin()
    const pauseMs = this.#link.config.poll_seconds * 1000
    return pollInBackground(this.#link, async (signal) => {
      if (await pause(this.#link, pauseMs, signal)) await this.#read(signal)
    })
  }

  async #begin(): Promise<void> {
    const saved = await this.#position.read()
    if (saved !== undefined) {
      const [last = 0, start = 0] = saved.split(' ').map(Number)
      this.#last = last
      this.#start = start
      return this.#read(this.#link.signal)
    }
    const { listed } = await this.#page(undefined, this.#link.signal, 1)
    this.#last = this.#start = listed[0]?.at ?? 0
    await this.#position.write(`${this.#last} ${this.#start}`)
  }

  async #read(signal: AbortSignal): Promise<void> {
    const found = await this.#unread(signal)
    for (const { at, notification } of found) {
      const message = decodeNotification(notification, this.#account)
      if (message) await this.#link.receive(message)
      this.#seen.set(notification.uri, true)
      this.#last = Math.max(this.#last, at)
    }
    if (found.length === 0) return
    await this.#position.write(`${this.#last} ${this.#start}`)
    await this.#api.markSeen(isoTime(this.#last))
  }

  /** Oldest first. */
  async #unread(signal: AbortSignal): Promise<readonly Listed[]> {
    const oldest = Math.max(this.#last - OVERLAP_MS, this.#start + 1)
    const found: Listed[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const { listed, next } = await this.#page(cursor, signal)
      found.push(...listed.filter(({ at, notification: { uri } }) => at >= oldest && !this.#seen.has(uri)))
      // A page of those that were seen can have later ones below it.
      if (listed.some(({ at }) => at < oldest) || next === undefined) return inOrder(found)
      cursor = next
    }
    this.#link.log.warn(`More than ${found.length} posts came on Bluesky meanwhile: older ones are left out`)
    return inOrder(found)
  }

  async #page(
    cursor: string | undefined,
    signal: AbortSignal,
    limit?: number,
  ): Promise<{ readonly listed: readonly Listed[]; readonly next: string | undefined }> {
    const { notifications, cursor: next } = await this.#api.notifications(cursor, limit, signal)
    const listed = notifications.flatMap((raw) => {
      const parsed = v.safeParse(Notification, raw)
      if (!parsed.success) return []
      const at = Date.parse(parsed.output.indexedAt)
      return Number.isNaN(at) ? [] : [{ at, notification: parsed.output }]
    })
    return { listed, next }
  }
}

function inOrder(newestFirst: readonly Listed[]): readonly Listed[] {
  return newestFirst.toReversed().toSorted((one, other) => one.at - other.at)
}
