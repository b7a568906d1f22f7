import type { Server } from '@modelcontextprotocol/server'
import type { Principal } from 'svc/sdk'
import type { McpBackend, McpCaller } from '../backend/backend.ts'
import type { ServedClient } from '../server.ts'
import type { SessionTransport } from './transport.ts'

/** A client that shook hands. It belongs to whoever opened it. */
export interface Session {
  readonly id: string
  readonly principal: Principal
  readonly caller: McpCaller
  readonly backend: McpBackend
  readonly server: Server
  readonly transport: SessionTransport
  readonly client: ServedClient
  lastUsedMs: number
}

export interface SessionRegistryOptions {
  readonly max_sessions: number
  readonly session_idle_secs: number
}

/** The open sessions, limited in number and in idle time. */
export class SessionRegistry {
  readonly #sessions = new Map<string, Session>()
  readonly #options: SessionRegistryOptions
  readonly #now: () => number

  constructor(options: SessionRegistryOptions, now: () => number) {
    this.#options = options
    this.#now = now
  }
  get size(): number {
    return this.#sessions.size
  }
  all(): IterableIterator<Session> {
    return this.#sessions.values()
  }

  /** The session of this id if it was opened by the same principal: nobody learns of those of others. */
  find(id: string, principal: Principal, backend: McpBackend): Session | undefined {
    const session = this.#sessions.get(id)
    if (!session || session.backend !== backend || !isSame(session.principal, principal)) return undefined
    session.lastUsedMs = this.#now()
    return session
  }

  /**
   * Whether there is room for one more of this principal. A session of whoever has most is ended for it: the one that
   * was idle longest, or that only listens where it is somebody else's. Nobody can keep the others out.
   */
  async makeRoom(principal: Principal): Promise<boolean> {
    if (this.#sessions.size < this.#options.max_sessions) return true
    const all = [...this.#sessions.values()]
    const held = mostHeld(all)
    const isOther = held.some((session) => !isSame(session.principal, principal))
    const leaving =
      longestUnused(held.filter(isIdle)) ??
      (isOther ? longestUnused(held.filter(({ transport }) => transport.running === 0)) : undefined) ??
      longestUnused(all.filter(isIdle))
    if (!leaving) return false
    await this.end(leaving)
    return true
  }
  add(session: Session): void {
    this.#sessions.set(session.id, session)
  }
  /** What runs in it is cancelled. */
  async end(session: Session): Promise<void> {
    if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id)
    session.client.close()
    await session.server.close()
  }
  async sweep(): Promise<void> {
    const oldest = this.#now() - this.#options.session_idle_secs * 1000
    for (const session of this.#sessions.values())
      if (isIdle(session) && session.lastUsedMs < oldest) await this.end(session)
  }
  async endAll(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)))
  }
}

function isIdle({ transport }: Session): boolean {
  return transport.running === 0 && transport.openStreams === 0
}
function longestUnused(sessions: readonly Session[]): Session | undefined {
  return sessions.toSorted((one, other) => one.lastUsedMs - other.lastUsedMs)[0]
}
/** The sessions of the principal that has most of them. */
function mostHeld(sessions: readonly Session[]): readonly Session[] {
  const held = Map.groupBy(sessions, ({ principal }) => keyOf(principal))
  return [...held.values()].reduce<readonly Session[]>((most, each) => (each.length > most.length ? each : most), [])
}
const keyOf = (principal: Principal): string => `${principal.kind} ${'id' in principal ? principal.id : ''}`
function isSame(one: Principal, other: Principal): boolean {
  return keyOf(one) === keyOf(other)
}
