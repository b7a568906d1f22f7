import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { pause, pollInBackground, RecentMap, SavedPosition } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import type { NextcloudConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import type { NextcloudUserApi } from './user-api.ts'
import { Message, Room } from './wire.ts'

const POLL_MS = 3000
const MAX_ROOMS = 2000
const ONE_TO_ONE = 1
const NEWS_OF_TALK = 4
const EDITED = 'message_edited'
const Positions = v.array(v.tuple([v.string(), v.number()]))

/**
 * Passes on the messages of all conversations of an account. Asking for the list of those that changed is one request
 * for all, while waiting in each of them would occupy the server.
 */
export class NextcloudEvents {
  readonly #link: ChannelLink<NextcloudConfig>
  readonly #api: NextcloudUserApi
  readonly #userId: string
  readonly #position: SavedPosition
  /** The last message of each conversation that was dealt with. */
  readonly #last = new RecentMap<string, readonly [string, number]>(MAX_ROOMS)
  /** The latest activity that was seen, in seconds. */
  #activity: number | undefined

  constructor(link: ChannelLink<NextcloudConfig>, api: NextcloudUserApi, userId: string) {
    this.#link = link
    this.#api = api
    this.#userId = userId
    this.#position = new SavedPosition(link, 'last')
  }

  async open(): Promise<Background> {
    await this.#begin()
    await this.#read()
    const background = pollInBackground(this.#link, async (signal) => {
      if (await pause(this.#link, POLL_MS, signal)) await this.#read()
    })
    return { ...background, closed: this.#flushAfter(background), [Symbol.asyncDispose]: () => this.#end(background) }
  }

  async #flushAfter(background: Background): Background['closed'] {
    const end = await background.closed
    try {
      await this.#position.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Nextcloud Talk could not be saved', { error })
    }
    return end
  }
  async #end(background: Background): Promise<void> {
    await background[Symbol.asyncDispose]()
    await this.#position.flush()
  }

  /** The first time what was written is history. */
  async #begin(): Promise<void> {
    const saved = await this.#position.read()
    if (saved !== undefined) {
      for (const [room, last] of v.parse(Positions, readJson(saved))) this.#last.set(room, [room, last])
      return
    }
    for (const { token, lastMessage } of await this.#rooms()) this.#last.set(token, [token, lastMessage?.id ?? 0])
    await this.#position.write(this.#saved())
  }

  async #read(): Promise<void> {
    for (const room of await this.#rooms()) await this.#readRoom(room)
  }

  async #rooms(): Promise<readonly Room[]> {
    // Two messages may have the same second.
    const since = this.#activity === undefined ? undefined : this.#activity - 1
    const list = await this.#api.rooms(since)
    const rooms = list.flatMap((raw) => {
      const room = v.safeParse(Room, raw)
      return room.success && room.output.type !== NEWS_OF_TALK ? [room.output] : []
    })
    this.#activity = Math.max(this.#activity ?? 0, ...rooms.map(({ lastActivity }) => lastActivity))
    return rooms
  }

  async #readRoom(room: Room): Promise<void> {
    const newest = room.lastMessage?.id ?? 0
    let last: number = this.#last.get(room.token)?.[1] ?? firstOf(room, newest)
    while (last < newest) {
      const later = (await this.#api.messagesAfter(room.token, last)).filter(({ id }) => id > last)
      for (const raw of later) {
        await this.#receive(room, raw)
        last = Math.max(last, raw.id)
        this.#note(room.token, last)
      }
      if (later.length === 0) last = newest
    }
    this.#note(room.token, last)
  }

  #note(token: string, last: number): void {
    if (this.#last.get(token)?.[1] === last) return
    this.#last.set(token, [token, last])
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return JSON.stringify(this.#last.values())
  }

  async #receive(room: Room, raw: unknown): Promise<void> {
    const message = v.safeParse(Message, raw)
    if (!message.success) return this.#link.log.warn('Nextcloud sent a message in a form that cannot be read')
    const { systemMessage, parent } = message.output
    if (systemMessage === '') return this.#pass(room, message.output, false)
    // A notice of an edit has the message as it is now.
    const edited = systemMessage === EDITED ? v.safeParse(Message, parent) : undefined
    if (edited?.success) await this.#pass(room, edited.output, true)
  }

  async #pass(room: Room, message: Message, isEdit: boolean): Promise<void> {
    const decoded = decodeMessage(message, { userId: this.#userId, room, isEdit })
    if (decoded) await this.#link.receive(decoded)
  }
}

/**
 * Whoever joins a conversation sees what was written before. All of one of two people is for the account; of others the
 * last message at the most was written after the notice that it has joined.
 */
function firstOf({ type }: Room, newest: number): number {
  return type === ONE_TO_ONE ? 0 : Math.max(0, newest - 1)
}
