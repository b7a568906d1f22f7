import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import type { Database } from '../../../core/storage/database.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer, TestDatabase } from '../../support/postgres-server.ts'
import { recorder } from './engines.ts'

interface Stage {
  readonly server: PostgresServer
  readonly place: TestDatabase
  readonly daemons: readonly Database[]
}
const MIGRATIONS = [
  {
    id: '1',
    sql: 'CREATE TABLE bar_row (id TEXT PRIMARY KEY); CREATE TABLE bar_sum (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)',
  },
]

/** Two daemons write as fast as they can while `harm` is done; then what they were told is compared with what is there. */
async function underLoad(harm: (stage: Stage) => Promise<void>) {
  await using server = await startPostgres()
  await using place = await server.createDatabase()
  const start = () => openDatabase({ url: place.url, log: recorder().log })
  const [one, two] = await Promise.all([start(), start()])
  const daemons = [one, two]
  const over = new AbortController()
  try {
    await one.migrate('bar', MIGRATIONS)
    await one.sql.run`INSERT INTO bar_sum (id, n) VALUES (1, 0)`
    const done: string[] = []
    const refused: string[] = []
    let told = 0
    const write = async ({ sql }: Database, name: string): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        const id = `${name} ${n}`
        try {
          await sql.batch([
            { ...sql.sql`INSERT INTO bar_row (id) VALUES (${id})`, written: () => void told++ },
            sql.sql`UPDATE bar_sum SET n = n + 1 WHERE id = 1`,
          ])
          done.push(id)
        } catch (error) {
          if (!(error instanceof Refusal && error.code === 'service_unavailable')) throw error
          refused.push(error.message)
        }
        await sql.all`SELECT n FROM bar_sum`.catch(() => undefined)
      }
    }
    const writers = daemons.flatMap((daemon, at) => [1, 2, 3].map((n) => write(daemon, `${at} ${n}`)))
    await harm({ server, place, daemons })
    const before = done.length
    await expect.poll(() => done.length, { timeout: 30_000 }).toBeGreaterThan(before + 50)
    over.abort()
    await Promise.all(writers)
    const rows = await two.sql.all<{ id: string }>`SELECT id FROM bar_row`
    const there = new Set(rows.map(({ id }) => id))
    expect(done.filter((id) => !there.has(id))).toEqual([])
    expect(told).toBe(done.length)
    // Each is there once: with its row the sum grew by one.
    expect(await one.sql.one`SELECT n FROM bar_sum`).toEqual({ n: rows.length })
    // What is there and was not acknowledged, was said to be unknown.
    const unknown = refused.filter((message) => message.includes('not known')).length
    expect(rows.length - done.length).toBeLessThanOrEqual(unknown)
    return { done: done.length, refused, retries: daemons.map((daemon) => daemon.figures().pool?.retries ?? 0) }
  } finally {
    over.abort()
    for (const daemon of daemons) await daemon[Symbol.asyncDispose]()
  }
}

describe('under load nothing that was acknowledged is lost, and nothing is done twice', () => {
  it('while connections are ended one after the other', async () => {
    const { retries } = await underLoad(async ({ place, daemons: [one] }) => {
      const hasRetried = (): boolean => (one?.figures().pool?.retries ?? 0) > 0
      // One that is idle is only opened anew.
      for (let round = 0; round < 15 || (round < 1_000 && !hasRetried()); round++)
        await place.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'svc'
          AND datname = current_database() ORDER BY random() LIMIT 3`)
    })
    expect(retries[0]).toBeGreaterThan(0)
  })

  it('while the server is stopped and started', async () => {
    await underLoad(async ({ server }) => {
      for (const mode of ['fast', 'fast', 'immediate'] as const) {
        await server.stop(mode)
        await server.start()
      }
    })
  })

  it('while a process of the server is killed, which makes it begin anew', async () => {
    await underLoad(async ({ place, daemons }) => {
      const pid = Number(
        await place.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'svc' ORDER BY random() LIMIT 1`),
      )
      process.kill(pid, 'SIGKILL')
      await expect.poll(() => daemons[0]?.check(), { timeout: 30_000 }).toBe(true)
    })
  })
})
