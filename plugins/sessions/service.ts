import { Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import { randomUUID } from 'node:crypto'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import { SessionCleared, SessionReset } from './contract.ts'
import type { Message, Session, Sessions, Summary, TurnFailure } from './contract.ts'
import type { MessageRow, SessionRow, SummaryRow } from './schema.ts'
import type { SessionStore } from './store.ts'
import { titleOf } from './title.ts'
import { toSummary } from './summary/store.ts'
import type { SummaryStore } from './summary/store.ts'

const START = { turn_seq: 0, seq: 0 }

export class SessionService implements Sessions {
  readonly #store: SessionStore
  readonly #summaries: SummaryStore
  readonly #agents: Agents
  readonly #audit: Audit
  readonly #hooks: Hooks
  readonly #now: () => string
  constructor(parts: {
    store: SessionStore
    summaries: SummaryStore
    agents: Agents
    audit: Audit
    hooks: Hooks
    now: () => string
  }) {
    this.#store = parts.store
    this.#summaries = parts.summaries
    this.#agents = parts.agents
    this.#audit = parts.audit
    this.#hooks = parts.hooks
    this.#now = parts.now
  }

  async find(id: string): Promise<Session | undefined> {
    const row = await this.#store.find(id)
    return row && toSession(row)
  }
  /** Throws `session_not_found`. */
  async require(id: string): Promise<Session> {
    const session = await this.find(id)
    if (!session) throw new Refusal('session_not_found', `No session ${id}`)
    return session
  }
  async list(agentId?: string): Promise<readonly Session[]> {
    return (await (agentId === undefined ? this.#store.all() : this.#store.ofAgent(agentId))).map(toSession)
  }
  async findByLabel(agentId: string, label: string): Promise<Session | undefined> {
    const row = await this.#store.labelled(agentId, label)
    return row && toSession(row)
  }
  ensure(
    sessionId: string,
    agentId: string,
    { at = this.#now(), label }: { readonly at?: string; readonly label?: string | undefined } = {},
  ): readonly Statement[] {
    return this.#store.isKnown(sessionId) ? [] : [this.#store.insert(sessionId, agentId, label ?? null, at)]
  }
  append(
    sessionId: string,
    message: Message,
    { opens = false }: { readonly opens?: boolean } = {},
  ): readonly Statement[] {
    return this.#store.append(sessionId, message, opens)
  }

  fail(sessionId: string, turnId: string, failure: TurnFailure): readonly Statement[] {
    return this.#store.fail(sessionId, turnId, failure)
  }
  hide(sessionId: string, turnId: string, because: 'retried' | 'dropped'): readonly Statement[] {
    return this.#store.hide(sessionId, turnId, because)
  }
  lastFailed(sessionId: string): Promise<string | undefined> {
    return this.#store.lastFailed(sessionId)
  }
  isHidden(sessionId: string, turnId: string): Promise<boolean> {
    return this.#store.isHidden(sessionId, turnId)
  }

  async tail(sessionId: string, turnId: string, limit: number): Promise<readonly Message[]> {
    const [found, summary] = await Promise.all([
      this.#store.upTo(sessionId, turnId, limit),
      this.#summaries.current(sessionId),
    ])
    const messages: Message[] = summary === undefined ? [] : [toNote(summary)]
    let hasQuestion = false
    for (let at = found.length - 1; at >= 0; at--) {
      const row = found[at]
      if (!row || (summary !== undefined && row.turn_id !== turnId && !isAfter(row, summary))) continue
      hasQuestion ||= opensTurn(row)
      if (hasQuestion || summary !== undefined) messages.push(toMessage(row))
    }
    if (hasQuestion) return messages
    // The turn alone exceeds the limit: without the question there is nothing to answer.
    const own = await this.turn(sessionId, turnId)
    return summary === undefined || own.length === 0 ? own : [toNote(summary), ...own]
  }
  async window(sessionId: string, limit: number): Promise<readonly Message[]> {
    const [found, summary] = await Promise.all([
      this.#store.newestTold(sessionId, limit),
      this.#summaries.current(sessionId),
    ])
    const rows = found.toReversed().filter((row) => summary === undefined || isAfter(row, summary))
    const messages = (summary === undefined ? rows.slice(Math.max(0, rows.findIndex(opensTurn))) : rows).map(toMessage)
    return summary === undefined ? messages : [toNote(summary), ...messages]
  }
  async summary(sessionId: string): Promise<Summary | undefined> {
    const row = await this.#summaries.current(sessionId)
    return row && toSummary(row)
  }
  async uncovered(sessionId: string, { limit, before }: { readonly limit: number; readonly before?: string }) {
    const [summary, undone] = await Promise.all([this.#summaries.current(sessionId), this.#summaries.undone(sessionId)])
    const start = toPlace(summary) ?? START
    const back =
      undone && isAfter(toPlace(undone) ?? START, summary ?? { last_turn_seq: 0, last_seq: 0 })
        ? toPlace(undone)
        : undefined
    const rows = await this.#store.between(sessionId, start, before, limit)
    const [total, rested] = await Promise.all([
      rows.length < limit ? rows.length : this.#store.countAfter(sessionId, start, before),
      back ? this.#store.countAfter(sessionId, back, before) : undefined,
    ])
    return { messages: rows.toReversed().map(toMessage), total, rested: rested ?? total }
  }
  summarise(summary: Summary, statements: readonly Statement[]): Promise<boolean> {
    return this.#summaries.add(summary, statements)
  }
  async restore(sessionId: string): Promise<Summary | undefined> {
    const [row, session] = await Promise.all([this.#summaries.current(sessionId), this.#store.find(sessionId)])
    if (!row || !session) return undefined
    await this.#summaries.undo(row, this.#now(), [
      this.#audit.entry({
        event: 'session_changed',
        agentId: session.agent_id,
        details: `summary ${row.id} of session ${sessionId} taken back`,
      }),
    ])
    return toSummary(row)
  }

  async page(
    sessionId: string,
    options: { readonly limit: number; readonly before?: string },
  ): Promise<readonly Message[]> {
    let rows: readonly MessageRow[]
    if (options.before === undefined) rows = await this.#store.newest(sessionId, options.limit)
    else {
      const place = await this.#store.place(sessionId, options.before)
      rows = place ? await this.#store.before(sessionId, place, options.limit) : []
    }
    const page = [...rows]
    // A page never begins between a call and its results, or neither page could show the result of the call.
    for (let oldest = page.at(-1); oldest?.role === 'tool'; oldest = page.at(-1)) {
      const [earlier] = await this.#store.before(sessionId, oldest, 1)
      if (!earlier) break
      page.push(earlier)
    }
    return page.toReversed().map(toMessage)
  }

  /** Whether any message is shown before this one. */
  async hasEarlier(sessionId: string, messageId: string): Promise<boolean> {
    const place = await this.#store.place(sessionId, messageId)
    return place !== undefined && (await this.#store.before(sessionId, place, 1)).length > 0
  }

  async order(sessionId: string, turnIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = await Promise.all(turnIds.map((turnId) => this.#store.ofTurn(sessionId, turnId)))
    return new Map(found.flatMap(([first]) => (first ? [[first.turn_id, first.turn_seq] as const] : [])))
  }
  async turn(sessionId: string, turnId: string): Promise<readonly Message[]> {
    return (await this.#store.ofTurn(sessionId, turnId)).map(toMessage)
  }
  /** Characters in the newest messages, those a model would get. */
  chars(sessionId: string, messages: number): Promise<number> {
    return this.#store.chars(sessionId, messages)
  }

  // Decision: the old session stays readable under its id. The interface requires a new, empty one, and a deleted
  // transcript cannot be restored. `DELETE …/history` and `DELETE /api/sessions/{id}` delete.
  async reset(agentId: string, given?: string): Promise<string> {
    const agent = await this.#agents.require(agentId)
    // It was made by a request whose answer was lost.
    if (given !== undefined && agent.sessionId === given) return given
    const id = await this.create(agentId, null, { id: given, why: `session reset: ${agent.sessionId} left` })
    await this.#hooks.emit(SessionReset, { agentId, sessionId: id, previousId: agent.sessionId })
    return id
  }
  /** A new session, made the active one. With an id that there is already, that session stays as it is. */
  async create(
    agentId: string,
    label: string | null,
    { id = randomUUID(), why = 'session created' }: { readonly id?: string | undefined; readonly why?: string } = {},
  ): Promise<string> {
    await this.#agents.require(agentId)
    if (label !== null) await this.#free(agentId, label, id)
    await this.#store.commit([
      this.#store.insert(id, agentId, label, this.#now()),
      this.#audit.entry({ event: 'session_changed', agentId, details: `${why}, ${id} is active` }),
    ])
    await this.#agents.activate(agentId, id)
    return id
  }
  /**
   * `null` removes the label. Throws `conflict` when another session of the agent has it: a label finds one session.
   */
  async label({ id, agentId, label: before }: Session, label: string | null): Promise<void> {
    if (label !== null) await this.#free(agentId, label, id)
    await this.#store.commit([
      ...this.ensure(id, agentId),
      this.#store.setLabel(id, label),
      this.#audit.entry({
        event: 'session_changed',
        agentId,
        details: label === null ? `session ${id} has no label` : `session ${id} is labelled "${label}"`,
        change: { before: { label: before }, after: { label } },
      }),
    ])
  }
  async #free(agentId: string, label: string, except?: string): Promise<void> {
    const other = await this.#store.labelled(agentId, label)
    if (other && other.id !== except)
      throw new Refusal('conflict', `Another session of this agent is labelled "${label}"`, {
        details: { session_id: other.id },
      })
  }
  async activate(agentId: string, sessionId: string): Promise<void> {
    await this.#audit.write({ event: 'session_changed', agentId, details: `session ${sessionId} is active` })
    await this.#agents.activate(agentId, sessionId)
  }
  async clear(agentId: string): Promise<void> {
    const { sessionId } = await this.#agents.require(agentId)
    await this.#store.commit([
      ...this.#store.clear(sessionId),
      ...this.#summaries.remove(sessionId),
      this.#audit.entry({ event: 'session_changed', agentId, details: `history of session ${sessionId} deleted` }),
    ])
    this.#summaries.forget(sessionId)
    await this.#hooks.emit(SessionCleared, { agentId, sessionId })
  }
  async remove({ id, agentId }: Pick<Session, 'id' | 'agentId'>): Promise<void> {
    await this.#store.commit([
      ...this.#summaries.remove(id),
      ...this.#store.remove(id),
      this.#audit.entry({ event: 'session_changed', agentId, details: `session ${id} deleted` }),
    ])
    this.#summaries.forget(id)
    await this.#hooks.emit(SessionCleared, { agentId, sessionId: id })
  }
  /** Everything of a removed agent; the removal is in the audit trail already. */
  async forget(agentId: string): Promise<void> {
    await this.#store.commit([this.#summaries.removeOfAgent(agentId), ...this.#store.removeOfAgent(agentId)])
    this.#summaries.forgetAll()
  }
}

