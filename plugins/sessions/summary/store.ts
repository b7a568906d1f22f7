import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Summary } from '../contract.ts'
import { SummaryRow } from '../schema.ts'

/**
 * How many sessions keep their summary in memory, so that a turn need not look for one that most sessions do not have.
 */
const REMEMBERED = 1000

export class SummaryStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof SummaryRow>
  readonly #known = new Map<string, SummaryRow | undefined>()
  #changes = 0
  readonly #tellChanged: (sessionId: string) => readonly Statement[]
  /** `tellChanged` is for each batch that changes the summaries of a session: other daemons may remember them. */
  constructor(
    db: PluginDatabase,
    log: Pick<Logger, 'error'>,
    tellChanged: (sessionId: string) => readonly Statement[] = () => [],
  ) {
    this.#db = db
    this.#rows = new RowReader({ table: 'sessions_summary', key: ['session_id', 'id'], schema: SummaryRow, log })
    this.#tellChanged = tellChanged
  }

  /** The valid summary. */
  async current(sessionId: string): Promise<SummaryRow | undefined> {
    if (this.#known.has(sessionId)) return this.#known.get(sessionId)
    const changes = this.#changes
    const row = this.#rows.oneOrThrow(
      await this.#db.one`SELECT * FROM sessions_summary
      WHERE session_id = ${sessionId} AND undone_at IS NULL
      ORDER BY last_turn_seq DESC, last_seq DESC, id DESC LIMIT 1`,
    )
    if (changes === this.#changes) this.#remember(sessionId, row)
    return row
  }
  /** The newest undone summary. */
  async undone(sessionId: string): Promise<SummaryRow | undefined> {
    return this.#rows.oneOrThrow(
      await this.#db.one`SELECT * FROM sessions_summary
      WHERE session_id = ${sessionId} AND undone_at IS NOT NULL
      ORDER BY last_turn_seq DESC, last_seq DESC, id DESC LIMIT 1`,
    )
  }
  /** Returns `false`, and stores nothing, when the last message of the summary was removed. */
  async add(summary: Summary, statements: readonly Statement[]): Promise<boolean> {
    const { id, sessionId, text, labels, firstMessageId, lastMessageId, messageCount, createdAt } = summary
    const [inserted] = await this.#db.batch([
      this.#db.sql`INSERT INTO sessions_summary (session_id, last_turn_seq, last_seq, id, text, labels,
          first_message_id, last_message_id, message_count, created_at)
        SELECT m.session_id, m.turn_seq, m.seq, ${id}, ${text}, ${JSON.stringify(labels)},
          ${firstMessageId}, ${lastMessageId}, ${messageCount}, ${createdAt}
        FROM sessions_message m WHERE m.id = ${lastMessageId} AND m.session_id = ${sessionId}`,
      ...statements,
      ...this.#tellChanged(sessionId),
    ])
    this.forget(sessionId)
    return inserted?.changes === 1
  }
  async undo(row: SummaryRow, at: string, statements: readonly Statement[]): Promise<void> {
    await this.#db.batch([
      this.#db
        .sql`UPDATE sessions_summary SET undone_at = ${at} WHERE session_id = ${row.session_id} AND id = ${row.id}`,
      ...statements,
      ...this.#tellChanged(row.session_id),
    ])
    this.forget(row.session_id)
  }
  remove(sessionId: string): readonly Statement[] {
    return [this.#db.sql`DELETE FROM sessions_summary WHERE session_id = ${sessionId}`, ...this.#tellChanged(sessionId)]
  }
  removeOfAgent(agentId: string): Statement {
    return this.#db.sql`DELETE FROM sessions_summary
      WHERE session_id IN (SELECT id FROM sessions_session WHERE agent_id = ${agentId})`
  }
  forget(sessionId: string): void {
    this.#changes++
    this.#known.delete(sessionId)
  }
  forgetAll(): void {
    this.#changes++
    this.#known.clear()
  }

  #remember(sessionId: string, row: SummaryRow | undefined): void {
    const [oldest] = this.#known.keys()
    if (this.#known.size >= REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(sessionId, row)
  }
}

export function toSummary(row: SummaryRow): Summary {
  return {
    id: row.id,
    sessionId: row.session_id,
    text: row.text,
    labels: row.labels,
    firstMessageId: row.first_message_id,
    lastMessageId: row.last_message_id,
    messageCount: row.message_count,
    createdAt: row.created_at,
  }
}
