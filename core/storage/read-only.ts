import { existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import type { PluginDatabase, Value } from './database.ts'
import { steady, toStatement } from './text.ts'

/** A database file for reading, whether or not a daemon has it open. Whoever opened it disposes it. */
export interface ReadOnlyDatabase extends Disposable {
  readonly sql: PluginDatabase
  /** Every row of a table, with its columns in their order; whole numbers are exact. */
  rows(table: string): Iterable<Readonly<Record<string, Value>>>
  /** The tables that its rows refer to. */
  parents(table: string): readonly string[]
  /** A consistent copy, while others write. */
  snapshot(file: string): Promise<void>
}

const refused = (): never => {
  throw new Error('this database is open for reading only')
}

/** Throws when there is no such file or it is no database. */
export function openReadOnly(file: string): ReadOnlyDatabase {
  if (!existsSync(file)) throw Object.assign(new Error(`there is no file ${file}`), { code: 'ENOENT' })
  const db = new Sqlite(file, { readonly: true, timeout: 2_000 })
  const prepared = new Map<string, Sqlite.Statement<unknown[]>>()
  const prepare = (template: TemplateStringsArray, values: readonly Value[]): Sqlite.Statement<unknown[]> => {
    const { sql } = toStatement(template, values)
    let statement = prepared.get(sql)
    if (!statement) prepared.set(sql, (statement = db.prepare<unknown[]>(steady(sql))))
    return statement
  }
  return {
    sql: {
      dialect: 'sqlite',
      // As in the database that can be written: the type of a row is the word of the store.
      async all<T>(template: TemplateStringsArray, ...values: Value[]) {
        return prepare(template, values).all(...values) as T[]
      },
      async one<T>(template: TemplateStringsArray, ...values: Value[]) {
        return prepare(template, values).get(...values) as T | undefined
      },
      sql: (template, ...values) => toStatement(template, values),
      run: async () => refused(),
      batch: async () => refused(),
    },
    rows: (table) =>
      db
        .prepare<[], Record<string, Value>>(`SELECT * FROM "${table.replaceAll('"', '""')}"`)
        .safeIntegers()
        .iterate(),
    parents: (table) =>
      db
        .prepare<[string], { table: string }>('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)')
        .all(table)
        .map((row) => row.table),
    async snapshot(target) {
      await db.backup(target)
    },
    [Symbol.dispose]() {
      db.close()
    },
  }
}
