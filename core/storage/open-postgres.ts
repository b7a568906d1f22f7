import { randomBytes, randomUUID } from 'node:crypto'
import type { ConsolaInstance } from 'consola'
import type { PluginDatabase, Statement } from './database.ts'
import type { Engine } from './engine.ts'
import { NOT_HELD } from './failure.ts'
import { broadcastMigrations, PostgresBroadcast } from './postgres-broadcast.ts'
import { connectPostgres, DEFAULT_SETTINGS } from './postgres-client.ts'
import type { PostgresSettings } from './postgres-client.ts'
import { PostgresDatabase } from './postgres.ts'
import { openServerPool } from './server-pool.ts'

/**
 * Of the vault, for messages between daemons: 32 bytes. Asked when the core's tables are there. Without one, no daemon
 * hears another.
 */
export type BroadcastKey = (sql: PluginDatabase) => Promise<Uint8Array>

export interface PostgresOptions {
  readonly url: string
  readonly password?: string | undefined
  readonly broadcastKey?: BroadcastKey | undefined
  readonly log: ConsolaInstance
  readonly postgres?: PostgresSettings
}

/** Connections are opened when they are needed first. */
export async function openPostgres({
  url: address,
  password,
  broadcastKey,
  log,
  postgres,
}: PostgresOptions): Promise<{ readonly sql: PostgresDatabase; readonly engine: Engine }> {
  const url = withPassword(address, password)
  const settings = postgres ?? DEFAULT_SETTINGS
  const sql = new PostgresDatabase(url, settings, log)
  let broadcast: PostgresBroadcast | undefined
  const engine: Engine = {
    server: {
      openPool: (pool) => openServerPool(url, pool, log),
    },
    commit: (statements) => sql.patientBatch(MIGRATION_LOCK, statements),
    functions: FUNCTIONS,
    forget: () => sql.forget(),
    async snapshot() {
      throw new Error('a PostgreSQL database is copied with its own tools, such as pg_dump')
    },
    async scrub() {
      /* The server's own log is out of reach. */
    },
    async broadcast(migrate) {
      await migrate('core-broadcast', broadcastMigrations)
      broadcast = await PostgresBroadcast.open({
        daemonId: randomUUID(),
        connect: () => connectPostgres(url, settings),
        sql,
        key: (await broadcastKey?.(sql)) ?? randomBytes(32),
        log,
      })
      return broadcast
    },
    figures: () => ({ pool: sql.figures, broadcast: broadcast?.figures }),
    async close() {
      await broadcast?.[Symbol.asyncDispose]()
      await sql.close()
    },
  }
  return { sql, engine }
}

/** The lock under which the daemons on a database change its tables. */
export const MIGRATION_LOCK = 'core migrations'
/** What SQLite has from this process. */
export const FUNCTIONS: readonly Statement[] = [
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

/** The address with a password, unless it has one. */
export function withPassword(address: string, password: string | undefined): string {
  if (password === undefined) return address
  const url = new URL(address)
  if (url.password === '' && !url.searchParams.has('password')) url.searchParams.set('password', password)
  return url.href
}
