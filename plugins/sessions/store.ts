import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Message } from './contract.ts'
import { MessageRow, SessionRow } from './schema.ts'

/** Counted so that the tokens in the window can be told without reading the texts. */
const CHARS_PER_MESSAGE = 16

export class SessionStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) { this.#db = db }

  async find(id: string): Promise<SessionRow | undefined> {
    return v.parse(v.optional(SessionRow), await this.#db.one`SELECT * FROM sessions_session WHERE id = ${id}`)
  }
  async all(): Promise<readonly SessionRow[]> {
    return v.parse(v.array(SessionRow), await this.#db.all`SELECT * FROM sessions_session ORDER BY created_at DESC, id`)
  }
  async ofAgent(agentId: string): Promise<readonly SessionRow[]> {
    return v.parse(v.array(SessionRow), await this.#db.all`SELECT * FROM sessions_session WHERE agent_id = ${agentId} ORDER BY created_at DESC, id`)
  }
  insert(id: string, agentId: string, label: string | null, at: string): Statement {
    return this.#db.sql`INSERT INTO sessions_session (id, agent_id, label, message_count, created_at)
      VALUES (${id}, ${agentId}, ${label}, 0, ${at}) ON CONFLICT (id) DO NOTHING`
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM sessions_message WHERE session_id = ${id}`,
      this.#db.sql`DELETE FROM sessions_session WHERE id = ${id}`,
    ]
  }
  removeOfAgent(agentId: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM sessions_message WHERE session_id IN (SELECT id FROM sessions_session WHERE agent_id = ${agentId})`,
      this.#db.sql`DELETE FROM sessions_session WHERE agent_id = ${agentId}`,
    ]
  }
  clear(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM sessions_message WHERE session_id = ${id}`,
      this.#db.sql`UPDATE sessions_session SET message_count = 0 WHERE id = ${id}`,
    ]
  }

  /**
   * A turn belongs to one session, so its id is enough. Selecting from the session itself is what keeps a message out of one that
   * was removed meanwhile.
   */
  append(sessionId: string, message: Message): readonly Statement[] {
    const { id, turnId, role, createdAt } = message
    const blocks = JSON.stringify(message.blocks)
    const chars = message.blocks.reduce((sum, block) => sum + blockChars(block), CHARS_PER_MESSAGE)
    return [
      this.#db.sql`INSERT INTO sessions_message (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at)
        SELECT s.id,
          coalesce(
            (SELECT m.turn_seq FROM sessions_message m WHERE m.turn_id = ${turnId} LIMIT 1),
            (SELECT max(m.turn_seq) FROM sessions_message m WHERE m.session_id = ${sessionId}) + 1, 1),
          coalesce((SELECT max(m.seq) FROM sessions_message m WHERE m.turn_id = ${turnId}) + 1, 1),
          ${id}, ${turnId}, ${role}, ${blocks}, ${message.mark ?? null}, ${chars}, ${createdAt}
        FROM sessions_session s WHERE s.id = ${sessionId}`,
      this.#db.sql`UPDATE sessions_session SET message_count = message_count + 1 WHERE id = ${sessionId}`,
    ]
  }

  /** Newest first; what was accepted after the turn is left out. */
  async upTo(sessionId: string, turnId: string, limit: number): Promise<readonly MessageRow[]> {
    return toMessages(await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE session_id = ${sessionId} AND turn_seq <= (
        SELECT m.turn_seq FROM sessions_message m WHERE m.turn_id = ${turnId} LIMIT 1)
      ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`)
  }
  /** Newest first. */
  async newest(sessionId: string, limit: number): Promise<readonly MessageRow[]> {
    return toMessages(await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE session_id = ${sessionId} ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`)
  }
  /** Newest first, of those that stand before this place. */
  async before(sessionId: string, place: { readonly turn_seq: number; readonly seq: number }, limit: number): Promise<readonly MessageRow[]> {
    return toMessages(await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE session_id = ${sessionId} AND (turn_seq, seq) < (${place.turn_seq}, ${place.seq}) ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}`)
  }
  async place(sessionId: string, messageId: string): Promise<{ turn_seq: number; seq: number } | undefined> {
    return this.#db.one`SELECT turn_seq, seq FROM sessions_message WHERE id = ${messageId} AND session_id = ${sessionId}`
  }
  // Wrapped, so that no planner reads the whole session for it.
  async ofTurn(sessionId: string, turnId: string): Promise<readonly MessageRow[]> {
    return toMessages(await this.#db.all`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
      WHERE turn_id = ${turnId} AND coalesce(session_id, '') = ${sessionId} ORDER BY seq`)
  }
  /** Characters of the newest messages. */
  async chars(sessionId: string, limit: number): Promise<number> {
    const row = await this.#db.one<{ chars: unknown }>`SELECT sum(w.chars) AS chars FROM (
      SELECT chars FROM sessions_message WHERE session_id = ${sessionId} ORDER BY turn_seq DESC, seq DESC LIMIT ${limit}) w`
    return Number(row?.chars ?? 0)
  }

  async commit(statements: readonly Statement[]): Promise<void> { await this.#db.batch(statements) }
}

const Rows = v.array(MessageRow)
function toMessages(rows: readonly unknown[]): readonly MessageRow[] { return v.parse(Rows, rows) }

function blockChars(block: Message['blocks'][number]): number {
  switch (block.type) {
    case 'text': return block.text.length
    case 'result': return block.text.length
    case 'call': return block.tool.length + JSON.stringify(block.args ?? null).length
    // What a small image costs with the large vendors, in characters.
    case 'image': return 1200
  }
}
