import { hash } from 'node:crypto'
import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { PluginName } from './schema.ts'

const Json = v.pipe(v.string(), v.transform(readOwnJson))
/** What there was in the place of a plugin before its installation, which is put back when that fails. */
const Before = v.object({ folder: v.boolean(), permissions: v.nullable(v.array(v.string())) })
export type Before = v.InferOutput<typeof Before>
const row = {
  name: PluginName,
  version: v.string(),
  source: v.string(),
  hash: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: v.pipe(Json, v.array(v.string())),
  replaces: v.nullable(v.pipe(Json, Before)),
  state: v.picklist(['installing', 'installed', 'removing', 'deleting']),
  installed_at: v.string(),
  updated_at: v.string(),
}
const Row = v.pipe(
  v.object({ ...row, previous: v.nullable(v.pipe(Json, v.unknown())) }),
  // Written by `put`: the same fields, already parsed.
  v.transform(({ previous, ...rest }): Installed => ({ ...rest, previous: previous as Installed | null })),
)
/** A plugin that was installed, and what is known of it. */
export type Installed = v.InferOutput<v.ObjectSchema<typeof row, undefined>> & { readonly previous: Installed | null }

/** Of all that a change which was cut off is ended by. A row keeps when its plugin was installed first. */
export function digestOf({ previous, installed_at: _first, ...entry }: Installed): string {
  const facts = Object.entries({ ...entry, previous: previous && { ...previous, previous: null } })
  return hash('sha256', JSON.stringify(facts.toSorted(([one], [other]) => (one < other ? -1 : 1))))
}

export class InstallStore {
  readonly #db: PluginDatabase
  readonly #home: string
  /** `home`: its id where daemons share the database, else empty. */
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, home: string, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'plugin_admin_installed', key: ['home', 'name'], schema: Row, log })
    this.#home = home
  }

  async find(name: string): Promise<Installed | undefined> {
    // One of no home was installed when only one daemon could use the database.
    const found = await this.#db.one`SELECT * FROM plugin_admin_installed
      WHERE name = ${name} AND home IN (${this.#home}, '') ORDER BY home DESC LIMIT 1`
    return this.#rows.oneOrThrow(found)
  }
  async list(): Promise<readonly Installed[]> {
    const found = await this.#db.all`SELECT * FROM plugin_admin_installed
      WHERE home IN (${this.#home}, '') ORDER BY name, home`
    const byName = new Map(this.#rows.all(found).map((entry) => [entry.name, entry]))
    return [...byName.values()]
  }
  /** Those whose installation or removal was cut off. */
  async unfinished(): Promise<readonly Installed[]> {
    const found = await this.#db.all`SELECT * FROM plugin_admin_installed
      WHERE home = ${this.#home} AND state <> 'installed'`
    return this.#rows.all(found)
  }

  put(entry: Installed): Statement {
    const { name, version, source, hash, signed_by: signedBy, state, installed_at: at, updated_at: updated } = entry
    const permissions = JSON.stringify(entry.permissions)
    const replaces = entry.replaces === null ? null : JSON.stringify(entry.replaces)
    const previous = entry.previous === null ? null : JSON.stringify({ ...entry.previous, previous: null })
    return this.#db.sql`INSERT INTO plugin_admin_installed
        (home, name, version, source, hash, signed_by, permissions, state, previous, replaces, installed_at, updated_at)
      VALUES (${this.#home}, ${name}, ${version}, ${source}, ${hash}, ${signedBy}, ${permissions}, ${state}, ${previous}, ${replaces},
        ${at}, ${updated})
      ON CONFLICT (home, name) DO UPDATE SET version = excluded.version, source = excluded.source, hash = excluded.hash,
        signed_by = excluded.signed_by, permissions = excluded.permissions, state = excluded.state,
        previous = excluded.previous, replaces = excluded.replaces, updated_at = excluded.updated_at`
  }
  remove(name: string): Statement {
    return this.#db.sql`DELETE FROM plugin_admin_installed WHERE name = ${name} AND home IN (${this.#home}, '')`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
