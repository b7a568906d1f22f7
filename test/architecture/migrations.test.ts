import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import type { Migration } from '../../core/storage/database.ts'
import { sources } from './sources.ts'

/**
 * While daemons are upgraded one after the other, the old ones go on with the tables that a new one has changed: so a
 * migration only adds. These did more, before several daemons could share a database.
 */
const EARLIER = [
  'channels 002-lease-beats',
  'channels 102-queue',
  'delegation 002-no-message',
  'journal 010-entry-point',
  'queue 004-job-group',
  'schedules 008-slot-manual',
  'triggers 006-firing-event',
]

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Of what the old version would fail with. */
function faultOf(statement: string, created: ReadonlySet<string>, added: ReadonlySet<string>): string | undefined {
  const [, table = ''] = /\b(?:TABLE|ON|FROM|UPDATE|INTO)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(\w+)/i.exec(statement) ?? []
  if (/^CREATE\s+TABLE/i.test(statement) || created.has(table)) return undefined
  // In a column that the old version does not know it writes NULL, which is never twice the same.
  const [, column = ''] = /^CREATE\s+UNIQUE\s+INDEX\s+\w+\s+ON\s+\w+\s*\((\w+)\)/i.exec(statement) ?? []
  if (/^CREATE\s+UNIQUE/i.test(statement) && !added.has(`${table} ${column}`))
    return 'a row that the old version adds may not be unique'
  if (/^DROP\s+TABLE|\bDROP\s+COLUMN|\bRENAME\b/i.test(statement)) return 'the old version still names it'
  if (/\bALTER\s+COLUMN\b|\bADD\s+CONSTRAINT\b/i.test(statement)) return 'the old version may write something else'
  if (/\bADD\s+COLUMN\b(?=.*\bNOT\s+NULL\b)(?!.*\bDEFAULT\b)/is.test(statement)) return 'the old version leaves it out'
  return undefined
}

function faultsOf({ sql }: Migration): readonly string[] {
  const statements = sql
    .replaceAll(/--[^\n]*/g, '')
    .split(';')
    .map((statement) => statement.trim())
  const tables = statements.flatMap((statement) => /^CREATE\s+TABLE\s+(\w+)/i.exec(statement)?.[1] ?? [])
  const added = statements.flatMap((statement) => {
    const [, table, column] = /^ALTER\s+TABLE\s+(\w+)\s+ADD\s+COLUMN\s+(\w+)(?!.*\bDEFAULT\b)/is.exec(statement) ?? []
    return column === undefined ? [] : [`${table} ${column}`]
  })
  return statements.flatMap((statement) => faultOf(statement, new Set(tables), new Set(added)) ?? [])
}

it('a migration only adds, so that the version before it goes on meanwhile', async () => {
  const found: string[] = []
  for (const { path } of sources('plugins').filter((file) => file.path.endsWith('/migrations.ts'))) {
    const exported = Object.values((await import(/* @vite-ignore */ join(root, path))) as object).filter(Array.isArray)
    for (const migration of exported.flat() as readonly Migration[])
      for (const fault of faultsOf(migration)) found.push(`${path.split('/')[1]} ${migration.id}: ${fault}`)
  }
  expect(found.filter((line) => !EARLIER.some((known) => line.startsWith(`${known}:`)))).toEqual([])
  expect(EARLIER.filter((known) => !found.some((line) => line.startsWith(`${known}:`)))).toEqual([])
})

it.each([
  ['ALTER TABLE a_b ADD COLUMN c TEXT; CREATE INDEX a_b_c ON a_b (c)', 0],
  ['CREATE TABLE a_c (d TEXT NOT NULL); CREATE UNIQUE INDEX a_c_d ON a_c (d)', 0],
  ["ALTER TABLE a_b ADD COLUMN c TEXT NOT NULL DEFAULT ''", 0],
  ['ALTER TABLE a_b ADD COLUMN c TEXT NOT NULL', 1],
  ['ALTER TABLE a_b RENAME COLUMN c TO d; DROP TABLE a_c', 2],
  ['CREATE UNIQUE INDEX a_b_c ON a_b (c)', 1],
  ['ALTER TABLE a_b ADD COLUMN c TEXT; CREATE UNIQUE INDEX a_b_c ON a_b (c)', 0],
  ['ALTER TABLE a_b ADD COLUMN c TEXT; CREATE UNIQUE INDEX a_b_d ON a_b (d)', 1],
])('%s', (sql, count) => expect(faultsOf({ id: '1', sql })).toHaveLength(count))
