import { randomInt } from 'node:crypto'
import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Message, TurnFailure } from './contract.ts'
import { ActivityRow, MarkRow, MessageRow, SessionRow } from './schema.ts'
import { MODULUS, numberOf, RecentMessageCache } from './recent-messages.ts'

/** Counted so that the tokens in the window are known without reading the texts. */
const CHARS_PER_MESSAGE = 16
/** Greater than the number of every turn, and small enough for every database. */
const MAX_TURN_SEQ = 2_147_483_647

export class SessionStore {
  readonly #db: PluginDatabase
  readonly #recent = new RecentMessageCache()
  #closed = false
  readonly #messages: RowReader<typeof MessageRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#messages = new RowReader({ table: 'sessions_message', key: ['id'], schema: MessageRow, log })
  }

  /** From now on nothing is appended here: the store that comes after this one knows only what it wrote itself. */
  close(): void {
    this.#closed = true
  }

  async find(id: string): Promise<SessionRow | undefined> {
    return v.parse(
      v.optional(SessionRow),
      await this.#db.one`SELECT s.*, (
        SELECT substr(m.blocks, 1, 600) FROM sessions_message m
        WHERE m.session_id = s.id AND m.role = 'user' AND m.turn_state IS NULL
        ORDER BY m.turn_seq, m.seq LIMIT 1) AS begins
      FROM sessions_session s WHERE s.id = ${id}`,
    )
  }
  async all(): Promise<readonly SessionRow[]> {
    return v.parse(
      v.array(SessionRow),
      await this.#db.all`SELECT s.*, (
        SELECT substr(m.blocks, 1, 600) FROM sessions_message m
        WHERE m.session_id = s.id AND m.role = 'user' AND m.turn_state IS NULL
        ORDER BY m.turn_seq, m.seq LIMIT 1) AS begins
      FROM sessions_session s ORDER BY s.created_at DESC, s.id`,
    )
  }
  async ofAgent(agentId: string): Promise<readonly SessionRow[]> {
    return v.parse(
      v.array(SessionRow),
      await this.#db.all`SELECT s.*, (
        SELECT substr(m.blocks, 1, 600) FROM sessions_message m
        WHERE m.session_id = s.id AND m.role = 'user' AND m.turn_state IS NULL
        ORDER BY m.turn_seq, m.seq LIMIT 1) AS begins
      FROM sessions_session s WHERE s.agent_id = ${agentId} ORDER BY s.created_at DESC, s.id`,
    )
  }
  async labelled(agentId: string, label: string): Promise<SessionRow | undefined> {
    return v.parse(
      v.optional(SessionRow),
      await this.#db.one`SELECT * FROM sessions_session
        WHERE agent_id = ${agentId} AND label = ${label} ORDER BY created_at DESC LIMIT 1`,
    )
  }
  /** Those that were written to last first. The messages of a branch are older than it. */
  async byActivity(): Promise<readonly ActivityRow[]> {
    return v.parse(
      v.array(ActivityRow),
      await this.#db.all`SELECT a.id, a.agent_id, a.active_at FROM (
      SELECT w.id, w.agent_id, CASE WHEN w.said_at > w.created_at THEN w.said_at ELSE w.created_at END AS active_at
      FROM (SELECT s.id, s.agent_id, s.created_at, (
        SELECT m.created_at FROM sessions_message m WHERE m.session_id = s.id
        ORDER BY m.turn_seq DESC, m.seq DESC LIMIT 1) AS said_at
      FROM sessions_session s) w) a ORDER BY a.active_at DESC, a.id`,
    )
  }
  setLabel(id: string, label: string | null): Statement {
    return this.#db.sql`UPDATE sessions_session SET label = ${label} WHERE id = ${id}`
  }
  /** Whether the session is there for certain, without looking. */
  isKnown(id: string): boolean {
    return this.#db.dialect === 'sqlite' && this.#recent.has(id)
  }
  insert(id: string, agentId: string, label: string | null, at: string): Statement {
    return this.#db
      .sql`INSERT INTO sessions_session (id, agent_id, label, message_count, created_at, appended, fingerprint)
      VALUES (${id}, ${agentId}, ${label}, 0, ${at}, 0, ${anyFingerprint()}) ON CONFLICT (id) DO NOTHING`
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#forgetting(id, this.#db.sql`DELETE FROM sessions_message WHERE session_id = ${id}`),
      this.#db.sql`DELETE FROM sessions_session WHERE id = ${id}`,
    ]
  }
  removeOfAgent(agentId: string): readonly Statement[] {
    this.#recent.clear()
    return [
      {
        ...this.#db.sql`DELETE FROM sessions_message
          WHERE session_id IN (SELECT id FROM sessions_session WHERE agent_id = ${agentId})`,
        written: () => this.#recent.clear(),
      },
      this.#db.sql`DELETE FROM sessions_session WHERE agent_id = ${agentId}`,
    ]
  }
  clear(id: string): readonly Statement[] {
    return [
      this.#forgetting(id, this.#db.sql`DELETE FROM sessions_message WHERE session_id = ${id}`),
      this.#db.sql`UPDATE sessions_session SET message_count = 0, fingerprint = ${anyFingerprint()} WHERE id = ${id}`,
    ]
  }

  /** Drops the copy of the session's messages now and again when the statement runs: it may be rebuilt in between. */
  #forgetting(id: string, statement: Statement): Statement {
    this.#recent.drop(id)
    return { ...statement, written: () => this.#recent.drop(id) }
  }

  /**
   * A turn belongs to one session, so its id is enough. Selecting from the session itself keeps messages out of a
   * removed session; its counter saves a lookup of the last message.
   */
  append(sessionId: string, message: Message, opens: boolean): readonly Statement[] {
    if (this.#closed) throw new Refusal('service_unavailable', 'The sessions were unloaded', { retryAfterSecs: 1 })
    const { id, turnId, role, createdAt, mark = null } = message
    const blocks = JSON.stringify(message.blocks)
    const chars = message.blocks.reduce((sum, block) => sum + blockChars(block), CHARS_PER_MESSAGE)
    // Elsewhere than on SQLite others write at the same time: counting first locks the session, so that the messages of
    // all of them get their numbers one after the other.
    const countsFirst = this.#db.dialect !== 'sqlite'
    const next = countsFirst ? 0 : 1
    // A known position is inserted as a value: a selection from the table being written would need a temporary one.
    const place = opens ? undefined : this.#recent.placeOf(sessionId, turnId)
    const insert = opens
      ? this.#db.sql`INSERT INTO sessions_message
          (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at)
        SELECT s.id, s.appended + ${next}, s.appended + ${next},
          ${id}, ${turnId}, ${role}, ${blocks}, ${mark}, ${chars}, ${createdAt}
        FROM sessions_session s WHERE s.id = ${sessionId}`
      : place !== undefined
        ? this.#db.sql`INSERT INTO sessions_message
          (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at)
        SELECT s.id, ${place}, s.appended + ${next}, ${id}, ${turnId}, ${role}, ${blocks}, ${mark}, ${chars}, ${createdAt}
        FROM sessions_session s WHERE s.id = ${sessionId}`
        : this.#db.sql`INSERT INTO sessions_message
          (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at)
        SELECT s.id,
          coalesce((SELECT m.turn_seq FROM sessions_message m WHERE m.turn_id = ${turnId} LIMIT 1),
            s.appended + ${next}),
          s.appended + ${next}, ${id}, ${turnId}, ${role}, ${blocks}, ${mark}, ${chars}, ${createdAt}
        FROM sessions_session s WHERE s.id = ${sessionId}`
    const row = { id, turn_id: turnId, role, blocks: message.blocks, mark, created_at: createdAt }
    const inserted: Statement = {
      ...insert,
      written: (changes) => {
        if (changes > 0) this.#recent.add(sessionId, row, blocks.length, opens)
      },
    }
    const counted = this.#db.sql`UPDATE sessions_session SET message_count = message_count + 1, appended = appended + 1,
        fingerprint = (fingerprint * 31 + ${numberOf(id)}) % ${MODULUS} WHERE id = ${sessionId}`
    return countsFirst ? [counted, inserted] : [inserted, counted]
  }

  /** From now on no model gets the turn, and its message shows the reason. */
  fail(sessionId: string, turnId: string, { code, message, retryable }: TurnFailure): readonly Statement[] {
    return [
      this.#changed(sessionId, turnId),
      this.#forgetting(
        sessionId,
        this.#db.sql`UPDATE sessions_message SET turn_state = 'failed', error_code = ${code}, error = ${message},
          retryable = ${retryable ? 1 : 0}
          WHERE turn_id = ${turnId} AND coalesce(session_id, '') = ${sessionId} AND role <> 'system'
          AND turn_state IS NULL`,
      ),
    ]
  }
  hide(sessionId: string, turnId: string, because: 'retried' | 'dropped'): readonly Statement[] {
    return [
      this.#changed(sessionId, turnId),
      this.#db.sql`UPDATE sessions_session SET message_count = message_count - (
        SELECT count(*) FROM sessions_message m
        WHERE m.turn_id = ${turnId} AND coalesce(m.session_id, '') = ${sessionId}
          AND m.role <> 'system' AND coalesce(m.turn_state, 'failed') = 'failed') WHERE id = ${sessionId}`,
      this.#forgetting(
        sessionId,
        this.#db.sql`UPDATE sessions_message SET turn_state = ${because}
          WHERE turn_id = ${turnId} AND coalesce(session_id, '') = ${sessionId} AND role <> 'system'`,
      ),
    ]
  }
  /** A copy of the session's messages in another process proves itself by this no longer. */
  #changed(sessionId: string, turnId: string): Statement {
    return this.#db.sql`UPDATE sessions_session SET fingerprint = (fingerprint * 31 + ${numberOf(turnId)}) % ${MODULUS}
      WHERE id = ${sessionId}`
  }
  async lastFailed(sessionId: string): Promise<string | undefined> {
    const row = await this.#db.one<{ turn_id: string }>`SELECT turn_id FROM sessions_message
      WHERE session_id = ${sessionId} AND (turn_state = 'failed' OR (turn_state IS NULL AND mark = 'interrupted'))
      ORDER BY turn_seq DESC LIMIT 1`
    return row?.turn_id
  }
  async isHidden(sessionId: string, turnId: string): Promise<boolean> {
    const row = await this.#db.one`SELECT id FROM sessions_message WHERE turn_id = ${turnId}
      AND coalesce(session_id, '') = ${sessionId} AND turn_state IN ('retried', 'dropped') LIMIT 1`
    return row !== undefined
  }

  /** Newest first; what was accepted after the turn is left out, and what failed before it. */
  async upTo(sessionId: string, turnId: string, limit: number): Promise<readonly MessageRow[]> {
    // The file of SQLite has one writer, and that is this process.
    if (this.#db.dialect !== 'sqlite' && this.#recent.has(sessionId)) {
      this.#recent.check(
        sessionId,
        v.parse(
          v.optional(MarkRow),
          await this.#db.one`SELECT appended, fingerprint FROM sessions_session WHERE id = ${sessionId}`,
        ),
      )
    }
    const known = this.#recent.take(sessionId, turnId, limit)
    if (known) return known
    const found = await this.#db.all<{
      turn_seq: unknown
      newest: unknown
      blocks: unknown
    }>`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at,
        (SELECT s.appended FROM sessions_session s WHERE s.id = ${sessionId}) AS appended,
        (SELECT s.fingerprint FROM sessions_session s WHERE s.id = ${sessionId}) AS fingerprint,
        (SELECT max(m.turn_seq) FROM sessions_message m WHERE m.session_id = ${sessionId}) AS newest
      FROM sessions_message
      WHERE session_id = ${sessionId} AND turn_seq <= (
        SELECT m.turn_seq FROM sessions_message m WHERE m.turn_id = ${turnId} LIMIT 1)
        AND (turn_state IS NULL OR turn_id = ${turnId})
      ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`
    const rows = this.#messages.allOrThrow(found)
    const [first] = found
    // Where later turns wait already, what was read is not the end of the session.
    if (first && first.turn_seq === first.newest) {
      this.#recent.put(
        sessionId,
        v.parse(MarkRow, first),
        rows,
        found.map(({ blocks }) => String(blocks).length),
        rows.length < limit,
      )
    }
    return rows
  }
  /** Newest first, of those after one place and before a turn; without a turn up to the end. */
  async between(
    sessionId: string,
    after: { readonly turn_seq: number; readonly seq: number },
    before: string | undefined,
    limit: number,
  ): Promise<readonly MessageRow[]> {
    const known = this.#db.dialect === 'sqlite' ? this.#recent.between(sessionId, after, before, limit) : undefined
    if (known) return known
    const end = before === undefined ? MAX_TURN_SEQ : await this.#placeOf(before)
    return this.#messages.allOrThrow(
      await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE session_id = ${sessionId} AND (turn_seq, seq) > (${after.turn_seq}, ${after.seq}) AND turn_seq < ${end}
        AND turn_state IS NULL ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`,
    )
  }
  async countAfter(
    sessionId: string,
    after: { readonly turn_seq: number; readonly seq: number },
    before: string | undefined,
  ): Promise<number> {
    const end = before === undefined ? MAX_TURN_SEQ : await this.#placeOf(before)
    const row = await this.#db.one<{ n: unknown }>`SELECT count(*) AS n FROM sessions_message
      WHERE session_id = ${sessionId} AND (turn_seq, seq) > (${after.turn_seq}, ${after.seq}) AND turn_seq < ${end}
        AND turn_state IS NULL`
    return Number(row?.n ?? 0)
  }
  async #placeOf(turnId: string): Promise<number> {
    const row = await this.#db.one<{
      turn_seq: unknown
    }>`SELECT turn_seq FROM sessions_message WHERE turn_id = ${turnId} LIMIT 1`
    return row === undefined ? MAX_TURN_SEQ : Number(row.turn_seq)
  }
  /** Newest first, of those that a model gets. */
  async newestTold(sessionId: string, limit: number): Promise<readonly MessageRow[]> {
    return this.#messages.allOrThrow(
      await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE session_id = ${sessionId} AND turn_state IS NULL ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`,
    )
  }
  /** Newest first, of those that are shown. */
  async newest(sessionId: string, limit: number): Promise<readonly MessageRow[]> {
    return this.#messages.allOrThrow(
      await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at,
        turn_state, error_code, error, retryable FROM sessions_message
      WHERE session_id = ${sessionId} AND coalesce(turn_state, 'failed') = 'failed'
      ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`,
    )
  }
  /** Newest first, of those that are shown before this position. */
  async before(
    sessionId: string,
    place: { readonly turn_seq: number; readonly seq: number },
    limit: number,
  ): Promise<readonly MessageRow[]> {
    return this.#messages.allOrThrow(
      await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at,
        turn_state, error_code, error, retryable FROM sessions_message
      WHERE session_id = ${sessionId} AND (turn_seq, seq) < (${place.turn_seq}, ${place.seq})
        AND coalesce(turn_state, 'failed') = 'failed' ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`,
    )
  }
  async place(sessionId: string, messageId: string): Promise<{ turn_seq: number; seq: number } | undefined> {
    return this.#db
      .one`SELECT turn_seq, seq FROM sessions_message WHERE id = ${messageId} AND session_id = ${sessionId}`
  }
  // Wrapped, so that no planner reads the whole session for it.
  async ofTurn(sessionId: string, turnId: string): Promise<readonly MessageRow[]> {
    return this.#messages.allOrThrow(
      await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at,
        turn_state, error_code, error, retryable FROM sessions_message
      WHERE turn_id = ${turnId} AND coalesce(session_id, '') = ${sessionId} ORDER BY seq`,
    )
  }
  /** Characters of the newest messages. */
  async chars(sessionId: string, limit: number): Promise<number> {
    const row = await this.#db.one<{ chars: unknown }>`SELECT sum(w.chars) AS chars FROM (
      SELECT chars FROM sessions_message WHERE session_id = ${sessionId} AND turn_state IS NULL
      ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}) w`
    return Number(row?.chars ?? 0)
  }

  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}

const anyFingerprint = (): number => randomInt(MODULUS)
function blockChars(block: Message['blocks'][number]): number {
  switch (block.type) {
    case 'text':
      return block.text.length
    case 'result':
      return block.text.length
    case 'call':
      return block.tool.length + JSON.stringify(block.args ?? null).length
    // What a small image costs with the large vendors, in characters.
    case 'image':
      return 1200
    // No model is given it.
    case 'reasoning':
      return 0
  }
}
