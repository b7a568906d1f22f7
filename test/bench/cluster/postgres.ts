import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer, TestDatabase } from '../../support/postgres-server.ts'

/** A PostgreSQL as people run it: what is committed is on the disk, and statements are counted. */
export interface BenchPostgres extends PostgresServer {
  /** Processor time of all its processes, those that ended too, in milliseconds. */
  cpuMs(): number
}

export async function startBenchPostgres(): Promise<BenchPostgres> {
  const server = await startPostgres(
    {
      fsync: 'on',
      full_page_writes: 'on',
      autovacuum: 'on',
      wal_level: 'replica',
      max_wal_senders: '10',
      shared_buffers: '256MB',
      max_wal_size: '4GB',
      shared_preload_libraries: 'pg_stat_statements',
      // Planning a statement that is not prepared counts as work, and not as a statement.
      'pg_stat_statements.track': 'top',
    },
    '/var/tmp',
  )
  const [pid = ''] = readFileSync(join(server.host, 'data', 'postmaster.pid'), 'utf8').split('\n')
  return { ...server, cpuMs: () => cpuOf(pid) }
}

const TICK_MS = 10

/** Of a process, its children, and those of them that ended. */
function cpuOf(parent: string): number {
  let ticks = 0
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const fields = readStat(pid)
    if (!fields) continue
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number)
    if (pid === parent) ticks += user + system + endedUser + endedSystem
    else if (fields[1] === parent) ticks += user + system
  }
  return ticks * TICK_MS
}
/** The fields behind the name: the state, the parent … */
function readStat(pid: string): readonly string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')
  } catch {
    return undefined // It ended meanwhile.
  }
}

/** What a database did since it was made. */
export interface DatabaseCounts {
  readonly statements: number
  /** Transactions that wrote or notified, of the whole server. */
  readonly writes: number
  readonly walBytes: number
  readonly notifications: number
  /** Of svc, those that listen included. */
  readonly connections: number
}

const OWN = `query NOT LIKE '%pg_stat_statements%'`

export async function readCounts(database: TestDatabase): Promise<DatabaseCounts> {
  const text = await database.query(`
    SELECT coalesce(sum(calls) FILTER (WHERE ${OWN}), 0) || ' ' ||
      coalesce(sum(calls) FILTER (WHERE query LIKE '%pg_notify%'), 0)
      FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database());
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text || ' ' || pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0');
    SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()`)
  const [statements = 0, notifications = 0, writes = 0, walBytes = 0, connections = 0] = text.split(/\s+/).map(Number)
  return { statements, notifications, writes, walBytes, connections }
}

/** The statements that were carried out most often, or cost most, with how often and how many milliseconds. */
export async function listStatements(database: TestDatabase): Promise<readonly string[]> {
  const text = await database.query(`
    SELECT calls || ' x, ' || round(total_exec_time)::text || ' ms, ' || left(regexp_replace(query, '\\s+', ' ', 'g'), 150)
      FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND ${OWN}
      ORDER BY total_exec_time DESC LIMIT 60`)
  return text.split('\n')
}
