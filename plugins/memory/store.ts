import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { Note } from './schema.ts'

export class NoteStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(agentId: string, key: string): Promise<Note | undefined> {
    return v.parse(
      v.optional(Note),
      await this.#db.one`SELECT key, value, created_at FROM memory_note WHERE agent_id = ${agentId} AND key = ${key}`,
    )
  }
  /** Newest first. */
  async list(agentId: string): Promise<Note[]> {
    return v.parse(
      v.array(Note),
      await this.#db.all`SELECT key, value, created_at FROM memory_note
      WHERE agent_id = ${agentId} ORDER BY updated_at DESC, key`,
    )
  }
  /** Whether a new note would be one too many. */
  async full(agentId: string, key: string, limit: number): Promise<boolean> {
    const row = await this.#db.one<{
      taken: number | string
    }>`SELECT COUNT(*) AS taken FROM memory_note WHERE agent_id = ${agentId} AND key <> ${key}`
    return Number(row?.taken ?? 0) >= limit
  }

  /** Over the limit the value becomes NULL, which the column refuses, so that the whole batch fails. */
  put(agentId: string, key: string, value: string, at: string, limit: number): Statement {
    return {
      ...this.#db.sql`INSERT INTO memory_note (agent_id, key, value, created_at, updated_at) VALUES (${agentId}, ${key},
      CASE WHEN EXISTS (SELECT 1 FROM memory_note WHERE agent_id = ${agentId} AND key = ${key})
        OR (SELECT COUNT(*) FROM memory_note WHERE agent_id = ${agentId}) < ${limit} THEN ${value} END, ${at}, ${at})
      ON CONFLICT (agent_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
      exclusive: `memory_note ${agentId}`,
    }
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }

  async clear(agentId: string): Promise<void> {
    await this.#db.run`DELETE FROM memory_note WHERE agent_id = ${agentId}`
  }
  async agents(): Promise<string[]> {
    const rows = await this.#db.all<{ agent_id: string }>`SELECT DISTINCT agent_id FROM memory_note`
    return rows.map((row) => row.agent_id)
  }
}
