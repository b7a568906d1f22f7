import { randomUUID } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ConsolaInstance } from 'consola'
import { noBroadcast } from './broadcast.ts'
import type { Broadcast } from './broadcast.ts'
import type { Database, Migration, PluginDatabase, Statement } from './database.ts'
import { codeOf, NOT_HELD } from './failure.ts'
import { Migrations } from './migrate.ts'
import type { PostgresBroadcast } from './postgres-broadcast.ts'
import type { DatabaseServer } from './database-server.ts'
import type { PostgresSettings } from './postgres-client.ts'
import { SqliteConnection } from './sqlite-connection.ts'
import { openFile, syncFolder } from './sqlite-file.ts'
import { SqliteDatabase } from './sqlite.ts'
import { messageOf } from '../errors/message.ts'

export interface DatabaseOptions {
  /** `sqlite:<path>`, `sqlite::memory:` or `postgres://…`. */
  readonly url: string
  readonly log: ConsolaInstance
  /** For a PostgreSQL address without one. */
  readonly password?: string | undefined
  /** How a PostgreSQL server is used; the defaults when absent. */
  readonly postgres?: PostgresSettings
  /** Told when a commit finds no room on the disk. */
  readonly onFull?: () => void
}

const CORE: readonly Migration[] = [
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
]

/** Opens and checks the database and makes the core's own tables. Throws `DatabaseRefused` for one that is damaged. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { url, log } = options
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(options)
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
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      const draft = `${file}.part`
      await rm(draft, { force: true })
      try {
        await (await open(draft, 'wx', 0o600)).close()
        // Copies a hundred pages at a time and yields; a write of ours meanwhile goes into the copy too.
        await connection.instance.backup(draft)
        await chmod(draft, 0o600)
        const handle = await open(draft, 'r')
        try {
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(draft, file)
        syncFolder(dirname(file))
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
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

async function openPostgres({ url: address, password, log, postgres }: DatabaseOptions): Promise<Database> {
  const { DEFAULT_SETTINGS, connectPostgres } = await import('./postgres-client.ts')
  const { PostgresDatabase } = await import('./postgres.ts')
  const { openServerPool } = await import('./server-pool.ts')
  const url = withPassword(address, password)
  const settings = postgres ?? DEFAULT_SETTINGS
  const sql = new PostgresDatabase(url, settings, log)
  let broadcast: PostgresBroadcast | undefined
  return ready(sql, log, {
    server: {
      openPool: (pool) => openServerPool(url, pool, log),
    },
    commit: (statements) => sql.patientBatch(MIGRATIONS, statements),
    functions: FUNCTIONS,
    forget: () => sql.forget(),
    async snapshot() {
      throw new Error('a PostgreSQL database is copied with its own tools, such as pg_dump')
    },
    async scrub() {
      /* The server's own log is out of reach. */
    },
    async broadcast(migrate) {
      const { broadcastMigrations, PostgresBroadcast } = await import('./postgres-broadcast.ts')
      await migrate('core-broadcast', broadcastMigrations)
      broadcast = await PostgresBroadcast.open({
        daemonId: randomUUID(),
        connect: () => connectPostgres(url, settings),
        sql,
        log,
      })
      return broadcast
    },
    figures: () => ({ pool: sql.figures, broadcast: broadcast?.figures }),
    async close() {
      await broadcast?.[Symbol.asyncDispose]()
      await sql.close()
    },
  })
}

/** The lock under which the daemons on a database change its tables. */
const MIGRATIONS = 'core migrations'
/** What SQLite has from this process. */
const FUNCTIONS: readonly Statement[] = [
  {
    sql: `CREATE OR REPLACE FUNCTION svc_sha256(value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
      AS $$ SELECT encode(sha256(convert_to(value, 'UTF8')), 'hex') $$`,
    values: [],
  },
  {
    sql: `CREATE OR REPLACE FUNCTION svc_require(holds boolean) RETURNS boolean LANGUAGE plpgsql
      AS $$ BEGIN
        IF holds IS NOT TRUE THEN RAISE EXCEPTION 'required and not so' USING ERRCODE = '${NOT_HELD}'; END IF;
        RETURN TRUE;
      END $$`,
    values: [],
  },
]

function withPassword(address: string, password: string | undefined): string {
  if (password === undefined) return address
  const url = new URL(address)
  if (url.password === '' && !url.searchParams.has('password')) url.searchParams.set('password', password)
  return url.href
}

interface Engine {
  /** One batch of migrations, alone on the database. */
  commit(statements: readonly Statement[]): Promise<unknown>
  /** Made at every start. */
  readonly functions: readonly Statement[]
  readonly figures: Database['figures']
  /** Told how to make its tables. */
  broadcast(migrate: (name: string, migrations: readonly Migration[]) => Promise<unknown>): Promise<Broadcast>
  readonly server: DatabaseServer
  forget(): void
  snapshot(file: string): Promise<void>
  scrub(): Promise<void>
  close(): Promise<void>
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
    await migrate('core-storage', CORE, { strict: true })
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
