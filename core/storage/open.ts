import { randomUUID } from 'node:crypto'
import type { ConsolaInstance } from 'consola'
import { noBroadcast } from './broadcast.ts'
import type { Broadcast } from './broadcast.ts'
import type { Database, Migration, PluginDatabase } from './database.ts'
import { codeOf } from './failure.ts'
import type { Engine } from './engine.ts'
import { Migrations } from './migrate.ts'
import type { BroadcastKey } from './open-postgres.ts'
import type { PostgresSettings } from './postgres-client.ts'
import { SqliteConnection } from './sqlite-connection.ts'
import { openFile } from './sqlite-file.ts'
import { SqliteDatabase } from './sqlite.ts'
import { messageOf } from '../errors/message.ts'

export interface DatabaseOptions {
  /** `sqlite:<path>`, `sqlite::memory:` or `postgres://…`. */
  readonly url: string
  readonly log: ConsolaInstance
  /** For a PostgreSQL address without one. */
  readonly password?: string | undefined
  readonly broadcastKey?: BroadcastKey | undefined
  /** How a PostgreSQL server is used; the defaults when absent. */
  readonly postgres?: PostgresSettings
  /** Told when a commit finds no room on the disk. */
  readonly onFull?: () => void
}

/** The owner of the core's own tables, in the records of migrations. */
export const CORE_PLUGIN = 'core-storage'
export const CORE_MIGRATIONS: readonly Migration[] = [
  { id: '001-check', sql: 'CREATE TABLE core_check (id INTEGER PRIMARY KEY, mark TEXT NOT NULL)' },
  {
    id: '002-storage',
    sql:
      'CREATE TABLE core_storage (plugin TEXT NOT NULL, key TEXT NOT NULL, text TEXT, bytes BLOB, ' +
      'changed_at TEXT NOT NULL, PRIMARY KEY (plugin, key))',
  },
  {
    id: '003-vault',
    sql:
      'CREATE TABLE core_vault (plugin TEXT NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL, ' +
      'sealed BLOB NOT NULL, PRIMARY KEY (plugin, name))',
  },
  {
    id: '004-idempotency',
    // The checksum of a migration covers its whitespace.
    sql: [
      'CREATE TABLE core_idempotency (',
      '      scope TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, effect_id TEXT NOT NULL, ' +
        'owner TEXT NOT NULL, state TEXT NOT NULL,',
      '      status INTEGER, type TEXT, body TEXT, created_at TEXT NOT NULL, PRIMARY KEY (scope, key)',
      '    );',
      '    CREATE INDEX core_idempotency_time ON core_idempotency (created_at);',
    ].join('\n'),
  },
  // Seconds, as in the Retry-After header.
  { id: '005-idempotency-retry-after', sql: 'ALTER TABLE core_idempotency ADD COLUMN retry_after INTEGER' },
  {
    id: '006-ticket',
    // Used where daemons share a database. Seconds since 1970.
    sql:
      'CREATE TABLE core_ticket (digest TEXT PRIMARY KEY, holder TEXT NOT NULL, key_mark TEXT NOT NULL, ' +
      'expires_at INTEGER NOT NULL)',
  },
]

/** Opens and checks the database and makes the core's own tables. Throws `DatabaseRefused` for one that is damaged. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { url, log } = options
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./open-postgres.ts')
    const { sql, engine } = await openPostgres(options)
    return ready(sql, log, engine)
  }
  const path = /^sqlite:(.+)$/.exec(url)?.[1]
  if (path === undefined)
    throw new Error(`database_url "${url.replace(/\/\/.*@/, '//…@')}" is neither sqlite:<path> nor postgres://…`)
  const connection = path === ':memory:' ? await SqliteConnection.open(undefined) : await openFile(path)
  const sql = new SqliteDatabase(connection, log, options.onFull)
  return ready(sql, log, {
    server: { openPool: undefined },
    commit: (statements) => sql.batch(statements),
    functions: [],
    figures: () => ({ pool: undefined, broadcast: undefined }),
    forget: () => connection.forget(),
    broadcast: () => Promise.resolve(noBroadcast(randomUUID())),
    async snapshot(file) {
      const { snapshotSqlite } = await import('./sqlite-snapshot.ts')
      await snapshotSqlite(connection.instance, file)
    },
    async scrub() {
      if (!connection.inMemory) connection.instance.pragma('wal_checkpoint(TRUNCATE)')
    },
    async close() {
      await sql.close()
      await connection.close()
    },
  })
}

async function ready(sql: PluginDatabase, log: ConsolaInstance, engine: Engine): Promise<Database> {
  const migrations = new Migrations(sql, (statements) => engine.commit(statements), log)
  let checks = 0
  const migrate: Database['migrate'] = async (plugin, list, { strict = false } = {}) => {
    const applied = await migrations.apply(plugin, list, strict)
    if (applied > 0) engine.forget()
    return applied
  }
  let broadcast: Broadcast
  try {
    await migrations.prepare(engine.functions)
    await migrate(CORE_PLUGIN, CORE_MIGRATIONS, { strict: true })
    broadcast = await engine.broadcast((name, list) => migrate(name, list, { strict: true }))
  } catch (error) {
    await engine.close()
    throw error
  }
  return {
    dialect: sql.dialect,
    sql,
    broadcast,
    migrate,
    server: engine.server,
    figures: () => engine.figures(),
    pending: (plugins) => migrations.pending(plugins),
    snapshot: (file) => engine.snapshot(file),
    scrub: () => engine.scrub(),
    async check() {
      const mark = `${process.pid}-${++checks}`
      try {
        await sql.run`INSERT INTO core_check (id, mark) VALUES (1, ${mark})
          ON CONFLICT (id) DO UPDATE SET mark = excluded.mark`
        return (await sql.one<{ mark: string }>`SELECT mark FROM core_check WHERE id = 1`) !== undefined
      } catch (error) {
        log.debug('the database check failed', {
          code: codeOf(error),
          error: messageOf(error),
        })
        return false
      }
    },
    [Symbol.asyncDispose]: () => engine.close(),
  }
}
