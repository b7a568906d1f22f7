import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'
import type { MatrixApi } from './api.ts'

const KEY = 'encrypted_rooms'
const MAX_ROOMS = 500
const MAX_NAMED = 3
const NOTICE = 'I cannot read this room: its messages are encrypted. Invite me to a room without encryption.'

type Link = Pick<ChannelLink<unknown>, 'state' | 'log'>

/** Rooms whose messages cannot be read. Each is told so once, also over restarts: silence looks like a defect. */
export class EncryptedRooms {
  readonly #link: Link
  readonly #api: Pick<MatrixApi, 'notify'>
  readonly #told = new Set<string>()

  constructor(link: Link, api: Pick<MatrixApi, 'notify'>) {
    this.#link = link
    this.#api = api
  }

  async load(): Promise<void> {
    const rooms = v.safeParse(v.array(v.string()), readJson((await this.#link.state.read(KEY)) ?? '[]'))
    for (const room of rooms.success ? rooms.output : []) this.#told.add(room)
  }

  /** What the status says. */
  warnings(): readonly string[] {
    if (this.#told.size === 0) return []
    const named = [...this.#told].slice(0, MAX_NAMED).join(', ')
    const more = this.#told.size > MAX_NAMED ? ` and ${this.#told.size - MAX_NAMED} more` : ''
    return [`messages of encrypted rooms cannot be read: ${named}${more}; invite the bot to a room without encryption`]
  }

  /** Somebody wrote in an encrypted room. */
  async tell(room: string): Promise<void> {
    if (this.#told.has(room) || this.#told.size >= MAX_ROOMS) return
    try {
      await this.#api.notify(room, NOTICE)
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error
      this.#link.log.warn('An encrypted room of Matrix could not be told that it is not read', { room, error })
      // Told with the next message.
      if (error.retry === 'later') return
    }
    this.#told.add(room)
    this.#link.log.warn('A room of Matrix is encrypted: its messages cannot be read. Invite the bot to another', {
      room,
    })
    await this.#link.state.write(KEY, JSON.stringify([...this.#told]))
  }
}
