import { UpstreamFailure } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { MatrixApi } from './api.ts'

export interface RoomFacts {
  /** The bot and one person. */
  readonly isDirect: boolean
  readonly names: ReadonlyMap<string, string>
}

const MAX_ROOMS = 500
/** Names of more people are not kept: their ids stand for them. */
const MAX_NAMES = 2000
const UNKNOWN: RoomFacts = { isDirect: false, names: new Map() }

/** Who is in the rooms. */
export class Rooms {
  readonly #api: MatrixApi
  readonly #log: ChannelLink<unknown>['log']
  readonly #facts = new RecentMap<string, RoomFacts>(MAX_ROOMS)

  constructor(api: MatrixApi, log: ChannelLink<unknown>['log']) {
    this.#api = api
    this.#log = log
  }

  /** Somebody joined, left or has another name. */
  forget(room: string): void {
    this.#facts.delete(room)
  }

  async factsOf(room: string): Promise<RoomFacts> {
    const known = this.#facts.get(room)
    if (known) return known
    try {
      const members = Object.entries((await this.#api.members(room)).joined)
      const names = members
        .slice(0, MAX_NAMES)
        .flatMap(([id, { display_name: name }]) => (name ? [[id, name] as const] : []))
      const facts = { isDirect: members.length <= 2, names: new Map(names) }
      this.#facts.set(room, facts)
      return facts
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      // The bot left meanwhile. A room of which nothing is known counts as a group, where more is asked of a message.
      this.#log.debug('The members of a room of Matrix could not be read', { error })
      return UNKNOWN
    }
  }
}
