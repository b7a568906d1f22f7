import { describe, expect, it } from 'vitest'
import { splitStatements, toDialect, toNumbered } from '../../../core/storage/dialect.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { closing, engines, open, recorder } from './engines.ts'

const first = {
  id: '001-cup',
  sql: `CREATE TABLE bar_cup (id INTEGER PRIMARY KEY, size REAL NOT NULL);
    CREATE INDEX bar_cup_size ON bar_cup (size);`,
}
const second = { id: '002-handle', sql: "ALTER TABLE bar_cup ADD COLUMN handle TEXT NOT NULL DEFAULT 'left; or right'" }

describe.each(engines)('migrations on %s', (engine) => {
  it('apply in order, once, and the second time nothing', async () => {
    const { database } = await open(engine)
    expect(await database.pending([{ name: 'bar', migrations: [first, second] }])).toBe(true)
    expect(await database.migrate('bar', [first, second])).toBe(2)
    expect(await database.migrate('bar', [first, second])).toBe(0)
    expect(await database.pending([{ name: 'bar', migrations: [first, second] }])).toBe(false)
    await database.sql.run`INSERT INTO bar_cup (id, size) VALUES (1, 2)`
    expect(await database.sql.one`SELECT handle FROM bar_cup`).toEqual({ handle: 'left; or right' })
  })

  it('a step added later is applied alone, and the rows and open statements live on', async () => {
    const { database } = await open(engine)
    await database.migrate('bar', [first])
    await database.sql.run`INSERT INTO bar_cup (id, size) VALUES (1, 2)`
    const read = () => database.sql.one`SELECT * FROM bar_cup`
    expect(await read()).toEqual({ id: 1, size: 2 })
    expect(await database.migrate('bar', [first, second])).toBe(1)
    expect(await read()).toEqual({ id: 1, size: 2, handle: 'left; or right' })
  })

  it('an edited step is refused with plugin, id and what to do', async () => {
    const { database } = await open(engine)
    await database.migrate('bar', [first])
    const edited = { ...first, sql: first.sql.replace('REAL', 'TEXT') }
    await expect(database.migrate('bar', [edited])).rejects.toThrow(
      /"001-cup" of plugin "bar" was edited.*Restore its original text.*another migration/s,
    )
    expect(await database.pending([{ name: 'bar', migrations: [edited] }])).toBe(false)
  })

  it('line ends of the checkout do not count as an edit', async () => {
    const { database } = await open(engine)
    const text = 'CREATE TABLE bar_tap (\n  id INTEGER PRIMARY KEY\n)'
    await database.migrate('bar', [{ id: '1', sql: text }])
    expect(await database.migrate('bar', [{ id: '1', sql: text.replaceAll('\n', '\r\n') }])).toBe(0)
  })

  it('tables without their record are those of a dump that was not restored whole', async () => {
    const { database } = await open(engine)
    await database.migrate('bar', [first])
    await database.sql.run`DELETE FROM core_migration WHERE plugin = 'bar'`
    await expect(database.migrate('bar', [first])).rejects.toThrow(
      /"001-cup" of plugin "bar" failed and changed nothing: .*already exists.*restore it whole, into an empty database/,
    )
  })

  it('a step that fails leaves nothing of itself and can be mended', async () => {
    const { database } = await open(engine)
    await expect(
      database.migrate('bar', [
        { id: '1', sql: 'CREATE TABLE bar_a (id INTEGER PRIMARY KEY); CREATE TABLE bar_b (oops' },
      ]),
    ).rejects.toThrow(/"1" of plugin "bar" failed and changed nothing/)
    expect(await database.migrate('bar', [{ id: '1', sql: 'CREATE TABLE bar_a (id INTEGER PRIMARY KEY)' }])).toBe(1)
  })

  it('steps of a newer version are reported and do no harm', async () => {
    const { database, log } = await open(engine)
    await database.migrate('bar', [first, second])
    expect(await database.migrate('bar', [first])).toBe(0)
    expect(log.join('\n')).toMatch(/plugin "bar".*002-handle/)
  })

  it('a step has a text of its own for PostgreSQL, which counts as an edit when it changes', async () => {
    const { database } = await open(engine)
    const step = {
      id: '1',
      sql: "CREATE VIRTUAL TABLE bar_words USING fts5(words); INSERT INTO bar_words VALUES ('sqlite')",
      postgresql: "CREATE TABLE bar_words (words TSVECTOR); INSERT INTO bar_words VALUES ('postgresql')",
    }
    await database.migrate('bar', [step])
    const row = await database.sql.one<{ words: string }>`SELECT words FROM bar_words`
    expect(row?.words).toContain(engine)
    expect(await database.migrate('bar', [step])).toBe(0)
    await expect(database.migrate('bar', [{ ...step, postgresql: 'SELECT 1' }])).rejects.toThrow('was edited')
  })

  it('two steps with one id are refused', async () => {
    const { database } = await open(engine)
    await expect(database.migrate('bar', [first, first])).rejects.toThrow(/two migrations with the id "001-cup"/)
  })

  it('are remembered by the next open', async () => {
    const { database, url } = await open(engine)
    await database.migrate('bar', [first])
    await database[Symbol.asyncDispose]()
    const again = closing(await openDatabase({ url, log: recorder().log }))
    expect(await again.migrate('bar', [first])).toBe(0)
  })
})