/** The first message that a model can get: a note of the daemon is given as a message of the user. */
const opensTurn = ({ role }: MessageRow): boolean => role === 'user' || role === 'system'

function toSession(row: SessionRow): Session {
  return {
    id: row.id,
    agentId: row.agent_id,
    label: row.label,
    title: row.label ?? titleOf(row.begins ?? ''),
    messageCount: row.message_count,
    createdAt: row.created_at,
  }
}
function toMessage(row: MessageRow): Message {
  return (row.message ??= made(row))
}
function made(row: MessageRow): Message {
  return {
    id: row.id,
    role: row.role,
    blocks: row.blocks,
    turnId: row.turn_id,
    createdAt: row.created_at,
    ...(row.mark === null ? {} : { mark: row.mark }),
    ...(row.turn_state === 'failed' &&
      row.role === 'user' && {
        failure: {
          code: row.error_code ?? 'internal_error',
          message: row.error ?? 'the reason is not recorded',
          retryable: row.retryable !== 0,
        },
      }),
  }
}

type Place = { readonly turn_seq: number; readonly seq: number }
type Covered = { readonly last_turn_seq: number; readonly last_seq: number }
function toPlace(row: Covered | undefined): Place | undefined {
  return row && { turn_seq: row.last_turn_seq, seq: row.last_seq }
}
function isAfter(place: Place, { last_turn_seq, last_seq }: Covered): boolean {
  return place.turn_seq > last_turn_seq || (place.turn_seq === last_turn_seq && place.seq > last_seq)
}
/** A summary as the model gets it: as an earlier part of the conversation, and not as a rule. */
function toNote(row: SummaryRow): Message {
  const head = `[Summary of the earlier part of this conversation, ${row.message_count} messages]`
  const text = `${head}\n${row.text}\n[End of the summary; the conversation goes on from here]`
  return {
    id: row.id,
    role: 'user',
    blocks: [{ type: 'text', text, labels: row.labels }],
    turnId: '',
    createdAt: row.created_at,
  }
}
