import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import type { QueryArrayResult } from 'pg'
import { memoryFolder } from './memory-folder.ts'

/**
 * A real PostgreSQL for tests: that of Debian's package `postgresql`.
 *
 *     await using database = await createTestDatabase()
 *     await using one = await startHost({ config: { database_url: database.url } })
 *     await using other = await startHost({ config: { database_url: database.url } })
 *
 * One server is started for a whole run of tests, when the first of them asks; each test has an empty database on it.
 * A test that restarts or breaks the server has one of its own: `await using server = await startPostgres()`, then
 * `server.createDatabase()`. Nothing of them is left when the run ends, however it ends.
 */

const keeper = fileURLToPath(new URL('postgres.sh', import.meta.url))
/** Where a test asks for the server of the run: see `serve-postgres.ts`. */
export const SHARED_ADDRESS = 'SVC_TEST_POSTGRES'

export interface TestDatabase extends AsyncDisposable {
  /** For `database_url`. */
  readonly url: string
  readonly name: string
  /** The folder of the server's Unix socket. */
  readonly host: string
  /** What `psql -At` prints for a text of SQL: a line for each row, `|` between its values. */
  query(sql: string): Promise<string>
}

export interface PostgresServer extends AsyncDisposable {
  /** The folder of its Unix socket, `.s.PGSQL.5432`, with its `data`. */
  readonly host: string
  createDatabase(): Promise<TestDatabase>
  /** `fast` tells every connection and rolls back; `immediate` is a crash, from which the next start recovers. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
}

/** For tests: nothing is waited for on a disk, and nothing is left outside the folder. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '',
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '400',
  shared_buffers: '64MB',
  dynamic_shared_memory_type: 'mmap',
  jit: 'off',
}

/** A server that only the caller uses. `settings` are lines of `postgresql.conf`; `parent` is in memory by default. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  parent = memoryFolder() ?? '/tmp',
): Promise<PostgresServer> {
  const bin = findBinaries()
  const host = await mkdtemp(join(parent, 'svc-postgres-'))
  const lines = Object.entries({ ...SETTINGS, ...settings }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // Detached, so that what is sent to the process group of the run does not reach it.
  const child = spawn('/bin/sh', [keeper, bin, host, ...lines], { detached: true, stdio: 'pipe' })
  const log: string[] = []
  const told = createInterface({ input: child.stdout })
  const server = createInterface({ input: child.stderr })
  server.on('line', (line) => {
    log.push(line)
    if (log.length > 100) log.shift()
  })
  const started = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        server.off('line', read)
        child.off('exit', end)
        settle()
      }
      const fail = (): void => finish(() => reject(new Error(`PostgreSQL does not start:\n${log.join('\n')}`)))
      const read = (line: string): void => {
        if (line.includes('database system is ready to accept connections')) finish(resolve)
        else if (/\bFATAL:(?! .*(?:starting up|shutting down|not yet accepting))|initdb: error/.test(line)) fail()
      }
      const end = (): void => fail()
      server.on('line', read)
      child.once('exit', end)
    })
  await started()
  // The process may end without it, which ends it.
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) if ('unref' in stream) (stream.unref as () => void)()
  return {
    host,
    createDatabase: () => createDatabase(host),
    async stop(mode) {
      const stopped = once(told, 'line')
      child.stdin.write(`stop ${mode}\n`)
      await stopped
    },
    async start() {
      const ready = started()
      child.stdin.write('start\n')
      await ready
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      child.ref()
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}

/** An empty database on the server of this run, dropped with everybody who still uses it when it is disposed. */
export async function createTestDatabase(): Promise<TestDatabase> {
  shared ??= findShared()
  return await createDatabase(await shared)
}
let shared: Promise<string> | undefined

/** The folder of the shared server: that of the run, or one of this process where there is no run. */
async function findShared(): Promise<string> {
  const address = process.env[SHARED_ADDRESS]
  if (address === undefined) return (await startPostgres()).host
  const answer = JSON.parse(await text(createConnection(address))) as {
    readonly host?: string
    readonly error?: string
  }
  if (answer.host === undefined) throw new Error(answer.error)
  return answer.host
}

async function createDatabase(host: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await query(host, 'postgres', `CREATE DATABASE ${name} STRATEGY file_copy`)
  return {
    url: `postgres:///${name}?host=${encodeURIComponent(host)}&user=svc`,
    name,
    host,
    query: (sql) => query(host, name, sql),
    async [Symbol.asyncDispose]() {
      await query(host, 'postgres', `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    },
  }
}

/** What `psql -At` prints for the text; starting that for each takes longer. */
async function query(host: string, database: string, text: string): Promise<string> {
  // Values as the server writes them.
  const client = new Client({ host, user: 'svc', database, types: { getTypeParser: () => String } })
  // The query that runs rejects.
  client.on('error', () => undefined)
  await client.connect()
  try {
    // One result for each statement.
    const results: unknown = await client.query<(string | null)[]>({ text, rowMode: 'array' })
    const rows = [results as QueryArrayResult<(string | null)[]>].flat().flatMap((result) => result.rows)
    return rows
      .map((values) => values.join('|'))
      .join('\n')
      .trimEnd()
  } finally {
    await client.end()
  }
}

/** The folder of the newest PostgreSQL that Debian has here. */
export function findBinaries(): string {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).toSorted((one, other) => Number(other) - Number(one)) : []
  const found = versions.map((version) => join(root, version, 'bin')).find((bin) => existsSync(join(bin, 'postgres')))
  if (found === undefined) throw new Error('these tests need PostgreSQL: apt-get install postgresql')
  return found
}
