import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Changes, Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Memory } from '../contract.ts'
import { graphOfAgent } from '../graph/store.ts'
import { idSet, isKept } from '../store.ts'
import { Count, EntryRow, Id } from '../entries/row.ts'

/** The statements of what happens to memories with time. */
export class UpkeepStore {
  readonly #db: PluginDatabase
  readonly #entries: RowReader<typeof EntryRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#entries = new RowReader({ table: 'memory_entry', key: ['id'], schema: EntryRow, log })
  }

  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }

  /** That they were found and used: what is used stays longer. */
  touch(ids: readonly string[], at: number): Statement {
    return this.#db.sql`UPDATE memory_entry SET access_count = access_count + 1, accessed_at = ${at}
      WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))`
  }

  /** What confidences are worth now: `strengthOf` in SQL. */
  decay(ids: readonly string[], rate: number, now: number): Statement {
    return this.#db.sql`UPDATE memory_entry SET strength = CASE
        WHEN access_count > 1 AND confidence * (1 + ln(access_count) / ln(2)) *
          exp(-CAST(${rate} AS DOUBLE PRECISION) * (CAST(${now} AS BIGINT) - accessed_at) / 86400000.0) >= 1 THEN 1.0
        WHEN access_count > 1 THEN confidence * (1 + ln(access_count) / ln(2)) *
          exp(-CAST(${rate} AS DOUBLE PRECISION) * (CAST(${now} AS BIGINT) - accessed_at) / 86400000.0)
        ELSE confidence *
          exp(-CAST(${rate} AS DOUBLE PRECISION) * (CAST(${now} AS BIGINT) - accessed_at) / 86400000.0) END
      WHERE id IN (SELECT key FROM json_each(${idSet(ids)})) AND accessed_at > 0
        AND accessed_at < CAST(${now} AS BIGINT) - 86400000`
  }
  /** Live ones without a key, in the order of their ids. */
  async idsPage(agentId: string, after: string, limit: number): Promise<readonly string[]> {
    return ids(
      await this.#db.all`SELECT id FROM memory_entry
        WHERE agent_id = ${agentId} AND superseded_by = '' AND key IS NULL AND id > ${after} ORDER BY id LIMIT ${limit}`,
    )
  }
  /** `level` empty: all, notes too. In the order of their ids. */
  async idsOfLevel(agentId: string, level: string, after: string, limit: number): Promise<readonly string[]> {
    return ids(
      await this.#db.all`SELECT id FROM memory_entry
        WHERE agent_id = ${agentId} AND superseded_by = '' AND (${level} = '' OR level = ${level}) AND id > ${after}
        ORDER BY id LIMIT ${limit}`,
    )
  }
  /** All that is kept for a person, what was superseded too. */
  async idsOfUser(userId: string, limit: number): Promise<readonly string[]> {
    return ids(await this.#db.all`SELECT id FROM memory_entry WHERE user_id = ${userId} AND ${isKept} LIMIT ${limit}`)
  }
  /** Times of use in milliseconds; 0: they do not expire. */
  async expired(
    before: { readonly sessionBefore: string; readonly agentUnusedBefore: number; readonly userUnusedBefore: number },
    limit: number,
  ): Promise<readonly string[]> {
    return ids(
      await this.#db.all`SELECT id FROM memory_entry WHERE superseded_by = '' AND key IS NULL AND ${isKept}
        AND ((level = 'session' AND created_at < ${before.sessionBefore})
          OR (level = 'agent' AND accessed_at < CAST(${before.agentUnusedBefore} AS BIGINT))
          OR (level = 'user' AND accessed_at < CAST(${before.userUnusedBefore} AS BIGINT))) LIMIT ${limit}`,
    )
  }
  /** Those that are worth least. */
  async weakest(agentId: string, limit: number): Promise<readonly string[]> {
    return ids(
      await this.#db.all`SELECT id FROM memory_entry
        WHERE agent_id = ${agentId} AND superseded_by = '' AND key IS NULL
        ORDER BY strength, created_at, id LIMIT ${limit}`,
    )
  }
  async countUnkeyed(agentId: string): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM memory_entry
      WHERE agent_id = ${agentId} AND superseded_by = '' AND key IS NULL`
    return v.parse(Count, row).count
  }
  async newest(agentId: string, limit: number): Promise<readonly Memory[]> {
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry
        WHERE agent_id = ${agentId} AND superseded_by = '' AND key IS NULL
        ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    )
  }
  /** What an agent was told of how things belong together. */
  dropGraph(agentId: string): readonly Statement[] {
    return graphOfAgent(this.#db, agentId)
  }
  /** Which memories the turns before then were given. */
  dropUses(before: string): Statement {
    return this.#db.sql`DELETE FROM memory_use WHERE created_at < ${before}`
  }
  dropTombstones(before: string): Statement {
    return this.#db.sql`DELETE FROM memory_tombstone WHERE deleted_at < ${before}`
  }
}

const ids = (rows: readonly unknown[]): readonly string[] => v.parse(v.array(Id), rows).map(({ id }) => id)
