import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { RecentMap, SavedPosition, unlessRefused } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { RocketChatApi } from './api.ts'
import type { RocketChatConfig } from './config.ts'
import { decodeMessage, isDirectRoom } from './decode.ts'
import type { DecodeContext } from './decode.ts'
import { Message, Place, Room } from './wire.ts'
import type { Me } from './wire.ts'

const MAX_ROOMS = 2000
const MAX_OWN_MESSAGES = 2000
/** Messages can become visible in another order than their times say: what was read is dropped as a duplicate. */
const OVERLAP_MS = 10_000
/** Up to where the rooms are read by a reading that did not end. */
const READ = 'read'
const ReadRooms = v.array(v.tuple([v.string(), v.number()]))

/** Passes on messages: those of the WebSocket, and those that were written while it was not open. */
export class RocketChatEvents {
  readonly #link: ChannelLink<RocketChatConfig>
  readonly #api: RocketChatApi
  readonly #bot: Me
  readonly #position: SavedPosition
  readonly #rooms = new RecentMap<string, Room>(MAX_ROOMS)
  /** Threads the bot began: an answer in one is an answer to the bot. */
  readonly #ownMessages = new RecentMap<string, true>(MAX_OWN_MESSAGES)
  #since = 0
  /** What was written up to this time is history. */
  #start = 0

  constructor(link: ChannelLink<RocketChatConfig>, api: RocketChatApi, bot: Me) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#position = new SavedPosition(link, 'since')
  }

  noteOwnMessage(id: string): void {
    this.#ownMessages.set(id, true)
  }

  /** A message of the WebSocket. Settles when it is durable. */
  async posted([raw, rawPlace]: readonly unknown[]): Promise<void> {
    const message = v.safeParse(Message, raw)
    const place = v.safeParse(Place, rawPlace)
    if (!message.success || !place.success)
      return this.#link.log.warn('Rocket.Chat sent a message in a form that cannot be read')
    const { editedAt, ts } = message.output
    // A message is sent again when somebody reacts to it, however old it is.
    if ((editedAt ?? ts) <= this.#since - OVERLAP_MS) return
    if (place.output.roomParticipant === false) return
    await this.#receive(message.output, await this.#roomOf(message.output.rid, place.output), editedAt != null)
    this.#advance(timeOf(message.output))
  }

  /** Reads what was written since the last message that was dealt with. The first time there is nothing to read. */
  async catchUp(): Promise<void> {
    const saved = await this.#position.read()
    if (saved === undefined) return this.#begin()
    const [since = 0, start = 0] = saved.split(' ').map(Number)
    this.#since = Math.max(this.#since, since)
    this.#start = start
    const from = Math.max(this.#since - OVERLAP_MS, start)
    const rooms = this.#remember((await this.#api.rooms(from)).update)
    if (rooms.length === 0) return
    const read = await this.#readBefore()
    for (const room of rooms) {
      read.set(room._id, await this.#readRoom(room, Math.max(from, read.get(room._id) ?? 0)))
      // The server may end this for a minute, after ten rooms: then it goes on where it was.
      await this.#link.state.write(READ, JSON.stringify([...read]))
    }
    // Not before, as another room may have older messages.
    this.#advance(Math.max(...read.values()))
    await this.#position.flush()
    await this.#link.state.write(READ, '')
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }

  async #begin(): Promise<void> {
    const rooms = this.#remember((await this.#api.rooms()).update)
    const times = rooms.map(({ lm, _updatedAt: updated }) => updated ?? lm ?? 0)
    this.#start = this.#since = times.length === 0 ? this.#link.now() : Math.max(...times)
    await this.#position.write(this.#saved())
  }

  #remember(list: readonly unknown[]): readonly Room[] {
    const rooms = list.flatMap((raw) => (v.is(Room, raw) ? [v.parse(Room, raw)] : []))
    for (const room of rooms) this.#rooms.set(room._id, room)
    return rooms.filter((room) => this.#isRead(room))
  }

  async #readBefore(): Promise<Map<string, number>> {
    const text = await this.#link.state.read(READ)
    return new Map(text ? v.parse(ReadRooms, readJson(text)) : [])
  }

  /** Up to when it has read. */
  async #readRoom(room: Room, since: number): Promise<number> {
    // The bot may have left meanwhile.
    const listed = (await unlessRefused(this.#api.messagesSince(room._id, since))) ?? []
    const messages = listed.flatMap((raw) => {
      const message = v.safeParse(Message, raw)
      return message.success && (message.output.editedAt ?? message.output.ts) > since ? [message.output] : []
    })
    for (const message of messages.toSorted((one, other) => one.ts - other.ts))
      await this.#receive(message, room, message.editedAt != null && message.ts <= this.#since)
    return Math.max(since, ...messages.map(timeOf))
  }

  async #receive(message: Message, room: DecodeContext['room'], isEdit: boolean): Promise<void> {
    const context = { bot: this.#bot, ignoreBots: this.#link.config.ignore_bots, room, isEdit }
    const isInOwnThread = message.tmid ? this.#ownMessages.has(message.tmid) : false
    const decoded = this.#isRead({ ...room, _id: message.rid })
      ? decodeMessage(message, { ...context, isInOwnThread })
      : undefined
    if (decoded) await this.#link.receive(decoded)
  }

  #advance(time: number): void {
    if (time <= this.#since) return
    this.#since = time
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return `${this.#since} ${this.#start}`
  }

  #isRead(room: DecodeContext['room'] & { readonly _id: string }): boolean {
    const { rooms } = this.#link.config
    return rooms.length === 0 || isDirectRoom(room) || rooms.includes(room._id) || rooms.includes(room.name ?? '')
  }

  /** A message does not tell how many people are in a direct one. */
  async #roomOf(id: string, { roomType, roomName }: Place): Promise<DecodeContext['room']> {
    const known = this.#rooms.get(id)
    if (known) return known
    if (roomType != null && roomType !== 'd') return { t: roomType, name: roomName }
    const room = await unlessRefused(this.#api.room(id))
    // The bot has left meanwhile.
    if (!room) return { t: 'd', usersCount: Infinity }
    this.#rooms.set(id, room)
    return room
  }
}

/** A time that lies ahead must not hide the messages that come before it. */
function timeOf({ ts, _updatedAt: updated }: Message): number {
  return Math.min(ts, updated ?? ts)
}
