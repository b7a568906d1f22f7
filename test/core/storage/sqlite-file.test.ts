import { copyFile, mkdir, open as openFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'valibot'
import * as v from 'valibot'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { start } from './child.ts'
import { closing, folder, open, recorder } from './engines.ts'

const table = [{ id: '1', sql: 'CREATE TABLE file_row (id INTEGER PRIMARY KEY, body TEXT NOT NULL)' }]
const mode = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)
const reopen = (file: string) => openDatabase({ url: `sqlite:${file}`, log: recorder().log })

describe('the file', () => {
  it('is for its owner only, with its log and its folder', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    expect(await Promise.all([dirname(file), file, `${file}-wal`, `${file}-shm`].map(mode))).toEqual([
      '700',
      '600',
      '600',
      '600',
    ])
    expect((await readdir(dirname(file))).toSorted()).toEqual(['svc.db', 'svc.db-shm', 'svc.db-wal'])
  })

  it('is one file without a log after closing', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    await database[Symbol.asyncDispose]()
    expect(await readdir(dirname(file))).toEqual(['svc.db'])
  })

  it('runs with a log, full syncs, foreign keys and overwriting of what is deleted', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', [
      ...table,
      {
        id: '2',
        sql: `CREATE TABLE file_child (id INTEGER PRIMARY KEY,
          row INTEGER NOT NULL REFERENCES file_row (id) DEFERRABLE INITIALLY DEFERRED)`,
      },
    ])
    await expect(database.sql.run`INSERT INTO file_child (id, row) VALUES (1, 99)`).rejects.toThrow(/FOREIGN KEY/)
    await database.sql.run`INSERT INTO file_row (id, body) VALUES (1, ${'CANARY-7f3a'.repeat(20)})`
    await database.scrub()
    expect((await readFile(file)).includes('CANARY-7f3a')).toBe(true)
    await database.sql.run`DELETE FROM file_row`
    await database.scrub()
    for (const name of [file, `${file}-wal`]) expect((await readFile(name)).includes('CANARY-7f3a')).toBe(false)
  })

  it('that is damaged and has a log from a crash is left as it is, byte for byte', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    for (let id = 0; id < 50; id++)
      await database.sql.run`INSERT INTO file_row (id, body) VALUES (${id}, ${'x'.repeat(2_000)})`
    await database.scrub()
    await database.sql.run`INSERT INTO file_row (id, body) VALUES (99, 'only in the log')`
    const copy = join(await folder(), 'svc.db')
    for (const rest of ['', '-wal']) await copyFile(file + rest, copy + rest)
    const bytes = await readFile(copy)
    bytes.fill(0xa5, 4_096 * 5, 4_096 * 9)
    await writeFile(copy, bytes)
    await expect(reopen(copy)).rejects.toThrow(/It was left as it is/)
    expect((await readFile(copy)).equals(bytes)).toBe(true)
    expect((await readFile(`${copy}-wal`)).includes('only in the log')).toBe(true)
  })

  it('a constraint that is checked at the commit fails its own batch only', async () => {
    const { database } = await open('sqlite')
    await database.migrate('file', [
      ...table,
      {
        id: '2',
        sql: `CREATE TABLE file_child (id INTEGER PRIMARY KEY,
          row INTEGER NOT NULL REFERENCES file_row (id) DEFERRABLE INITIALLY DEFERRED)`,
      },
    ])
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, id) =>
        id === 4
          ? database.sql.run`INSERT INTO file_child (id, row) VALUES (1, 99)`
          : database.sql.run`INSERT INTO file_row (id, body) VALUES (${id}, 'x')`,
      ),
    )
    expect(results.flatMap((result, id) => (result.status === 'rejected' ? [id] : []))).toEqual([4])
    expect(await database.sql.one`SELECT count(*) AS n FROM file_row`).toEqual({ n: 9 })
  })

  it.each([
    [
      'empty',
      async (file: string) => {
        await truncate(file, 0)
      },
      /is empty \(0 bytes\)/,
    ],
    [
      'garbage',
      async (file: string) => {
        await writeFile(file, 'not a database, '.repeat(1_000))
      },
      /is not an SQLite database/,
    ],
    [
      'of another program',
      async (file: string) => {
        const other = new Sqlite(file)
        other.pragma('application_id = 77')
        other.close()
      },
      /belongs to another program/,
    ],
    [
      'cut short',
      async (file: string) => {
        await truncate(file, 4_096 * 3 + 100)
      },
      /is damaged|cannot be opened/,
    ],
  ])('one that is %s is refused, left as it was, and the message says what to do', async (_, spoil, message) => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    await database.sql.run`INSERT INTO file_row (id, body) VALUES (1, ${'x'.repeat(20_000)})`
    await database[Symbol.asyncDispose]()
    await spoil(file)
    const before = await readFile(file)
    const error = await reopen(file)
      .then(closing)
      .then(
        () => undefined,
        (reason: unknown) => reason,
      )
    expect(error).toMatchObject({ name: 'DatabaseRefused', message: expect.stringMatching(message) })
    expect(String(error)).toContain(join(dirname(file), 'snapshots'))
    expect((await readFile(file)).equals(before)).toBe(true)
  })

  it('noise in a page is found before anything is served', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    await database.sql.batch(
      Array.from(
        { length: 400 },
        (_, id) => database.sql.sql`INSERT INTO file_row (id, body) VALUES (${id}, ${'x'.repeat(200)})`,
      ),
    )
    await database[Symbol.asyncDispose]()
    const { size } = await stat(file)
    const handle = await openFile(file, 'r+')
    await handle.write(Buffer.alloc(4_096, 0xa5), 0, 4_096, size - 2 * 4_096)
    await handle.close()
    await expect(reopen(file).then(closing)).rejects.toThrow(/is damaged/)
  })

  it('a log without its database is refused: the database was moved away', async () => {
    const dir = await folder()
    const file = join(dir, 'svc.db')
    await writeFile(`${file}-wal`, 'something')
    await expect(reopen(file).then(closing)).rejects.toThrow(/is gone, but its log/)
    expect(existsSync(file)).toBe(false)
  })

  it('remains of a start that died half-way do not matter', async () => {
    const dir = await folder()
    await writeFile(join(dir, 'svc.db.new'), '')
    const database = closing(await reopen(join(dir, 'svc.db')))
    expect(await database.check()).toBe(true)
    expect((await readdir(dir)).toSorted()).toEqual(['svc.db', 'svc.db-shm', 'svc.db-wal'])
  })

  it('a URL of another kind is refused without showing its password', async () => {
    await expect(openDatabase({ url: 'mysql://me:hunter2@host/db', log: recorder().log })).rejects.toThrow(
      /neither sqlite:<path> nor postgres/,
    )
    await expect(openDatabase({ url: 'mysql://me:hunter2@host/db', log: recorder().log })).rejects.not.toThrow(
      /hunter2/,
    )
  })
})

