import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Database } from '../../../core/storage/database.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { closing, emptyPostgres, open, recorder } from './engines.ts'

const openOn = async (url: string): Promise<Database> => closing(await openDatabase({ url, log: recorder().log }))
const cups = [{ id: '1', sql: 'CREATE TABLE bar_cup (id INTEGER PRIMARY KEY, size REAL, label BLOB)' }]
async function openCups(): Promise<readonly [Database, Database]> {
  const url = await emptyPostgres()
  const [one, two] = [await openOn(url), await openOn(url)]
  await one.migrate('bar', cups)
  return [one, two]
}

describe('a server behind postgres://', () => {
  it('has migrations, batches, numbers and bytes as SQLite has', async () => {
    const { database } = await open('postgresql')
    const { sql } = database
    expect(database.dialect).toBe('postgresql')
    await database.migrate('bar', cups)
    const made = await sql.batch(
      [1, 2].map(
        (id) => sql.sql`INSERT INTO bar_cup (id, size, label) VALUES (${id}, ${0.1}, ${new Uint8Array([id, 255])})`,
      ),
    )
    expect(made).toEqual([{ changes: 1 }, { changes: 1 }])
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
    expect(await sql.all`UPDATE bar_cup SET size = ${null} RETURNING id, size`).toHaveLength(2)
    expect(await sql.run`DELETE FROM bar_cup WHERE id > ${0n}`).toEqual({ changes: 2 })
    expect(await database.check()).toBe(true)
  })

  it('carries batches out side by side, each whole, and a read sees what has settled', async () => {
    const [one, two] = await openCups()
    await Promise.all(
      Array.from({ length: 100 }, async (_, at) => {
        const { sql } = at % 2 === 0 ? one : two
        const ids = [at * 2, at * 2 + 1]
        const batch = ids.map((id) => sql.sql`INSERT INTO bar_cup (id, size) VALUES (${id}, ${at})`)
        if (at % 10 === 9) {
          await expect(sql.batch([...batch, ...batch])).rejects.toThrow(/bar_cup_pkey/)
          expect(await sql.all`SELECT id FROM bar_cup WHERE size = ${at}`).toEqual([])
          return
        }
        await sql.batch(batch)
        expect(await sql.all`SELECT id FROM bar_cup WHERE size = ${at} ORDER BY id`).toEqual(ids.map((id) => ({ id })))
      }),
    )
    expect(await one.sql.one`SELECT count(*) AS n FROM bar_cup`).toEqual({ n: 180 })
    const { open: connections, roundTrips, batches, statements } = one.figures().pool ?? {}
    expect(connections).toBeGreaterThan(1)
    expect(connections).toBeLessThanOrEqual(10)
    // A round trip for each, however many statements it has.
    expect(roundTrips).toBe(batches)
    expect(statements).toBeGreaterThan(batches ?? 0)
  })

  it('takes a batch that is too large for one round trip as a whole too', async () => {
    const [{ sql, ...one }] = await openCups()
    const row = (id: number, label: Uint8Array) => sql.sql`INSERT INTO bar_cup (id, label) VALUES (${id}, ${label})`
    const large = new Uint8Array(100_000).fill(7)
    const told: number[] = []
    const first = { ...row(1, large), written: (changes: number) => void told.push(changes) }
    await sql.batch([first, row(2, large)])
    await expect(sql.batch([row(3, large), { ...row(2, large), written: () => void told.push(-1) }])).rejects.toThrow()
    await sql.batch(Array.from({ length: 300 }, (_, at) => row(at + 10, new Uint8Array(1))))
    expect(await sql.one`SELECT count(*) AS n, sum(length(label)) AS bytes FROM bar_cup`).toEqual({
      n: 302,
      bytes: 200_300,
    })
    expect(told).toEqual([1])
    expect(one.figures().pool).toMatchObject({ retries: 0, unknown: 0 })
  })

  it('carries a batch that met another one out again, as a whole', async () => {
    const [one, two] = await openCups()
    await one.sql.run`INSERT INTO bar_cup (id, size) VALUES (1, 0), (2, 0)`
    const add = ({ sql }: Database, ids: readonly number[]) =>
      sql.batch(ids.map((id) => sql.sql`UPDATE bar_cup SET size = size + 1 WHERE id = ${id}`))
    for (let round = 0; round < 20; round++) await Promise.all([add(one, [1, 2]), add(two, [2, 1]), add(one, [2, 1])])
    expect(await two.sql.all`SELECT size FROM bar_cup`).toEqual([{ size: 60 }, { size: 60 }])
  })

  it('lets no two batches with the same key count at the same time, at whichever daemon', async () => {
    const [one, two] = await openCups()
    // All connections are open, so that the first ones meet.
    await Promise.all([one, two].flatMap(({ sql }) => Array.from({ length: 10 }, () => sql.one`SELECT pg_sleep(0.1)`)))
    const added = await Promise.allSettled(
      Array.from({ length: 60 }, (_, id) => {
        const { sql } = id % 2 === 0 ? one : two
        return sql.batch([
          {
            ...sql.sql`INSERT INTO bar_cup (id)
              VALUES (CASE WHEN (SELECT count(*) FROM bar_cup) < 7 THEN CAST(${id} AS BIGINT) END)`,
            exclusive: 'bar cups',
          },
        ])
      }),
    )
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
  })

  it('goes on with the columns that a table got meanwhile', async () => {
    const [one, two] = await openCups()
    await one.sql.run`INSERT INTO bar_cup (id) VALUES (1)`
    const read = () => Promise.all(Array.from({ length: 20 }, () => one.sql.one`SELECT * FROM bar_cup WHERE id = ${1}`))
    for (let again = 0; again < 3; again++) await read()
    await two.migrate('bar', [...cups, { id: '2', sql: "ALTER TABLE bar_cup ADD COLUMN owner TEXT DEFAULT 'me'" }])
    expect(await read()).toEqual(Array.from({ length: 20 }, () => ({ id: 1, size: null, label: null, owner: 'me' })))
  })

  it('ends a statement that takes too long, which changes nothing', async () => {
    const [{ sql }] = await openCups()
    const slow = [
      sql.sql`SELECT set_config('statement_timeout', '500', true)`,
      sql.sql`INSERT INTO bar_cup (id) VALUES (1)`,
      sql.sql`SELECT pg_sleep(60)`,
    ]
    await expect(sql.batch(slow)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('database.statement_timeout_secs'),
    })
    expect(await sql.all`SELECT id FROM bar_cup`).toEqual([])
  })

  it('knows whose connections they are, and ends what stands still', async () => {
    const url = await emptyPostgres()
    const database = closing(
      await openDatabase({
        url,
        log: recorder().log,
        postgres: { connections: 2, statementTimeoutMs: 21_000, idleTransactionMs: 17_000 },
      }),
    )
    expect(
      await database.sql.one`SELECT current_setting('application_name') AS name,
        current_setting('statement_timeout') AS statement,
        current_setting('idle_in_transaction_session_timeout') AS idle`,
    ).toEqual({ name: 'svc', statement: '21s', idle: '17s' })
    await Promise.all(Array.from({ length: 20 }, () => database.sql.one`SELECT pg_sleep(0.001)`))
    expect(database.figures().pool).toMatchObject({ open: 2, waiting: 0 })
  })
})

