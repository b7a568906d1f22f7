import type { TestDatabase } from '../../support/postgres-server.ts'
import { connectPostgres, DEFAULT_SETTINGS } from '../../../core/storage/postgres-client.ts'
import type { BenchPostgres } from './postgres.ts'

const TICKS_MS = 400
const PAYLOAD = JSON.stringify({ v: 1, from: 'a'.repeat(36), m: [['chat.turns', { type: 'relayed' }]] })
const COMMIT_MS = 1000
const LANES = 8

/**
 * Processor time of the server for a notification when so many connections listen, in microseconds. They listen for
 * other ones, as daemons do while two of them talk: the server wakes them all the same.
 */
export async function costOfNotification(
  database: TestDatabase,
  postgres: BenchPostgres,
  listeners: number,
): Promise<number> {
  const sender = await connectPostgres(database.url, DEFAULT_SETTINGS)
  const clients = await Promise.all(
    Array.from({ length: listeners }, () => connectPostgres(database.url, DEFAULT_SETTINGS)),
  )
  for (const [index, client] of clients.entries()) await client.query(`LISTEN bench_${index}`)
  await sender.query('LISTEN bench')
  let count = 0
  const before = postgres.cpuMs()
  // Until enough of its time has passed that the ticks in which it is counted do not matter.
  while (postgres.cpuMs() - before < TICKS_MS)
    for (let index = 0; index < 50; index++) {
      const { promise, resolve } = Promise.withResolvers<void>()
      sender.once('notification', () => resolve())
      await sender.query({
        name: 'notify',
        text: 'SELECT pg_notify($1, $2)',
        values: ['bench', `${PAYLOAD}${count++}`],
      })
      await promise
    }
  const cost = ((postgres.cpuMs() - before) * 1000) / count
  await Promise.all([sender, ...clients].map((client) => client.end()))
  return cost
}

/** Transactions a second that add a row over several connections, with a notification in each or without. */
export async function commitRate(database: TestDatabase, notifies: boolean): Promise<number> {
  await database.query('CREATE TABLE IF NOT EXISTS bench_commit (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)')
  const clients = await Promise.all(
    Array.from({ length: LANES }, () => connectPostgres(database.url, DEFAULT_SETTINGS)),
  )
  const text = `WITH made AS (INSERT INTO bench_commit (body) VALUES ($1) RETURNING id)
    SELECT ${notifies ? "pg_notify('bench_commit', id::text)" : 'id'} FROM made`
  const begun = performance.now()
  let count = 0
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - begun < COMMIT_MS) {
        await client.query({ name: 'commit', text, values: ['x'.repeat(1000)] })
        count++
      }
    }),
  )
  const rate = (count * 1000) / (performance.now() - begun)
  await Promise.all(clients.map((client) => client.end()))
  return rate
}

/** Processor time of the server for a look at so many members, in microseconds: every daemon does it with each beat. */
export async function costOfMembers(database: TestDatabase, postgres: BenchPostgres, members: number): Promise<number> {
  const client = await connectPostgres(database.url, DEFAULT_SETTINGS)
  await client.query('CREATE TEMP TABLE bench_member (LIKE cluster_member)')
  await client.query(
    `INSERT INTO bench_member SELECT gen_random_uuid(), gen_random_uuid(), 'web-' || n, 'host-' || n, '10.0.0.1:4545',
      '1.0.0', now()::text, 'active', 15000, n FROM generate_series(1, $1) AS n`,
    [members],
  )
  let count = 0
  const before = postgres.cpuMs()
  while (postgres.cpuMs() - before < TICKS_MS)
    for (let index = 0; index < 20; index++, count++)
      await client.query({ name: 'members', text: 'SELECT * FROM bench_member ORDER BY started_at, id' })
  const cost = ((postgres.cpuMs() - before) * 1000) / count
  await client.end()
  return cost
}
