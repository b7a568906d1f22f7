import { BEATS, HeartbeatWatch, isNotHeld, StartRefused } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { MAX_LEASE_SECS } from './config.ts'
import type { Agreement, Member } from './contract.ts'
import { notAMember } from './members.ts'
import type { ListedMember, Members } from './members.ts'
import type { EffectiveState, MemberRow, MemberState } from './schema.ts'
import { stateOf, toMember } from './store.ts'
import type { MemberStore } from './store.ts'

export interface MembershipDeps {
  readonly store: MemberStore
  readonly audit: Pick<Audit, 'entry'>
  /** For the batch of a change of the members: the others hear of it. */
  readonly tellChange: () => readonly Statement[]
  /** As it joins. */
  readonly self: Member
  readonly leaseMs: number
  readonly log: Logger
  /** Called with all members, this daemon included, whenever they were read. */
  onRead(rows: readonly MemberRow[]): void
  /** Another daemon is gone. */
  onEnded(member: Member): void
  /**
   * This daemon was declared dead. `twin`: by a daemon whose machine and home have the same names, so that each takes the
   * other for an earlier run of itself.
   */
  onDead(twin: Member | undefined): void
  /** Somebody has changed the state of this daemon, at whichever daemon, or it lacks something. */
  onState(state: EffectiveState): void
  /** Of this machine, in milliseconds; never set back. */
  readonly now: () => number
}

/** This daemon among those on a PostgreSQL database: it beats, and watches the others beat. */
export class Membership implements Members {
  readonly self: string
  readonly #deps: MembershipDeps
  readonly #watch = new HeartbeatWatch()
  readonly #looks = new SerialQueue()
  #known = new Map<string, Member>()
  /** The newest count of each, and when it was first seen. */
  #seen = new Map<string, { readonly beats: number; readonly at: number }>()
  #state: EffectiveState = 'active'
  #lacks: string | null = null
  #isDead = false
  #isCutOff = false
  #declared = 0

  constructor(deps: MembershipDeps) {
    this.#deps = deps
    this.self = deps.self.id
  }

