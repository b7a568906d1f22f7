import { setImmediate } from 'node:timers/promises'
import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { SummaryRow } from '../schema.ts'
import { MessageRow, SummaryRow as SummaryRowSchema } from '../schema.ts'

/** Rows of one statement: others have their turn between two. */
const PAGE = 1000
const START = { turn_seq: 0, seq: 0 }

const PlaceRow = v.object({
  id: v.string(),
  turn_id: v.string(),
  turn_seq: v.number(),
  seq: v.number(),
  role: v.string(),
  turn_state: v.nullable(v.string()),
  chars: v.number(),
})
export type PlaceRow = v.InferOutput<typeof PlaceRow>
type Place = Pick<PlaceRow, 'turn_seq' | 'seq'>
/** A message of the new session, made from one of the old. */
export interface MessageCopy {
  readonly from: PlaceRow
  readonly id: string
  readonly turnId: string
  readonly turnSeq: number
  readonly seq: number
}

export class BranchStore {
  readonly #db: PluginDatabase
  readonly #messages: RowReader<typeof MessageRow>
  readonly #summaries: RowReader<typeof SummaryRowSchema>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#messages = new RowReader({ table: 'sessions_message', key: ['id'], schema: MessageRow, log })
    this.#summaries = new RowReader({
      table: 'sessions_summary',
      key: ['session_id', 'id'],
      schema: SummaryRowSchema,
      log,
    })
  }

  /** The oldest messages that are shown, without their texts. */
  async places(sessionId: string, limit: number): Promise<readonly PlaceRow[]> {
    const places: PlaceRow[] = []
    for (let page: readonly PlaceRow[] = []; ; await setImmediate()) {
      const size = Math.min(PAGE, limit - places.length)
      page = await this.#placesAfter(sessionId, places.at(-1) ?? START, size)
      places.push(...page)
      if (page.length < size || places.length === limit) return places
    }
  }
  async #placesAfter(sessionId: string, { turn_seq, seq }: Place, limit: number): Promise<readonly PlaceRow[]> {
    return v.parse(
      v.array(PlaceRow),
      await this.#db.all`SELECT id, turn_id, turn_seq, seq, role, turn_state, chars FROM sessions_message
        WHERE session_id = ${sessionId} AND coalesce(turn_state, 'failed') = 'failed'
          AND (turn_seq, seq) > (${turn_seq}, ${seq})
        ORDER BY turn_seq, seq LIMIT ${limit}`,
    )
  }
  async message(id: string): Promise<MessageRow | undefined> {
    return this.#messages.oneOrThrow(
      await this.#db.one`SELECT turn_seq, seq, id, turn_id, role, blocks, mark, created_at FROM sessions_message
        WHERE id = ${id}`,
    )
  }
  /** The newest valid summary of messages up to this one. */
  async summary(sessionId: string, { turn_seq, seq }: PlaceRow): Promise<SummaryRow | undefined> {
    return this.#summaries.oneOrThrow(
      await this.#db.one`SELECT * FROM sessions_summary
        WHERE session_id = ${sessionId} AND undone_at IS NULL AND (last_turn_seq, last_seq) <= (${turn_seq}, ${seq})
        ORDER BY last_turn_seq DESC, last_seq DESC, id DESC LIMIT 1`,
    )
  }

  /** Before the first copy. What an attempt for the same session left when it was cut off goes. */
  begin(id: string, at: string): readonly Statement[] {
    return [
      ...this.discard(id),
      this.#db.sql`INSERT INTO sessions_branching (session_id, started_at) VALUES (${id}, ${at})`,
    ]
  }
  /** Together with the session itself. */
  end(id: string): Statement {
    return this.#db.sql`DELETE FROM sessions_branching WHERE session_id = ${id}`
  }
  /** Removes the copies for a session that was not made. */
  discard(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM sessions_message
        WHERE session_id = ${id} AND NOT EXISTS (SELECT 1 FROM sessions_session s WHERE s.id = ${id})`,
      this.end(id),
    ]
  }
  /** The sessions whose copying began before this time and did not end. */
  async abandoned(before: string): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT session_id FROM sessions_branching WHERE started_at < ${before}`
    return v.parse(v.array(v.object({ session_id: v.string() })), rows).map(({ session_id: id }) => id)
  }

  /** An interrupted turn stays where it can be retried: its copy is only cut. */
  copy(sessionId: string, { from, id, turnId, turnSeq, seq }: MessageCopy): Statement {
    return this.#db.sql`INSERT INTO sessions_message
        (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at)
      SELECT ${sessionId}, ${turnSeq}, ${seq}, ${id}, ${turnId}, role, blocks,
        CASE WHEN mark = 'interrupted' THEN 'cut' ELSE mark END, chars, created_at
      FROM sessions_message WHERE id = ${from.id}`
  }
  count(sessionId: string, copied: number): Statement {
    return this.#db.sql`UPDATE sessions_session SET appended = ${copied}, message_count = ${copied}
      WHERE id = ${sessionId}`
  }
  copySummary(
    sessionId: string,
    summary: SummaryRow,
    { id, first, last }: { readonly id: string; readonly first: MessageCopy; readonly last: MessageCopy },
  ): Statement {
    return this.#db.sql`INSERT INTO sessions_summary (session_id, last_turn_seq, last_seq, id, text, labels,
        first_message_id, last_message_id, message_count, created_at)
      VALUES (${sessionId}, ${last.turnSeq}, ${last.seq}, ${id}, ${summary.text}, ${JSON.stringify(summary.labels)},
        ${first.id}, ${last.id}, ${summary.message_count}, ${summary.created_at})`
  }
}
