import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { RecentMap, runInBackground } from 'svc/channels'
import type { Background, ChannelLink, ConnectionEnd } from 'svc/channels'
import type { MatrixApi } from './api.ts'
import type { MatrixConfig } from './config.ts'
import type { Credentials } from './credentials.ts'
import { decodeEvent } from './decode.ts'
import { EncryptedRooms } from './encrypted-rooms.ts'
import { isInviteAllowed } from './invite.ts'
import { Rooms } from './rooms.ts'
import { Event } from './wire.ts'
import type { InvitedRoom, JoinedRoom, SyncAnswer } from './wire.ts'

export interface SyncDeps {
  readonly link: ChannelLink<MatrixConfig>
  readonly api: MatrixApi
  readonly credentials: Credentials
  readonly botId: string
}

const POSITION = 'next_batch'
/** Events of a room that are read beyond those of one answer, in pages as long as the server likes. */
const MAX_MISSED = 10_000
const MAX_OWN_EVENTS = 2000

/** Reads the events of the account, one answer after another, and keeps the position. */
export class Sync {
  readonly #deps: SyncDeps
  readonly #rooms: Rooms
  readonly #ownEvents = new RecentMap<string, true>(MAX_OWN_EVENTS)
  readonly #encrypted: EncryptedRooms
  #since: string | undefined

  constructor(deps: SyncDeps) {
    this.#deps = deps
    this.#rooms = new Rooms(deps.api, deps.link.log)
    this.#encrypted = new EncryptedRooms(deps.link, deps.api)
  }

  noteOwnEvent(id: string): void {
    this.#ownEvents.set(id, true)
  }

  warnings = (): readonly string[] => this.#encrypted.warnings()

  /** The first time nothing is read but the present position and invitations: what was written before is history. */
  async start(): Promise<Background> {
    const { link, api } = this.#deps
    await this.#encrypted.load()
    this.#since = (await link.state.read(POSITION)) || undefined
    if (this.#since === undefined) {
      const answer = await api.sync(undefined, link.signal)
      await this.#acceptInvites(answer)
      await this.#advance(answer.next_batch)
    }
    return runInBackground(link, (signal) => this.#run(signal))
  }

  async #run(signal: AbortSignal): Promise<ConnectionEnd | void> {
    const { link, api, credentials } = this.#deps
    try {
      while (!signal.aborted) {
        const answer = await api.sync(this.#since, signal)
        link.heard()
        await this.#read(answer)
        if (answer.next_batch !== this.#since) await this.#advance(answer.next_batch)
      }
    } catch (error) {
      if (error instanceof UpstreamFailure && error.reason === 'auth' && (await credentials.drop()))
        return { retry: 'later', reason: error.message, retryAfterSecs: 0 }
      throw error
    }
  }

  /** Written when everything before it is durable. */
  async #advance(position: string): Promise<void> {
    await this.#deps.link.state.write(POSITION, position)
    this.#since = position
  }

  async #read(answer: SyncAnswer): Promise<void> {
    await this.#acceptInvites(answer)
    for (const [room, joined] of Object.entries(answer.rooms?.join ?? {})) await this.#readRoom(room, joined)
  }

  async #readRoom(room: string, joined: JoinedRoom): Promise<void> {
    const { timeline } = joined
    if (eventsOf(joined.state?.events).some(({ type }) => type === 'm.room.member')) this.#rooms.forget(room)
    const events = eventsOf(timeline?.events)
    const start = this.#joinIn(events)
    // What was written before the bot came is not for it.
    if (start === -1 && timeline?.limited === true && timeline.prev_batch != null)
      for (const event of await this.#missed(room, timeline.prev_batch)) await this.#receive(room, event)
    for (const event of events.slice(start + 1)) await this.#receive(room, event)
  }

  /** The place of the event by which the bot joined; -1 when it was there before. */
  #joinIn(events: readonly Event[]): number {
    return events.findLastIndex(
      ({ type, state_key: who, content, unsigned }) =>
        type === 'm.room.member' &&
        who === this.#deps.botId &&
        content?.['membership'] === 'join' &&
        unsigned?.prev_content?.membership !== 'join',
    )
  }

  /** What lies between the last position and the events that came, the oldest first. */
  async #missed(room: string, from: string): Promise<readonly Event[]> {
    const { api } = this.#deps
    const found: Event[] = []
    let position: string | null | undefined = from
    while (position != null) {
      if (found.length >= MAX_MISSED) {
        this.#deps.link.log.warn('There were too many messages on Matrix meanwhile: older ones are left out', { room })
        break
      }
      const { chunk, end } = await api.messagesBefore(room, position, this.#since ?? '')
      const events = eventsOf(chunk)
      const join = this.#joinIn(events.toReversed())
      found.push(...(join === -1 ? events : events.slice(0, events.length - 1 - join)))
      if (join !== -1 || chunk.length === 0) break
      position = end
    }
    return found.toReversed()
  }

  async #receive(room: string, event: Event): Promise<void> {
    if (event.type === 'm.room.member') return this.#rooms.forget(room)
    if (event.type === 'm.room.encrypted') return await this.#encrypted.tell(room)
    if (event.type !== 'm.room.message' || event.sender === this.#deps.botId) return
    const message = decodeEvent(event, {
      roomId: room,
      botId: this.#deps.botId,
      ...(await this.#rooms.factsOf(room)),
      isOwn: (id) => this.#ownEvents.has(id),
    })
    if (message) await this.#deps.link.receive(message)
  }

  async #acceptInvites(answer: SyncAnswer): Promise<void> {
    for (const [room, invited] of Object.entries(answer.rooms?.invite ?? {})) await this.#accept(room, invited)
  }

  async #accept(room: string, invited: InvitedRoom): Promise<void> {
    const { link, api, botId } = this.#deps
    const invite = eventsOf(invited.invite_state?.events).find(
      ({ type, state_key: who }) => type === 'm.room.member' && who === botId,
    )
    if (!isInviteAllowed(link.config, room, invite?.sender ?? '')) {
      link.log.info('An invitation on Matrix was not accepted: see auto_join and join_invites_from', { room })
      return
    }
    try {
      await api.join(room)
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      // It was withdrawn, or the room is gone.
      link.log.warn('A room of Matrix could not be joined', { room, error })
    }
  }
}

function eventsOf(raw: readonly unknown[] | null | undefined): readonly Event[] {
  return (raw ?? []).flatMap((each) => {
    const event = v.safeParse(Event, each)
    return event.success ? [event.output] : []
  })
}
