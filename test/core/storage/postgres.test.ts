import type { Connector } from 'db0'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { closing, open, recorder } from './engines.ts'

interface Call {
  readonly text: string
  readonly values: readonly unknown[]
}
/** A connector whose client answers as the script says; counts how often it was connected and given up. */
function scripted(answer: (call: Call, n: number) => void | Promise<void>) {
  const calls: Call[] = []
  let connections = 0
  let client: object | undefined
  const connector: Connector = {
    name: 'scripted',
    dialect: 'postgresql',
    exec: () => Promise.resolve(undefined),
    prepare() {
      throw new Error('not used')
    },
    async getInstance() {
      if (!client) {
        connections++
        client = {
          async query(text: string, values: readonly unknown[]) {
            calls.push({ text, values })
            await answer({ text, values }, calls.length)
            return {
              rows: text.includes('information_schema') ? [{ table_name: 'core_migration' }] : [],
              fields: [],
              rowCount: 1,
            }
          },
        }
      }
      return client
    },
    async dispose() {
      client = undefined
    },
  }
  return { connector, calls, connections: () => connections }
}
const lost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

describe('a database server that fails', () => {
  it('is unavailable while it is gone, and is connected anew', async () => {
    let broken = false
    const server = scripted(() => {
      if (broken) throw lost()
    })
    const database = closing(await openDatabase({ url: '', connector: server.connector, log: recorder().log }))
    expect(server.connections()).toBe(1)
    broken = true
    await expect(database.sql.run`UPDATE a SET b = 1`).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterSecs: 5,
    })
    await expect(
      database.sql.batch([database.sql.sql`UPDATE a SET b = 1`, database.sql.sql`UPDATE a SET b = 2`]),
    ).rejects.toMatchObject({ code: 'service_unavailable' })
    expect(await database.check()).toBe(false)
    broken = false
    expect(await database.sql.run`UPDATE a SET b = 3`).toEqual({ changes: 1 })
    expect(server.connections()).toBeGreaterThan(1)
  })

  it('a batch that met another one is done again as a whole', async () => {
    let conflicts = 2
    const server = scripted(({ text }) => {
      if (text.includes('b = 2') && conflicts-- > 0)
        throw Object.assign(new Error('could not serialize'), { code: '40001' })
    })
    const database = closing(await openDatabase({ url: '', connector: server.connector, log: recorder().log }))
    const before = server.calls.length
    await database.sql.batch([database.sql.sql`UPDATE a SET b = ${1}`, database.sql.sql`UPDATE a SET b = 2`])
    const texts = server.calls.slice(before).map((call) => call.text)
    const round = ['BEGIN', 'UPDATE a SET b = $1', 'UPDATE a SET b = 2']
    expect(texts).toEqual([...round, 'ROLLBACK', ...round, 'ROLLBACK', ...round, 'COMMIT'])
  })

  it('batches and reads never stand inside another batch', async () => {
    const server = scripted(
      () =>
        new Promise((resolve) => {
          setImmediate(resolve)
        }),
    )
    const database = closing(await openDatabase({ url: '', connector: server.connector, log: recorder().log }))
    const before = server.calls.length
    await Promise.all(
      [1, 2, 3].flatMap((n) => [
        database.sql.batch([database.sql.sql`UPDATE a SET b = ${n}`, database.sql.sql`UPDATE a SET c = ${n}`]),
        database.sql.all`SELECT ${n}`,
      ]),
    )
    const words = server.calls.slice(before).map((call) => call.text.split(' ')[0])
    expect(words.join(' ')).toBe('BEGIN UPDATE UPDATE COMMIT SELECT '.repeat(3).trim())
  })
})

describe('a server behind postgres://', () => {
  it('works through the pg driver: migrations, batches, numbers, bytes', async () => {
    const { database } = await open('postgresql')
    const { sql } = database
    expect(database.dialect).toBe('postgresql')
    await database.migrate('bar', [
      { id: '1', sql: 'CREATE TABLE bar_cup (id INTEGER PRIMARY KEY, size REAL, label BLOB)' },
    ])
    await sql.batch(
      [1, 2].map(
        (id) => sql.sql`INSERT INTO bar_cup (id, size, label) VALUES (${id}, ${0.1}, ${new Uint8Array([id, 255])})`,
      ),
    )
    expect(await sql.one`SELECT count(*) AS n, sum(id) AS total, max(size) AS size FROM bar_cup`).toEqual({
      n: 2,
      total: 3,
      size: 0.1,
    })
    const row = await sql.one<{ label: Uint8Array }>`SELECT label FROM bar_cup WHERE id = ${2}`
    expect([...(row?.label ?? [])]).toEqual([2, 255])
    await expect(sql.batch([sql.sql`DELETE FROM bar_cup`, sql.sql`INSERT INTO nowhere VALUES (1)`])).rejects.toThrow(
      /nowhere/,
    )
    expect(await sql.one`SELECT count(*) AS n FROM bar_cup`).toEqual({ n: 2 })
    expect(await database.check()).toBe(true)
  })

  it('a connection that breaks is reported, not fatal, and made anew', async () => {
    const { database } = await open('postgresql')
    const ended = await database.sql.all<{ ended: boolean }>`SELECT pg_terminate_backend(pid) AS ended
      FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
    expect(ended).toEqual([{ ended: true }])
    const first = await database.check()
    expect([first, await database.check(), await database.check()].at(-1)).toBe(true)
  })
})