describe('a snapshot', () => {
  it('is whole while writers go on, and opens as a database', async () => {
    const { database, dir } = await open('sqlite')
    await database.migrate('file', table)
    await database.sql.batch(
      Array.from(
        { length: 3_000 },
        (_, id) => database.sql.sql`INSERT INTO file_row (id, body) VALUES (${id}, ${'x'.repeat(500)})`,
      ),
    )
    const copy = join(dir, 'snapshots', 'one.db')
    const loop = { going: true }
    let id = 10_000
    const writer = (async () => {
      while (loop.going)
        await database.sql.batch([
          database.sql.sql`INSERT INTO file_row (id, body) VALUES (${id++}, 'a')`,
          database.sql.sql`INSERT INTO file_row (id, body) VALUES (${id++}, 'b')`,
        ])
    })()
    await database.snapshot(copy)
    loop.going = false
    await writer
    expect(await mode(copy)).toBe('600')
    expect(await readdir(dirname(copy))).toEqual(['one.db'])
    const restored = join(dir, 'restored', 'svc.db')
    await mkdir(dirname(restored))
    await copyFile(copy, restored)
    const again = closing(await reopen(restored))
    expect(await again.migrate('file', table)).toBe(0)
    const counts = await again.sql.one<{
      base: number
      more: number
    }>`SELECT sum(CASE WHEN id < 10000 THEN 1 ELSE 0 END) AS base,
        sum(CASE WHEN id >= 10000 THEN 1 ELSE 0 END) AS more FROM file_row`
    expect(counts?.base).toBe(3_000)
    expect((counts?.more ?? 1) % 2).toBe(0)
  })

  it('that cannot be written leaves nothing half done', async () => {
    const { database, dir } = await open('sqlite')
    await mkdir(join(dir, 'taken.db'))
    await writeFile(join(dir, 'taken.db', 'in the way'), '')
    await expect(database.snapshot(join(dir, 'taken.db'))).rejects.toThrow()
    expect((await readdir(dir)).toSorted()).toEqual(['data', 'taken.db'])
    expect(await database.check()).toBe(true)
  })
})

