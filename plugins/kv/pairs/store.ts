import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { PairRow } from '../schema.ts'

export class PairStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(agentId: string, key: string): Promise<PairRow | undefined> {
    return v.parse(
      v.optional(PairRow),
      await this.#db.one`SELECT key, value FROM kv_pair WHERE agent_id = ${agentId} AND key = ${key}`,
    )
  }
  async list(agentId: string): Promise<PairRow[]> {
    return v.parse(
      v.array(PairRow),
      await this.#db.all`SELECT key, value FROM kv_pair WHERE agent_id = ${agentId} ORDER BY key`,
    )
  }
  async names(agentId: string): Promise<string[]> {
    const rows = await this.#db.all<{ key: string }>`SELECT key FROM kv_pair WHERE agent_id = ${agentId} ORDER BY key`
    return rows.map((row) => row.key)
  }
  /** Whether a new key would be one too many. */
  async full(agentId: string, key: string, limit: number): Promise<boolean> {
    const row = await this.#db.one<{
      taken: number | string
    }>`SELECT COUNT(*) AS taken FROM kv_pair WHERE agent_id = ${agentId} AND key <> ${key}`
    return Number(row?.taken ?? 0) >= limit
  }

  /**
   * The limit is part of the statement: above it the value becomes NULL, which the column refuses, so that the whole
   * batch fails and no audit entry records a write that never happened.
   */
  put(agentId: string, key: string, value: string, at: string, limit: number): Statement {
    return {
      ...this.#db.sql`INSERT INTO kv_pair (agent_id, key, value, updated_at) VALUES (${agentId}, ${key},
      CASE WHEN EXISTS (SELECT 1 FROM kv_pair WHERE agent_id = ${agentId} AND key = ${key})
        OR (SELECT COUNT(*) FROM kv_pair WHERE agent_id = ${agentId}) < ${limit} THEN ${value} END, ${at})
      ON CONFLICT (agent_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
      exclusive: `kv_pair ${agentId}`,
    }
  }
  /** Without a limit, for many at once. */
  replace(agentId: string, key: string, value: string, at: string): Statement {
    return this.#db
      .sql`INSERT INTO kv_pair (agent_id, key, value, updated_at) VALUES (${agentId}, ${key}, ${value}, ${at})
      ON CONFLICT (agent_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
  }
  removeAll(agentId: string): Statement {
    return this.#db.sql`DELETE FROM kv_pair WHERE agent_id = ${agentId}`
  }
  remove(agentId: string, key: string): Statement {
    return this.#db.sql`DELETE FROM kv_pair WHERE agent_id = ${agentId} AND key = ${key}`
  }
  async commit(...statements: readonly Statement[]): Promise<readonly { readonly changes: number }[]> {
    return this.#db.batch(statements)
  }

  async clear(agentId: string): Promise<void> {
    await this.#db.run`DELETE FROM kv_pair WHERE agent_id = ${agentId}`
  }
  async agents(): Promise<string[]> {
    const rows = await this.#db.all<{ agent_id: string }>`SELECT DISTINCT agent_id FROM kv_pair`
    return rows.map((row) => row.agent_id)
  }
}
