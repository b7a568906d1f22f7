import Sqlite from 'better-sqlite3'
import type { Value } from './database.ts'

type Row = Readonly<Record<string, Value>>

/**
 * A SQLite file that another system wrote. Whoever opened it disposes it. Only plain tables are read: what a view, a
 * virtual table or a generated column would run is never run.
 */
export interface ForeignDatabase extends Disposable {
  /** Its `user_version`. */
  readonly version: number
  /** The names of the columns; empty when there is no such plain table. */
  columns(table: string): readonly string[]
  /** The rows in the order of the file; columns that the table lacks are absent. */
  rows(table: string, columns: readonly string[]): Iterable<Row>
  /** Those whose columns have the values of `where`, in the order of `orderBy`; none when the table lacks one of these. */
  rowsOf(table: string, columns: readonly string[], where: Row, orderBy: readonly string[]): Iterable<Row>
}

/** Opens a copy for reading only. Throws what SQLite throws for a file that is no database or is damaged. */
export function openForeignDatabase(file: string): ForeignDatabase {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: 0 })
  try {
    // Functions and virtual tables that its schema names may have effects.
    db.pragma('trusted_schema = OFF')
    db.pragma('cell_size_check = ON')
    // Reads the header: throws here, and not with the first table, for a file that is no database.
    db.pragma('schema_version')
  } catch (error) {
    db.close()
    throw error
  }
  const columns = (table: string): readonly string[] => {
    // By what SQLite takes it for, and not by its text, which its author wrote.
    const isPlain = db
      .prepare<[string]>(
        `SELECT 1 FROM pragma_table_list(?) WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'`,
      )
      .get(table)
    if (isPlain === undefined) return []
    return db
      .prepare<[string], { name: string }>('SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0')
      .all(table)
      .map(({ name }) => name)
  }
  const select = (table: string, wanted: readonly string[], where: Row, orderBy: readonly string[]): Iterable<Row> => {
    const known = new Set(columns(table))
    const chosen = wanted.filter((name) => known.has(name))
    const needed = [...Object.keys(where), ...orderBy]
    if (chosen.length === 0 || !needed.every((name) => known.has(name))) return []
    const filter = Object.keys(where).map((name) => `${quote(name)} = ?`)
    const parts = [
      `SELECT ${chosen.map(quote).join(', ')} FROM ${quote(table)}`,
      ...(filter.length > 0 ? [`WHERE ${filter.join(' AND ')}`] : []),
      ...(orderBy.length > 0 ? [`ORDER BY ${orderBy.map(quote).join(', ')}`] : []),
    ]
    return db.prepare<Value[], Row>(parts.join(' ')).iterate(...Object.values(where))
  }
  return {
    version: Number(db.pragma('user_version', { simple: true })),
    columns,
    rows: (table, wanted) => select(table, wanted, {}, []),
    rowsOf: select,
    [Symbol.dispose]: () => db.close(),
  }
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
