import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { IdentifiedRow, StoredAgentRow, UnknownAgentRow } from './schema.ts'
import type { AgentRow } from './schema.ts'
import type { SharingStore } from './sharing/store.ts'

export class AgentStore {
  readonly #db: PluginDatabase
  readonly #identified: RowReader<typeof IdentifiedRow>
  readonly #rows: RowReader<typeof StoredAgentRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    const agents = { table: 'agents_agent', key: ['id'], log }
    this.#identified = new RowReader({ ...agents, schema: IdentifiedRow })
    this.#rows = new RowReader({ ...agents, schema: StoredAgentRow, effect: 'is used with the least rights' })
  }

  /** Whether other processes may write the same rows. */
  get shared(): boolean {
    return this.#db.dialect === 'postgresql'
  }

  async all(): Promise<readonly AgentRow[]> {
    const rows = await this.#db.all`SELECT * FROM agents_agent ORDER BY created_at, id`
    return rows.flatMap((row) => this.#read(row) ?? [])
  }
  async count(): Promise<number> {
    const row = await this.#db.one<{ count: number | string }>`SELECT count(*) AS count FROM agents_agent`
    return Number(row?.count ?? 0)
  }
  async find(id: string): Promise<AgentRow | undefined> {
    const row = await this.#db.one`SELECT * FROM agents_agent WHERE id = ${id}`
    return this.#read(row)
  }
  async findByName(name: string): Promise<AgentRow | undefined> {
    const row = await this.#db.one`SELECT * FROM agents_agent WHERE name = ${name}`
    return this.#read(row)
  }

  /** What only daemons that share a database need. */
  async sharing(): Promise<SharingStore> {
    const { SharingStore } = await import('./sharing/store.ts')
    return new SharingStore(this.#db)
  }

  /** Agents that are not read would be taken for removed ones: their sessions would go. */
  #read(row: unknown): AgentRow | undefined {
    if (this.#identified.one(row) === undefined) return undefined
    return this.#rows.one(row) ?? v.parse(UnknownAgentRow, row)
  }

  /** The ids of agents whose making was cut short. Agents are made in one batch now; earlier versions took two. */
  async unfinished(): Promise<readonly string[]> {
    const rows = await this.#db.all<{ id: string }>`SELECT id FROM agents_agent
      WHERE state IN ('Created', 'Initializing')`
    return rows.map(({ id }) => id)
  }

  /** The ids of agents whose manifest may have this key: one with a backslash may spell it with escapes. */
  async idsWithKey(key: string): Promise<readonly string[]> {
    const rows = await this.#db.all<{ id: string }>`SELECT id FROM agents_agent
      WHERE manifest_toml LIKE ${`%${key}%`} OR replace(manifest_toml, ${'\\'}, '') <> manifest_toml`
    return rows.map(({ id }) => id)
  }

  insert(row: AgentRow): Statement {
    return this.#db
      .sql`INSERT INTO agents_agent (id, name, manifest_toml, state, mode, session_id, created_at, updated_at,
        permission, identity, pin, cloned_from, signed_by, envelope)
      VALUES (${row.id}, ${row.name}, ${row.manifest_toml}, ${row.state}, ${row.mode}, ${row.session_id},
      ${row.created_at}, ${row.updated_at},
        ${row.permission}, ${row.identity}, ${row.pin}, ${row.cloned_from}, ${row.signed_by}, ${row.envelope})`
  }
  update(row: AgentRow): Statement {
    return this.#db
      .sql`UPDATE agents_agent SET name = ${row.name}, manifest_toml = ${row.manifest_toml}, state = ${row.state},
      mode = ${row.mode}, session_id = ${row.session_id}, updated_at = ${row.updated_at},
      permission = ${row.permission}, identity = ${row.identity}, pin = ${row.pin}, signed_by = ${row.signed_by},
      envelope = ${row.envelope}
      WHERE id = ${row.id}`
  }
  stop(id: string, at: string): Statement {
    return this.#db.sql`UPDATE agents_agent SET state = 'Stopped', updated_at = ${at} WHERE id = ${id}`
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM agents_agent WHERE id = ${id}`
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