it('tables on SQLite are strict although the migration does not say so', async () => {
  const { database } = await open('sqlite')
  await database.migrate('bar', [first])
  await expect(database.sql.run`INSERT INTO bar_cup (id, size) VALUES (1, 'large')`).rejects.toThrow(
    /cannot store TEXT value in REAL column/,
  )
})

describe('one text for both engines', () => {
  const cases: readonly (readonly [text: string, sqlite: string, postgresql: string])[] = [
    [
      'CREATE TABLE a (id TEXT PRIMARY KEY)',
      'CREATE TABLE a (id TEXT PRIMARY KEY) STRICT',
      'CREATE TABLE a (id TEXT PRIMARY KEY)',
    ],
    ['CREATE TABLE a (n INTEGER) STRICT', 'CREATE TABLE a (n INTEGER) STRICT', 'CREATE TABLE a (n BIGINT) '],
    [
      'create table a (n integer primary key) without rowid',
      'create table a (n integer primary key) without rowid, STRICT',
      'create table a (n BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY) ',
    ],
    [
      'CREATE TABLE a (b BYTEA, d DOUBLE PRECISION, i BIGINT)',
      'CREATE TABLE a (b BLOB, d REAL, i INTEGER) STRICT',
      'CREATE TABLE a (b BYTEA, d DOUBLE PRECISION, i BIGINT)',
    ],
    [
      "CREATE TABLE a (t TEXT DEFAULT 'REAL (STRICT)')",
      "CREATE TABLE a (t TEXT DEFAULT 'REAL (STRICT)') STRICT",
      "CREATE TABLE a (t TEXT DEFAULT 'REAL (STRICT)')",
    ],
    ['CREATE TABLE a AS SELECT 1 AS real', 'CREATE TABLE a AS SELECT 1 AS real', 'CREATE TABLE a AS SELECT 1 AS real'],
    ['CREATE INDEX i ON a (real)', 'CREATE INDEX i ON a (real)', 'CREATE INDEX i ON a (real)'],
  ]
  it.each(cases)('%s', (text, sqlite, postgresql) => {
    expect([toDialect(text, 'sqlite'), toDialect(text, 'postgresql')]).toEqual([sqlite, postgresql])
  })

  it('a script splits at semicolons outside quotes, comments and triggers', () => {
    const trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET n = 1; DELETE FROM a WHERE s = ';'; END"
    expect(
      splitStatements(`-- a; b\nCREATE TABLE a (s TEXT); /* ; */ ${trigger}; ; INSERT INTO a VALUES ('x;y')`),
    ).toEqual(['-- a; b\nCREATE TABLE a (s TEXT)', `/* ; */ ${trigger}`, "INSERT INTO a VALUES ('x;y')"])
    const calls = 'CREATE TRIGGER t AFTER DELETE ON a FOR EACH ROW EXECUTE FUNCTION begin_f()'
    expect(splitStatements(`${calls}; ${calls}`)).toEqual([calls, calls])
    expect(splitStatements(' ; -- nothing\n')).toEqual([])
  })

  it('placeholders are numbered outside quotes and comments', () => {
    expect(toNumbered(`SELECT ?, '?', "?" /* ? */ FROM a WHERE b = ? -- ?`)).toBe(
      `SELECT $1, '?', "?" /* ? */ FROM a WHERE b = $2 -- ?`,
    )
  })
})
