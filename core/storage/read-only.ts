import { isUtf8 } from 'node:buffer'
import { existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import type { PluginDatabase, Statement, Value } from './database.ts'
import { steady, toStatement } from './text.ts'
import type { SqlPart } from './text.ts'

/** A database file for reading, whether or not a daemon has it open. Whoever opened it disposes it. */
export interface ReadOnlyDatabase extends Disposable {
  readonly sql: PluginDatabase
  /** Every row of a table, with its columns in their order; whole numbers are exact. */
  rows(table: string): Iterable<Readonly<Record<string, Value>>>
  /** Texts of a table that have a NUL or are not UTF-8. */
  unfitTexts(table: string): Iterable<UnfitText>
  /** The tables that its rows refer to. */
  parents(table: string): readonly string[]
  /** A consistent copy, while others write. */
  snapshot(file: string): Promise<void>
}

export interface UnfitText {
  readonly column: string
  /** The row by its primary key. */
  readonly row: Readonly<Record<string, Value>>
  readonly problem: string
}

const refused = (): never => {
  throw new Error('this database is open for reading only')
}

/** Throws when there is no such file or it is no database. */
export function openReadOnly(file: string): ReadOnlyDatabase {
  if (!existsSync(file)) throw Object.assign(new Error(`there is no file ${file}`), { code: 'ENOENT' })
  const db = new Sqlite(file, { readonly: true, timeout: 2_000 })
  db.function('svc_text_problem', { deterministic: true }, (bytes) => textProblem(bytes))
  const prepared = new Map<string, Sqlite.Statement<unknown[]>>()
  const prepare = ({ sql }: Statement): Sqlite.Statement<unknown[]> => {
    let statement = prepared.get(sql)
    if (!statement) prepared.set(sql, (statement = db.prepare<unknown[]>(steady(sql))))
    return statement
  }
  return {
    sql: {
      dialect: 'sqlite',
      // As in the database that can be written: the type of a row is the word of the store.
      async all<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]) {
        const statement = toStatement(template, values)
        return prepare(statement).all(...statement.values) as T[]
      },
      async one<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]) {
        const statement = toStatement(template, values)
        return prepare(statement).get(...statement.values) as T | undefined
      },
      sql: (template, ...values) => toStatement(template, values),
      run: async () => refused(),
      batch: async () => refused(),
    },
    rows: (table) =>
      db
        .prepare<[], Record<string, Value>>(`SELECT * FROM ${quote(table)}`)
        .safeIntegers()
        .iterate(),
    *unfitTexts(table) {
      const columns = db
        .prepare<[string], { name: string; pk: number }>('SELECT name, pk FROM pragma_table_info(?)')
        .all(table)
      const keys = columns.filter(({ pk }) => pk > 0).map(({ name }) => name)
      const key = keys.length === 0 ? 'rowid' : keys.map(quote).join(', ')
      for (const { name: column } of columns) {
        const [name, from] = [quote(column), quote(table)]
        const texts = db.prepare<[], Record<string, Value> & { svc_problem: string }>(
          `SELECT ${key}, svc_text_problem(CAST(${name} AS BLOB)) AS svc_problem FROM ${from}
            WHERE typeof(${name}) = 'text' AND svc_problem IS NOT NULL`,
        )
        for (const { svc_problem: problem, ...row } of texts.iterate()) yield { column, row, problem }
      }
    },
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

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
function textProblem(bytes: unknown): string | null {
  if (!(bytes instanceof Uint8Array)) return null
  if (bytes.includes(0)) return 'has a NUL character'
  return isUtf8(bytes) ? null : 'is not UTF-8'
}