  get isDraining(): boolean {
    return this.#state !== 'active'
  }
  /** As known here. */
  get known(): readonly Member[] {
    return [...this.#known.values()]
  }
  /** How many are alive, as known here. */
  count(): number {
    return Math.max(1, this.#known.size)
  }
  /** How many others this daemon has declared dead. */
  get declaredDead(): number {
    return this.#declared
  }

  async members(): Promise<readonly Member[]> {
    return (await this.#deps.store.members()).map(toMember)
  }
  isAlive(id: string): boolean {
    return this.#known.has(id) && !(this.#isDead && id === this.self)
  }
  fence(): readonly Statement[] {
    return [this.#deps.store.requireAlive(this.self)]
  }
  unlessAlive(id: string): readonly Statement[] {
    return [this.#deps.store.requireGone(id)]
  }

  async agree({ key, value, otherwise }: Agreement): Promise<void> {
    const { store } = this.#deps
    try {
      await store.commit(store.agree(this.self, key, value))
    } catch (error) {
      const isRefused = error instanceof Refusal && isNotHeld(error.cause)
      const others = isRefused ? await store.disagreeing(this.self, key, value) : []
      if (others.length === 0) throw error
      const theirs = others.map((other) => `"${other.value}" in ${other.name}`).join(', ')
      throw new StartRefused(
        `${key} is "${value}" here and ${theirs}, on the same database: ${otherwise}`,
        `set ${key} as in the others; to change it, stop all of them first (one that was killed counts until its lease ` +
          'has ended)',
        { cause: error },
      )
    }
  }

  /** A home admits one process, so an earlier run on it is gone, however it ended. */
  async join(): Promise<void> {
    const { store, self, leaseMs } = this.#deps
    await store.commit([store.leaveEarlier(self.homeId), store.join(self, leaseMs), ...this.#record(self, 'joined')])
    await this.refresh()
  }

  /** Counts up its own row, and declares those dead that stood still. Call it `BEATS` times in a lease. */
  async beat(): Promise<void> {
    if (this.#isDead) return
    try {
      await this.#beat()
      this.#isCutOff = false
    } catch (error) {
      this.#watch.startAgain()
      if (!(error instanceof Refusal)) throw error
      if (!this.#isCutOff) this.#deps.log.warn('this daemon cannot tell the others that it is alive', error)
      this.#isCutOff = true
    }
  }
  async #beat(): Promise<void> {
    const { store, leaseMs } = this.#deps
    if (!(await store.beat(this.self, leaseMs))) {
      await this.refresh()
      return
    }
    const others = (await this.refresh()).filter(({ id }) => id !== this.self)
    for (const row of this.#watch.check(others, (other) => this.#patience(other))) await this.#declareDead(row)
  }

  /**
   * How many beats of this daemon another's row may stand still. It was counted up a beat before the first of them at
   * most: so the other is declared dead within its lease, and never before two thirds of it. No configuration has a
   * lease beyond the longest one, so a row that says so does not keep a dead daemon for ever.
   */
  #patience({ lease_ms: theirs }: MemberRow): number {
    const leaseMs = Math.min(theirs, MAX_LEASE_SECS * 1000)
    return Math.max(1, Math.ceil((leaseMs * BEATS) / this.#deps.leaseMs) - 1)
  }

  /** Reads who is there, and tells who is no longer. */
  refresh(): Promise<readonly MemberRow[]> {
    return this.#looks.run(async () => {
      const rows = await this.#deps.store.members()
      const gone = new Map(this.#known)
      for (const { id } of rows) gone.delete(id)
      this.#known = new Map(rows.map((row) => [row.id, toMember(row)]))
      this.#note(rows)
      this.#deps.onRead(rows)
      if (gone.delete(this.self)) this.#end(rows)
      if (!this.#isDead) for (const member of gone.values()) this.#deps.onEnded(member)
      return rows
    })
  }

  /** `address`: for operators. `listens`: where it is reached on its machine. */
  async setAddress(address: string, listens: string): Promise<void> {
    const { store, tellChange } = this.#deps
    await store.commit([store.setAddress(this.self, address, listens), ...tellChange()])
  }
  async setState(id: string, state: MemberState): Promise<void> {
    const { store } = this.#deps
    const member = (await this.members()).find((one) => one.id === id)
    if (!member) throw notAMember(id)
    await store.commit([store.setState(id, state), ...this.#record(member, EFFECTS[state])])
    await this.refresh()
  }
  /** Plugins that this daemon lacks and another one has: as long as there are any, it takes nothing over. */
  async setLacks(plugins: readonly string[]): Promise<void> {
    const { store, self } = this.#deps
    const lacks = plugins.length === 0 ? null : plugins.join(', ')
    if (lacks === this.#lacks) return
    const effect = lacks === null ? 'lacks no plugin any more' : `takes nothing more over: it lacks ${lacks}`
    await store.commit([store.setLacks(this.self, lacks), ...this.#record(self, effect)])
    this.#lacks = lacks
    await this.refresh()
  }
  async list(): Promise<readonly ListedMember[]> {
    const rows = await this.refresh()
    const now = this.#deps.now()
    return rows.map((row) => ({
      ...toMember(row),
      leaseSecs: row.lease_ms / 1000,
      lacks: row.lacks ?? undefined,
      seenSecs: Math.floor((now - (this.#seen.get(row.id)?.at ?? now)) / 1000),
    }))
  }

  /** The others may take over at once what it still owns. */
  async leave(): Promise<void> {
    const { store, self } = this.#deps
    if (this.#isDead) return
    await store.commit([store.requireAlive(this.self), store.leave(this.self), ...this.#record(self, 'left')])
  }

  async #declareDead(row: MemberRow): Promise<void> {
    const { store, log } = this.#deps
    const member = toMember(row)
    try {
      await store.commit([
        store.requireAlive(this.self),
        store.requireStill(row.id, row.beats),
        store.leave(row.id),
        ...this.#record(member, 'was declared dead: it did not count up its row for a lease'),
      ])
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      log.debug(`daemon ${describe(member)} is not declared dead: it has beaten again, or another was first`, error)
      return
    }
    this.#declared++
    log.warn(`daemon ${describe(member)} is dead: it did not count up its row for a lease`)
    await this.refresh()
  }

  #note(rows: readonly MemberRow[]): void {
    const now = this.#deps.now()
    this.#seen = new Map(
      rows.map(({ id, beats }) => {
        const seen = this.#seen.get(id)
        return [id, seen?.beats === beats ? seen : { beats, at: now }]
      }),
    )
    const own = rows.find(({ id }) => id === this.self)
    const state = own ? stateOf(own) : this.#state
    if (state === this.#state || state === 'unknown') return
    this.#state = state
    this.#deps.onState(state)
  }
  #record(member: Member, what: string): readonly Statement[] {
    const { audit, tellChange } = this.#deps
    return [audit.entry({ event: 'cluster_changed', details: `daemon ${describe(member)} ${what}` }), ...tellChange()]
  }
  #end(rows: readonly MemberRow[]): void {
    this.#isDead = true
    const twin = rows.find((row) => row.home_id === this.#deps.self.homeId)
    this.#deps.onDead(twin && toMember(twin))
  }
}

const EFFECTS = {
  active: 'takes work again',
  draining: 'takes nothing more over',
  stopping: 'takes nothing more over and stops',
} as const

function describe({ name, id, version }: Member): string {
  return `"${name}" (${id}, svc ${version})`
}
