import { Refusal } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { Cluster, Member } from './contract.ts'
import type { MemberState } from './schema.ts'

export interface ListedMember extends Member {
  /** Seconds since it was last seen to be alive. */
  readonly seenSecs: number
  readonly leaseSecs: number
  /** Plugins of svc that failed there and work in another daemon. */
  readonly lacks: string | undefined
}

/** What the plugin itself does with the daemons on the database. */
export interface Members extends Cluster {
  list(): Promise<readonly ListedMember[]>
  /** Throws `not_found` for a daemon that is not there. */
  setState(id: string, state: MemberState): Promise<void>
}

export function notAMember(id: string): Refusal {
  return new Refusal('not_found', `No daemon ${id} is on this database; GET /api/cluster lists those that are`)
}

/** The daemon on a database that no other can use. */
export class OnlyDaemon implements Members {
  readonly self: string
  readonly #member: Member
  readonly #daemon: Pick<Daemon, 'ownPort'>
  readonly #onState: (state: MemberState) => void
  #state: MemberState = 'active'

  constructor(member: Member, daemon: Pick<Daemon, 'ownPort'>, onState: (state: MemberState) => void) {
    this.self = member.id
    this.#member = member
    this.#daemon = daemon
    this.#onState = onState
  }

  get isDraining(): boolean {
    return this.#state !== 'active'
  }
  async members(): Promise<readonly Member[]> {
    const { address = this.#daemon.ownPort.host() } = this.#member
    return [{ ...this.#member, address, state: this.isDraining ? 'draining' : 'active' }]
  }
  async list(): Promise<readonly ListedMember[]> {
    return (await this.members()).map((member) => ({ ...member, seenSecs: 0, leaseSecs: 0, lacks: undefined }))
  }
  async setState(id: string, state: MemberState): Promise<void> {
    if (id !== this.self) throw notAMember(id)
    if (state === this.#state) return
    this.#state = state
    this.#onState(state)
  }
  isAlive(id: string): boolean {
    return id === this.self
  }
  fence(): readonly Statement[] {
    return []
  }
  unlessAlive(): readonly Statement[] {
    return []
  }
  async agree(): Promise<void> {}
}
