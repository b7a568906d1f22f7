import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { openForeignDatabase } from '../../../core/storage/foreign-database.ts'

it('of a file from elsewhere plain tables are read, and what runs code is not, however it is written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-foreign-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'a.db')
  const hostile = new Sqlite(file)
  hostile.exec(`CREATE TABLE plain (a, b GENERATED ALWAYS AS (a || '!'));
    INSERT INTO plain VALUES ('x');
    CREATE VIEW view AS SELECT a FROM plain;
    CREATE VIRTUAL TABLE virtual USING fts5(a);
    CREATE VIRTUAL TABLE disguised USING fts5(a);
    INSERT INTO disguised VALUES ('y')`)
  hostile.unsafeMode(true)
  hostile.pragma('writable_schema = ON')
  hostile.exec(
    `UPDATE sqlite_master SET sql = 'CREATE/**/VIRTUAL TABLE disguised USING fts5(a)' WHERE name = 'disguised'`,
  )
  hostile.close()
  using database = openForeignDatabase(file)
  expect([...database.rows('plain', ['a', 'b'])]).toEqual([{ a: 'x' }])
  for (const table of ['view', 'virtual', 'disguised', 'disguised_content', 'sqlite_master', 'nothing']) {
    expect([table, database.columns(table)]).toEqual([table, []])
    expect([...database.rows(table, ['a', 'c0', 'sql'])]).toEqual([])
  }
})
