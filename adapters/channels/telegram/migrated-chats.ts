import { RecentMap } from 'svc/channels'
import type { ChannelState } from 'svc/channels'

const MAX_CHATS = 2000

/**
 * Groups that became supergroups, which have another id. Everywhere else a group keeps the id that it had first: the
 * configuration names it, and its conversation goes on.
 */
export class MigratedChats {
  readonly #state: ChannelState
  /** Ids that groups had first, by the present ones; that of a chat that never had another is its own. */
  readonly #first = new RecentMap<string, string>(MAX_CHATS)

  constructor(state: ChannelState) {
    this.#state = state
  }

  async note(first: string, present: string): Promise<void> {
    await this.#state.write(`migrated:${first}`, present)
    await this.#state.write(`migrated-from:${present}`, first)
    this.#first.set(present, first)
  }

  /** The id that the group has now. */
  async presentId(first: string): Promise<string> {
    return (await this.#state.read(`migrated:${first}`)) ?? first
  }

  /** The id that the group had first. */
  async firstId(present: string): Promise<string> {
    const known = this.#first.get(present)
    if (known !== undefined) return known
    const first = (await this.#state.read(`migrated-from:${present}`)) ?? present
    this.#first.set(present, first)
    return first
  }
}
