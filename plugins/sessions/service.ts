import type { Hooks, Statement } from 'svc/sdk'
import { randomUUID } from 'node:crypto'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import { SessionCleared, SessionReset } from './contract.ts'
import type { Message, Session, Sessions } from './contract.ts'
import type { MessageRow, SessionRow } from './schema.ts'
import type { SessionStore } from './store.ts'

export class SessionService implements Sessions {
  readonly #store: SessionStore
  readonly #agents: Agents
  readonly #audit: Audit
  readonly #hooks: Hooks
  readonly #now: () => string
  constructor(parts: { store: SessionStore; agents: Agents; audit: Audit; hooks: Hooks; now: () => string }) {
    this.#store = parts.store
    this.#agents = parts.agents
    this.#audit = parts.audit
    this.#hooks = parts.hooks
    this.#now = parts.now
  }

  async find(id: string): Promise<Session | undefined> {
    const row = await this.#store.find(id)
    return row && toSession(row)
  }
  async list(agentId?: string): Promise<readonly Session[]> {
    return (await (agentId === undefined ? this.#store.all() : this.#store.ofAgent(agentId))).map(toSession)
  }
  ensure(sessionId: string, agentId: string): readonly Statement[] {
    return [this.#store.insert(sessionId, agentId, null, this.#now())]
  }
  append(sessionId: string, message: Message): readonly Statement[] {
    return this.#store.append(sessionId, message)
  }

  async tail(sessionId: string, turnId: string, limit: number): Promise<readonly Message[]> {
    const rows = (await this.#store.upTo(sessionId, turnId, limit)).toReversed()
    const first = rows.findIndex((row) => row.role === 'user')
    if (first >= 0) return rows.slice(first).map(toMessage)
    // The turn alone is longer than the limit: without the question there is nothing to answer.
    return this.turn(sessionId, turnId)
  }

  async page(sessionId: string, options: { readonly limit: number; readonly before?: string }): Promise<readonly Message[]> {
    let rows: readonly MessageRow[]
    if (options.before === undefined) rows = await this.#store.newest(sessionId, options.limit)
    else {
      const place = await this.#store.place(sessionId, options.before)
      rows = place ? await this.#store.before(sessionId, place, options.limit) : []
    }
    const page = [...rows]
    // A page never begins between a call and its results, or neither page could show what came of the call.
    for (let oldest = page.at(-1); oldest?.role === 'tool'; oldest = page.at(-1)) {
      const [earlier] = await this.#store.before(sessionId, oldest, 1)
      if (!earlier) break
      page.push(earlier)
    }
    return page.toReversed().map(toMessage)
  }

  async turn(sessionId: string, turnId: string): Promise<readonly Message[]> {
    return (await this.#store.ofTurn(sessionId, turnId)).map(toMessage)
  }
  /** Characters in the newest messages, those a model would get. */
  chars(sessionId: string, messages: number): Promise<number> { return this.#store.chars(sessionId, messages) }

  // Decision: the old session stays readable under its id. The interface asks for a new, empty one, and a transcript that is
  // deleted cannot be brought back; `DELETE …/history` and `DELETE /api/sessions/{id}` are there for that.
  async reset(agentId: string): Promise<string> {
    const agent = await this.#agents.require(agentId)
    const id = await this.create(agentId, null, `session reset: ${agent.sessionId} left`)
    await this.#hooks.emit(SessionReset, { agentId, sessionId: id, previousId: agent.sessionId })
    return id
  }
  /** A new session, made the active one. */
  async create(agentId: string, label: string | null, why = 'session created'): Promise<string> {
    await this.#agents.require(agentId)
    const id = randomUUID()
    await this.#store.commit([
      this.#store.insert(id, agentId, label, this.#now()),
      this.#audit.entry({ event: 'session_changed', agentId, details: `${why}, ${id} is active` }),
    ])
    await this.#agents.activate(agentId, id)
    return id
  }
  async activate(agentId: string, sessionId: string): Promise<void> {
    await this.#audit.write({ event: 'session_changed', agentId, details: `session ${sessionId} is active` })
    await this.#agents.activate(agentId, sessionId)
  }
  async clear(agentId: string): Promise<void> {
    const { sessionId } = await this.#agents.require(agentId)
    await this.#store.commit([
      ...this.#store.clear(sessionId), this.#audit.entry({ event: 'session_changed', agentId, details: `history of session ${sessionId} deleted` }),
    ])
    await this.#hooks.emit(SessionCleared, { agentId, sessionId })
  }
  async remove(session: Session): Promise<void> {
    const { id, agentId } = session
    await this.#store.commit([...this.#store.remove(id), this.#audit.entry({ event: 'session_changed', agentId, details: `session ${id} deleted` })])
    await this.#hooks.emit(SessionCleared, { agentId, sessionId: id })
  }
  /** Everything of an agent that is gone; its removal is in the audit trail already. */
  async forget(agentId: string): Promise<void> { await this.#store.commit(this.#store.removeOfAgent(agentId)) }
}

function toSession(row: SessionRow): Session {
  return { id: row.id, agentId: row.agent_id, label: row.label, messageCount: row.message_count, createdAt: row.created_at }
}
function toMessage(row: MessageRow): Message {
  return {
    id: row.id, role: row.role, blocks: row.blocks, turnId: row.turn_id, createdAt: row.created_at,
    ...(row.mark === null ? {} : { mark: row.mark }),
  }
}
