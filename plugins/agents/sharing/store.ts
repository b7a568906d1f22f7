import type { PluginDatabase, Statement } from 'svc/sdk'
import type { AgentRow } from '../schema.ts'

/** Conditions of batches on PostgreSQL, where other daemons write the same rows. */
export class SharingStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** How many manifests hold an id, such as that of the root of a family. */
  async mentions(id: string): Promise<number> {
    const row = await this.#db.one<{ count: number | string }>`SELECT count(*) AS count FROM agents_agent
      WHERE manifest_toml LIKE ${`%${id}%`}`
    return Number(row?.count ?? 0)
  }
  /** Makes its batch fail when more manifests than that hold the id by now. On PostgreSQL only. */
  unlessMentioned(id: string, beyond: number): Statement {
    return {
      ...this.#db.sql`SELECT svc_require(count(*) <= ${beyond}) FROM agents_agent
        WHERE manifest_toml LIKE ${`%${id}%`}`,
      exclusive: `agents_agent ${id}`,
    }
  }
  /** Makes its batch fail unless the row is as it was read. On PostgreSQL only. */
  unlessChanged(row: AgentRow): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 1) FROM (SELECT 1 FROM agents_agent
      WHERE id = ${row.id} AND name = ${row.name} AND manifest_toml = ${row.manifest_toml} AND state = ${row.state}
        AND mode = ${row.mode} AND session_id = ${row.session_id} AND permission = ${row.permission}
        AND identity = ${row.identity} AND pin IS NOT DISTINCT FROM CAST(${row.pin} AS TEXT)
        AND signed_by IS NOT DISTINCT FROM CAST(${row.signed_by} AS TEXT) FOR UPDATE) AS same`
  }
}
