import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import type { Statement } from '../../../core/storage/database.ts'
import { sqlPart } from '../../../core/storage/text.ts'
import { engines, open } from './engines.ts'
import type { EngineName } from './engines.ts'

async function start(engine: EngineName) {
  const opened = await open(engine)
  await opened.database.migrate('shelf', [
    {
      id: '1',
      sql: 'CREATE TABLE shelf_book (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, price REAL, cover BLOB)',
    },
  ])
  return { ...opened, db: opened.database.sql }
}
const refusal = async (work: Promise<unknown>): Promise<Refusal> =>
  work.then(
    () => {
      throw new Error('expected a refusal')
    },
    (error: unknown) => {
      if (error instanceof Refusal) return error
      throw error
    },
  )

describe.each(engines)('SQL on %s', (engine) => {
  it('a batch is all or nothing', async () => {
    const { db } = await start(engine)
    await expect(
      db.batch([
        db.sql`INSERT INTO shelf_book (id, title) VALUES (1, 'first')`,
        db.sql`INSERT INTO shelf_book (id, title) VALUES (2, 'first')`,
      ]),
    ).rejects.toThrow()
    expect(await db.all`SELECT id FROM shelf_book`).toEqual([])
  })

  it('one failing batch among many of the same tick takes nobody with it', async () => {
    const { db } = await start(engine)
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        db.batch([
          db.sql`INSERT INTO shelf_book (id, title) VALUES (${index * 2}, ${`a${index}`})`,
          index === 17
            ? db.sql`INSERT INTO shelf_book (id, title) VALUES (${1_001}, NULL)`
            : db.sql`INSERT INTO shelf_book (id, title) VALUES (${index * 2 + 1}, ${`b${index}`})`,
        ]),
      ),
    )
    expect(results.flatMap((result, index) => (result.status === 'rejected' ? [index] : []))).toEqual([17])
    const rows = await db.all<{ id: number }>`SELECT id FROM shelf_book ORDER BY id`
    expect(rows.map((row) => row.id)).toEqual(
      Array.from({ length: 80 }, (_, id) => id).filter((id) => id !== 34 && id !== 35),
    )
  })

  it('a statement that cannot be read fails alone', async () => {
    const { db } = await start(engine)
    const [bad, good] = await Promise.allSettled([
      db.run`INSERT INTO nowhere VALUES (1)`,
      db.run`INSERT INTO shelf_book (id, title) VALUES (1, 'x')`,
    ])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
  })

  it('64 concurrent writers lose no update', async () => {
    const { db } = await start(engine)
    await db.run`INSERT INTO shelf_book (id, title, price) VALUES (1, 'counter', 0)`
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        for (let round = 0; round < 10; round++) await db.run`UPDATE shelf_book SET price = price + 1 WHERE id = 1`
      }),
    )
    expect(await db.one`SELECT price FROM shelf_book WHERE id = 1`).toEqual({ price: 640 })
  })

  it('says how many rows were written, so that a conditional update tells who won', async () => {
    const { db } = await start(engine)
    await db.run`INSERT INTO shelf_book (id, title) VALUES (1, 'free'), (2, 'taken')`
    const claims = await Promise.all(
      [1, 2, 3].map((who) => db.run`UPDATE shelf_book SET title = ${`by ${who}`} WHERE id = 1 AND title = 'free'`),
    )
    expect(claims.map((claim) => claim.changes).toSorted()).toEqual([0, 0, 1])
    expect(await db.run`INSERT INTO shelf_book (id, title) VALUES (2, 'x') ON CONFLICT (id) DO NOTHING`).toEqual({
      changes: 0,
    })
    expect(
      await db.run`INSERT INTO shelf_book (id, title) VALUES (2, 'y')
        ON CONFLICT (id) DO UPDATE SET title = excluded.title`,
    ).toEqual({ changes: 1 })
    expect(
      await db.batch([db.sql`DELETE FROM shelf_book WHERE id < 10`, db.sql`DELETE FROM shelf_book`]),
    ).toMatchObject([{ changes: 2 }, { changes: 0 }])
  })

  it('a statement is told what it wrote when it is on disk, and nothing when its batch failed', async () => {
    const { db } = await start(engine)
    const told: string[] = []
    const telling = (name: string, statement: Statement): Statement => ({
      ...statement,
      written: (changes) => {
        told.push(`${name} ${changes}`)
      },
    })
    const done = await Promise.allSettled([
      db
        .batch([
          telling('a', db.sql`INSERT INTO shelf_book (id, title) VALUES (1, 'one')`),
          telling('b', db.sql`UPDATE shelf_book SET price = 1 WHERE id = 7`),
        ])
        .then(() => told.push('settled')),
      db.batch([
        telling('c', db.sql`INSERT INTO shelf_book (id, title) VALUES (2, 'two')`),
        telling('d', db.sql`INSERT INTO shelf_book (id, title) VALUES (3, 'two')`),
      ]),
      db.batch([
        {
          ...db.sql`INSERT INTO shelf_book (id, title) VALUES (5, 'five')`,
          written: () => {
            throw new Error('a copy that cannot follow')
          },
        },
        telling('e', db.sql`INSERT INTO shelf_book (id, title) VALUES (4, 'four')`),
      ]),
    ])
    expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(told.filter((line) => line !== 'settled')).toEqual(['a 1', 'b 0', 'e 1'])
    expect(told.indexOf('settled')).toBeGreaterThan(told.indexOf('b 0'))
  })

  it('RETURNING works in a read and counts in a batch', async () => {
    const { db } = await start(engine)
    expect(await db.all`INSERT INTO shelf_book (id, title) VALUES (1, 'a'), (2, 'b') RETURNING id`).toEqual([
      { id: 1 },
      { id: 2 },
    ])
    expect(await db.one`UPDATE shelf_book SET title = 'c' WHERE id = 2 RETURNING title`).toEqual({ title: 'c' })
    expect(await db.batch([db.sql`DELETE FROM shelf_book RETURNING id`])).toMatchObject([{ changes: 2 }])
  })

  it('a read sees every write that has settled', async () => {
    const { db } = await start(engine)
    for (let id = 0; id < 20; id++) {
      await db.run`INSERT INTO shelf_book (id, title) VALUES (${id}, ${String(id)})`
      expect(await db.one`SELECT title FROM shelf_book WHERE id = ${id}`).toEqual({ title: String(id) })
    }
  })

  it('integers up to 2^53, counts and sums come back as numbers, null as null, bytes as bytes', async () => {
    const { db } = await start(engine)
    await db.run`INSERT INTO shelf_book (id, title, price, cover)
      VALUES (${Number.MAX_SAFE_INTEGER}, ${'x'}, ${null}, ${new Uint8Array([0, 255, 7])})`
    await db.run`INSERT INTO shelf_book (id, title, price) VALUES (${3n}, ${'Ünïcode 👋 ?'}, ${0.1})`
    expect(await db.one`SELECT id, title, price FROM shelf_book WHERE id > 5`).toEqual({
      id: Number.MAX_SAFE_INTEGER,
      title: 'x',
      price: null,
    })
    expect(await db.one`SELECT id, title, price FROM shelf_book WHERE id = 3`).toEqual({
      id: 3,
      title: 'Ünïcode 👋 ?',
      price: 0.1,
    })
    expect(
      await db.one`SELECT count(*) AS n, sum(id) AS total FROM shelf_book WHERE id = 3 AND title LIKE '%?'`,
    ).toEqual({ n: 1, total: 3 })
    const row = await db.one<{ cover: Uint8Array }>`SELECT cover FROM shelf_book WHERE cover IS NOT NULL`
    expect([...(row?.cover ?? [])]).toEqual([0, 255, 7])
    expect(await db.one`SELECT id FROM shelf_book WHERE id = 99`).toBeUndefined()
  })

  it('LIMIT and OFFSET take values, and a text that looks like them stays as it is', async () => {
    const { db } = await start(engine)
    await db.run`INSERT INTO shelf_book (id, title) VALUES (1, 'limit ?'), (2, 'b'), (3, 'c')`
    expect(await db.all`SELECT id FROM shelf_book ORDER BY id LIMIT ${1} OFFSET ${1}`).toEqual([{ id: 2 }])
    expect(await db.all`SELECT id FROM shelf_book WHERE title = 'limit ?' OR id > ${2} ORDER BY id LIMIT ${5}`).toEqual(
      [{ id: 1 }, { id: 3 }],
    )
  })

  it('values are bound, never spliced', async () => {
    const { db } = await start(engine)
    const hostile = `'); DROP TABLE shelf_book; --`
    await db.run`INSERT INTO shelf_book (id, title) VALUES (1, ${hostile})`
    expect(await db.one`SELECT title FROM shelf_book WHERE title = ${hostile}`).toEqual({ title: hostile })
  })

  it('a part that statements share is text with values of its own, and nothing else is', async () => {
    const { db } = await start(engine)
    const cheap = (limit: number) => sqlPart`price < ${limit}`
    const wanted = (title: string) => sqlPart`(${cheap(9)} AND title <> ${title} AND title <> '?')`
    await db.run`INSERT INTO shelf_book (id, title, price) VALUES (${1}, ${'a'}, 5), (${2}, ${'b'}, 7), (${3}, ${'c'}, 50)`
    expect(await db.all`SELECT id FROM shelf_book WHERE id > ${0} AND ${wanted('a')} AND id < ${9}`).toEqual([
      { id: 2 },
    ])
    expect(await db.one`SELECT COUNT(*) AS count FROM shelf_book WHERE ${cheap(9)}`).toEqual({ count: 2 })
    await db.batch([db.sql`UPDATE shelf_book SET price = ${8} WHERE ${wanted('b')} AND id = ${1}`])
    expect(await db.all`SELECT price FROM shelf_book WHERE id = ${1}`).toEqual([{ price: 8 }])
    const forged = { sql: 'title', values: [] } as unknown as string
    const read = async () => db.all`SELECT id FROM shelf_book WHERE title = ${forged}`
    expect(await read().catch(() => [])).toEqual([])
  })

  it('svc_sha256 is SHA-256 in hex', async () => {
    const { db } = await start(engine)
    expect(await db.one`SELECT svc_sha256(CAST(${'grün 👋'} AS TEXT)) AS hash`).toEqual({
      hash: hash('sha256', 'grün 👋'),
    })
  })

  it.each([
    'BEGIN',
    ' commit',
    'ROLLBACK',
    'savepoint x',
    'RELEASE x',
    'VACUUM',
    'PRAGMA user_version',
    "ATTACH DATABASE 'x' AS y",
  ])('refuses %s in a batch and the others go on', async (sql) => {
    const { db } = await start(engine)
    const [bad, good] = await Promise.allSettled([
      db.batch([db.sql`INSERT INTO shelf_book (id, title) VALUES (1, 'x')`, { sql, values: [] }]),
      db.run`INSERT INTO shelf_book (id, title) VALUES (2, 'y')`,
    ])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
    expect(await db.all`SELECT id FROM shelf_book`).toEqual([{ id: 2 }])
  })

  it('the check writes and reads', async () => {
    const { database } = await start(engine)
    expect(await database.check()).toBe(true)
    expect(await database.check()).toBe(true)
  })

  it('after closing, everything is refused as unavailable and what was handed in before is kept', async () => {
    const { database, db } = await start(engine)
    const last = db.run`INSERT INTO shelf_book (id, title) VALUES (1, 'last')`
    await database[Symbol.asyncDispose]()
    expect(await last).toEqual({ changes: 1 })
    expect((await refusal(db.run`INSERT INTO shelf_book (id, title) VALUES (2, 'late')`)).code).toBe(
      'service_unavailable',
    )
    expect(await database.check()).toBe(false)
  })
})
