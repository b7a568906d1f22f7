import { hash } from 'node:crypto'
import type { ConsolaInstance } from 'consola'
import { splitStatements, toDialect } from './dialect.ts'
import type { Migration, PluginDatabase, Statement } from './database.ts'
import { messageOf } from '../errors/message.ts'

interface Applied {
  readonly id: string
  readonly checksum: string
}

/** A newer version of a plugin has changed its tables. */
export class NewerDatabase extends Error {
  override readonly name = 'NewerDatabase'
}

/**
 * What was done to the tables, and with which text: the same on both engines, because the text is taken before it is
 * adapted.
 */
export class Migrations {
  readonly #db: PluginDatabase
  readonly #commit: (statements: readonly Statement[]) => Promise<unknown>
  readonly #log: ConsolaInstance
  /** `commit`: carries out one batch while no other daemon changes tables. */
  constructor(
    db: PluginDatabase,
    commit: (statements: readonly Statement[]) => Promise<unknown>,
    log: ConsolaInstance,
  ) {
    this.#db = db
    this.#commit = commit
    this.#log = log
  }

  /** Creates the table of applied migrations if it is missing, and the functions that the SQL of plugins may use. */
  async prepare(functions: readonly Statement[]): Promise<void> {
    if (functions.length === 0 && (await this.#exists())) return
    await this.#commit([
      ...functions,
      {
        sql: toDialect(
          'CREATE TABLE IF NOT EXISTS core_migration (plugin TEXT NOT NULL, id TEXT NOT NULL, ' +
            'checksum TEXT NOT NULL, applied_at TEXT NOT NULL, PRIMARY KEY (plugin, id))',
          this.#db.dialect,
        ),
        values: [],
      },
    ])
  }

  async apply(plugin: string, migrations: readonly Migration[], strict: boolean): Promise<number> {
    const missing = this.#missing(plugin, migrations, await this.#applied(plugin), strict)
    if (missing.length === 0) return 0
    // All or nothing, and one sync however many there are. Done one by one only to find the one that fails.
    try {
      await this.#commit(missing.flatMap((migration) => this.#statements(plugin, migration)))
    } catch {
      // Another daemon may have done it while this one waited for it.
      const left = this.#missing(plugin, migrations, await this.#applied(plugin), strict)
      for (const migration of left) await this.#single(plugin, migration)
    }
    return missing.length
  }

  async #single(plugin: string, migration: Migration): Promise<void> {
    try {
      await this.#commit(this.#statements(plugin, migration))
    } catch (error) {
      const reason = messageOf(error)
      // Tables without their rows in core_migration: a dump that was not restored whole.
      const advice = /already exists/.test(reason)
        ? '. The database has tables that no record is of: restore it whole, into an empty database, or name an empty one'
        : ''
      throw new Error(
        `migration "${migration.id}" of plugin "${plugin}" failed and changed nothing: ${reason}${advice}`,
        { cause: error },
      )
    }
  }
  #statements(plugin: string, migration: Migration): Statement[] {
    return [
      ...this.#textsOf(migration).map((sql) => ({ sql, values: [] })),
      this.#db.sql`INSERT INTO core_migration (plugin, id, checksum, applied_at)
        VALUES (${plugin}, ${migration.id}, ${checksumOf(migration)}, ${new Date().toISOString()})`,
    ]
  }

  #textsOf({ sql, postgresql }: Migration): readonly string[] {
    const { dialect } = this.#db
    if (dialect === 'postgresql' && postgresql !== undefined) return splitStatements(postgresql)
    return splitStatements(sql).map((text) => toDialect(text, dialect))
  }

  async pending(
    plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
  ): Promise<boolean> {
    const rows = await this.#db.all<Applied & { plugin: string }>`SELECT plugin, id, checksum FROM core_migration`
    // A problem with the list of one plugin is reported when it is applied, and does not stop the others.
    const known = new Set(rows.map((row) => `${row.plugin} ${row.id}`))
    return plugins.some(({ name, migrations }) => migrations.some(({ id }) => !known.has(`${name} ${id}`)))
  }

  #missing(
    plugin: string,
    migrations: readonly Migration[],
    applied: readonly Applied[],
    strict: boolean,
  ): Migration[] {
    const known = new Map(applied.map((row) => [row.id, row.checksum]))
    const ids = new Set<string>()
    const missing: Migration[] = []
    for (const migration of migrations) {
      if (ids.has(migration.id)) throw new Error(`plugin "${plugin}" has two migrations with the id "${migration.id}"`)
      ids.add(migration.id)
      const checksum = known.get(migration.id)
      if (checksum === undefined) missing.push(migration)
      else if (checksum !== checksumOf(migration)) {
        throw new Error(
          `migration "${migration.id}" of plugin "${plugin}" was edited after it had been applied to this database. ` +
            'Restore its original text and add the change as another migration with a new id.',
        )
      }
    }
    const newer = applied.filter((row) => !ids.has(row.id)).map((row) => row.id)
    // Daemons that share a database are upgraded one after the other, and their migrations only add.
    if (newer.length > 0 && strict && this.#db.dialect === 'sqlite')
      throw new NewerDatabase(
        `the database was used with a newer version of plugin "${plugin}", which applied ${newer.join(', ')}. ` +
          'Nothing was changed. Start that version again, or restore the copy from before it',
      )
    if (newer.length > 0)
      this.#log.warn(
        `the database has migrations of plugin "${plugin}" that this version does not know; ` +
          'it was used with a newer version',
        { plugin, migrations: newer },
      )
    return missing
  }

  #applied(plugin: string): Promise<Applied[]> {
    return this.#db.all<Applied>`SELECT id, checksum FROM core_migration WHERE plugin = ${plugin}`
  }
  async #exists(): Promise<boolean> {
    const found =
      this.#db.dialect === 'sqlite'
        ? await this.#db.one`SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'core_migration'`
        : await this.#db.one`SELECT table_name FROM information_schema.tables
            WHERE table_schema = current_schema() AND table_name = 'core_migration'`
    return found !== undefined
  }
}

// Line ends differ between checkouts; the migration does not.
const checksumOf = ({ sql, postgresql = '' }: Migration): string =>
  hash('sha256', [sql, postgresql].join('\n').replace(/\r\n/g, '\n').trim())
