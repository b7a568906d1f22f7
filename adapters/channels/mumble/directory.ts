import { omitUndefined } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import { senderId } from './decode.ts'
import type { User } from './decode.ts'
import type { ChannelState, UserState } from './wire.ts'

const MAX_USERS = 10_000
const MAX_CHANNELS = 10_000
const MAX_NAME = 512
/** Servers nest ten channels unless they are told otherwise. */
const MAX_DEPTH = 100

interface Channel {
  readonly id: number
  readonly name: string
  readonly parent?: number
}

/** The users and channels of a server, as it tells them. */
export class Directory {
  readonly #users = new RecentMap<number, User>(MAX_USERS)
  readonly #channels = new RecentMap<number, Channel>(MAX_CHANNELS)

  /** Later states have only what changed. */
  updateUser({ session, ...state }: UserState): void {
    if (session === undefined) return
    const known = this.#users.get(session) ?? { session, name: '', channelId: 0 }
    this.#users.set(session, { ...known, ...omitUndefined({ ...state, name: shortName(state) }) })
  }
  removeUser(session: number): void {
    this.#users.delete(session)
  }
  user(session: number): User | undefined {
    return this.#users.get(session)
  }
  /** The sessions of a person: one with a certificate may have several. */
  sessionsOf(id: string): readonly number[] {
    return this.#users.values().flatMap((user) => (senderId(user) === id ? [user.session] : []))
  }

  updateChannel({ channelId: id, ...state }: ChannelState): void {
    if (id === undefined) return
    this.#channels.set(id, {
      ...(this.#channels.get(id) ?? { id, name: '' }),
      ...omitUndefined({ ...state, name: shortName(state) }),
    })
  }
  removeChannel(id: number): void {
    this.#channels.delete(id)
  }
  hasChannel(id: number): boolean {
    return this.#channels.has(id)
  }
  channelName(id: number): string | undefined {
    return this.#channels.get(id)?.name
  }
  /** The channel with this path below the root, or else with this name. */
  findChannel(wanted: string): number | undefined {
    const text = wanted.toLowerCase()
    const channels = this.#channels.values()
    const found =
      channels.find((channel) => this.#path(channel) === text) ??
      channels.find(({ name }) => name.toLowerCase() === text)
    return found?.id
  }

  #path(channel: Channel): string {
    const names = [channel.name]
    let at = channel.parent === undefined ? undefined : this.#channels.get(channel.parent)
    for (let depth = 0; at?.parent !== undefined && depth < MAX_DEPTH; depth++) {
      names.unshift(at.name)
      at = this.#channels.get(at.parent)
    }
    return names.join('/').toLowerCase()
  }
}

const shortName = ({ name }: { readonly name?: string }): string | undefined => name?.slice(0, MAX_NAME)