describe('a start', () => {
  it('of several daemons on an empty database at the same moment makes the tables once', async () => {
    const url = await emptyPostgres()
    const steps = Array.from({ length: 5 }, (_, at) => ({
      id: `${at}`,
      sql: `CREATE TABLE bar_${at} (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX bar_${at}_name ON bar_${at} (name)`,
    }))
    const databases = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const database = await openOn(url)
        await Promise.all(
          [database.migrate('bar', steps), database.migrate('baz', cups)].map((done) => done.catch(fail)),
        )
        return database
      }),
    )
    for (const { sql } of databases) {
      expect(await sql.one`SELECT count(*) AS n FROM core_migration WHERE plugin = 'bar'`).toEqual({ n: 5 })
      expect(await sql.one`SELECT count(*) AS n FROM bar_4`).toEqual({ n: 0 })
    }
    function fail(error: unknown): never {
      throw error
    }
  })
})

/** A server whose connections are cut after it has carried out what holds `word`, before it says so. */
async function cutBehind(word: string) {
  const database = await createTestDatabase()
  const sockets = new Set<Socket>()
  const relay = createServer((client) => {
    const server = connect(join(database.host, '.s.PGSQL.5432'))
    let isDeaf = false
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
    }
    client.on('data', (chunk) => {
      isDeaf ||= chunk.includes(word)
      server.write(chunk)
    })
    server.on('data', (chunk) => void (isDeaf ? client.destroy() : client.write(chunk)))
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    url: `postgres://svc@127.0.0.1:${(relay.address() as AddressInfo).port}/${database.name}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      relay.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

it('of a write whose answer is lost the caller is told that it may be there, and a read is done again', async () => {
  await using server = await cutBehind('cut here')
  const database = await openDatabase({ url: server.url, log: recorder().log })
  try {
    const { sql } = database
    await database.migrate('bar', cups)
    await expect(sql.run`INSERT INTO bar_cup (id, label) VALUES (1, ${Buffer.from('cut here')})`).rejects.toMatchObject(
      {
        code: 'service_unavailable',
        message: expect.stringContaining('not known'),
      },
    )
    expect(await sql.all`SELECT id FROM bar_cup`).toEqual([{ id: 1 }])
    expect(database.figures().pool).toMatchObject({ unknown: 1 })
    await expect(sql.all`SELECT ${'cut here'}`).rejects.toMatchObject({
      message: expect.stringContaining('not answer'),
    })
  } finally {
    await database[Symbol.asyncDispose]()
  }
})
