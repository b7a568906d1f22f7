import type { PluginDatabase, Statement } from 'svc/sdk'

export interface CanvasRow {
  readonly id: string
  readonly agent_id: string
  readonly session_id: string
  readonly turn_id: string
  readonly title: string
  /** Sanitised. */
  readonly html: string
  readonly frame_key: string
  /** ISO 8601 UTC. */
  readonly created_at: string
}

/** What a list says of a canvas. */
export type CanvasSummary = Omit<CanvasRow, 'html' | 'frame_key'>
/** `undefined` is every one. */
export interface CanvasFilter {
  readonly agentId: string | undefined
  readonly sessionId: string | undefined
}

export class CanvasStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(id: string): Promise<CanvasRow | undefined> {
    return this.#db.one<CanvasRow>`SELECT * FROM canvas_shown WHERE id = ${id}`
  }
  /** The newest first. */
  async list({ agentId, sessionId }: CanvasFilter, limit: number, offset: number): Promise<readonly CanvasSummary[]> {
    const agent = agentId ?? null
    const session = sessionId ?? null
    return this.#db.all<CanvasSummary>`SELECT id, agent_id, session_id, turn_id, title, created_at FROM canvas_shown
      WHERE (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
        AND (CAST(${session} AS TEXT) IS NULL OR session_id = ${session})
      ORDER BY created_at DESC, position DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
  }
  async count({ agentId, sessionId }: CanvasFilter): Promise<number> {
    const agent = agentId ?? null
    const session = sessionId ?? null
    const row = await this.#db.one<{ readonly count: number }>`SELECT COUNT(*) AS count FROM canvas_shown
      WHERE (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
        AND (CAST(${session} AS TEXT) IS NULL OR session_id = ${session})`
    return row?.count ?? 0
  }
  async remove(id: string): Promise<void> {
    await this.#db.batch([this.#db.sql`DELETE FROM canvas_shown WHERE id = ${id}`])
  }
  /** Keeps the newest ones of a session. The same canvas is added once, however often a call is made again. */
  async add(row: CanvasRow, keep: number): Promise<void> {
    await this.#db.batch([
      {
        ...this.#db.sql`INSERT INTO canvas_shown
            (id, agent_id, session_id, turn_id, title, html, frame_key, created_at, position)
          VALUES (${row.id}, ${row.agent_id}, ${row.session_id}, ${row.turn_id}, ${row.title}, ${row.html},
            ${row.frame_key}, ${row.created_at},
            (SELECT COALESCE(MAX(position), 0) + 1 FROM canvas_shown WHERE session_id = ${row.session_id}))
          ON CONFLICT (id) DO NOTHING`,
        // Of two at one moment each gets a place of its own.
        exclusive: 'canvas_shown',
      },
      this.#db.sql`DELETE FROM canvas_shown WHERE session_id = ${row.session_id} AND id NOT IN (
        SELECT id FROM canvas_shown WHERE session_id = ${row.session_id}
        ORDER BY created_at DESC, position DESC, id DESC LIMIT ${keep})`,
    ])
  }
  removeOfAgent(agentId: string): Statement {
    return this.#db.sql`DELETE FROM canvas_shown WHERE agent_id = ${agentId}`
  }
  async removeOfSession(sessionId: string): Promise<void> {
    await this.#db.batch([this.#db.sql`DELETE FROM canvas_shown WHERE session_id = ${sessionId}`])
  }
}