describe('faults', () => {
  it('while another process holds the lock reads go on, and writes are refused in time and work after it', async () => {
    const { database, file } = await open('sqlite')
    await database.migrate('file', table)
    const other = new Sqlite(file)
    other.exec('BEGIN IMMEDIATE')
    // Beats are counted, not timed: one long pause may be the machine's, hundreds of missing ones are ours.
    let beats = 0
    const beat = setInterval(() => {
      beats++
    }, 5)
    const write = database.sql.run`INSERT INTO file_row (id, body) VALUES (1, 'x')`.then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(await database.sql.all`SELECT id FROM file_row`).toEqual([])
    const error = await write
    clearInterval(beat)
    expect(error).toBeInstanceOf(Refusal)
    expect(error).toMatchObject({ code: 'service_unavailable', retryAfterSecs: 1 })
    expect(beats).toBeGreaterThan(60)
    const waiting = database.sql.run`INSERT INTO file_row (id, body) VALUES (2, 'y')`
    await database.sql.all`SELECT id FROM file_row`
    other.exec('ROLLBACK')
    other.close()
    expect(await waiting).toEqual({ changes: 1 })
    expect(await database.sql.all`SELECT id FROM file_row`).toEqual([{ id: 2 }])
  })

  it('on a full disk writes are refused, reads go on, nothing acknowledged is missing, and it recovers', async () => {
    const dir = await folder()
    const file = join(dir, 'svc.db')
    const child = start('limited', [`sqlite:${file}`], ['prlimit', '--fsize=3000000:unlimited', '--'])
    const Step = v.object({
      step: v.string(),
      code: v.optional(v.string()),
      n: v.optional(v.number()),
      acknowledged: v.optional(v.number()),
      healthy: v.optional(v.boolean()),
    })
    const step = async () => parse(Step, JSON.parse(await child.line()))
    expect(await step()).toEqual({ step: 'full', code: 'service_unavailable' })
    const read = await step()
    expect(read.step).toBe('read')
    expect(read.n ?? 0).toBeGreaterThanOrEqual(read.acknowledged ?? Infinity)
    await promisify(execFile)('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'])
    child.stdin.write('go\n')
    const after = await step()
    expect(after).toMatchObject({ step: 'recovered', healthy: true })
    expect(await child.exit()).toBe(0)
    const again = closing(await reopen(file))
    expect(await again.sql.one`SELECT count(*) AS n FROM full_row`).toEqual({ n: after.n })
  })

  it('every acknowledged write is there after kill -9, and no batch is there in half', async () => {
    const dir = await folder()
    const file = join(dir, 'svc.db')
    const acknowledged: string[] = []
    for (let run = 0; run < 4; run++) {
      const child = start('writer', [`sqlite:${file}`, String(run)])
      for (let n = 0; n < 40 * (run + 1); n++) await child.line()
      acknowledged.push(...(await child.kill()))
      const database = await reopen(file)
      const rows = await database.sql.all<{ id: string }>`SELECT id FROM crash_row`
      const ids = new Set(rows.map((row) => row.id))
      expect(acknowledged.filter((id) => !ids.has(id) || !ids.has(`${id}+`))).toEqual([])
      expect([...ids].filter((id) => !id.endsWith('+') && !ids.has(`${id}+`))).toEqual([])
      await database[Symbol.asyncDispose]()
    }
    expect(acknowledged.length).toBeGreaterThan(300)
  })
})
