import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import type { Connector } from 'db0'
import sqliteConnector from 'db0/connectors/better-sqlite3'
import type { Statement, Value } from './database.ts'
import { refuseControl, Recent, steady, withoutNul } from './text.ts'

export type Row = Record<string, unknown>
export interface Outcome {
  readonly changes: number
  readonly rows: readonly Row[]
}
interface Prepared {
  readonly statement: BetterSqlite3.Statement<unknown[], Row>
  readonly returns: boolean
  readonly reads: boolean
}

/**
 * A blocked lock holds the whole event loop, so the engine itself hardly waits; the queue above retries without
 * blocking.
 */
const BUSY_MS = 5
const PRAGMAS = [
  `busy_timeout = ${BUSY_MS}`,
  'journal_mode = WAL',
  'synchronous = FULL',
  'foreign_keys = ON',
  'secure_delete = ON',
  // The usual thousand pages are sixty commits: moving the log into the file that often costs as much as writing it.
  'wal_autocheckpoint = 8000',
  'journal_size_limit = 67108864',
  // KiB, as far as they are used. The usual two thousand do not hold what a hundred busy sessions touch between two
  // turns.
  'cache_size = -16000',
  'temp_store = MEMORY',
  'trusted_schema = OFF',
]

/**
 * One better-sqlite3 handle, opened by db0, with its statements kept: db0 prepares anew at every call, which costs four
 * fifths of the speed. Everything here is synchronous but opening.
 */
export class SqliteConnection {
  readonly #path: string | undefined
  #connector: Connector<BetterSqlite3.Database>
  #db: BetterSqlite3.Database
  readonly #prepared = new Recent<Prepared>(2_000)
  /** Set after an I/O error: nothing runs until `reopen` worked. */
  poisoned = false

  private constructor(
    path: string | undefined,
    connector: Connector<BetterSqlite3.Database>,
    db: BetterSqlite3.Database,
  ) {
    this.#path = path
    this.#connector = connector
    this.#db = db
  }

  /** `undefined` is a database in memory. */
  static async open(path: string | undefined): Promise<SqliteConnection> {
    const { connector, db } = await connect(path)
    return new SqliteConnection(path, connector, db)
  }

  get instance(): BetterSqlite3.Database {
    return this.#db
  }
  get inTransaction(): boolean {
    return this.#db.inTransaction
  }
  get inMemory(): boolean {
    return this.#path === undefined
  }

  begin(): void {
    this.#control('BEGIN IMMEDIATE')
  }
  commit(): void {
    this.#control('COMMIT')
  }
  rollback(): void {
    if (this.#db.inTransaction) this.#control('ROLLBACK')
  }
  savepoint(): void {
    this.#control('SAVEPOINT batch')
  }
  release(): void {
    this.#control('RELEASE batch')
  }
  rollbackToSavepoint(): void {
    this.#control('ROLLBACK TO batch')
    this.#control('RELEASE batch')
  }

  isRead(sql: string): boolean {
    return this.#prepare(sql).reads
  }
  all(statement: Statement): Row[] {
    return this.#prepare(statement.sql).statement.all(...toParameters(statement.values))
  }
  one(statement: Statement): Row | undefined {
    return this.#prepare(statement.sql).statement.get(...toParameters(statement.values))
  }

  run(statement: Statement): Outcome {
    const prepared = this.#prepare(statement.sql)
    if (prepared.returns) {
      const found = prepared.statement.all(...toParameters(statement.values))
      return { changes: prepared.reads ? 0 : found.length, rows: found }
    }
    return { changes: prepared.statement.run(...toParameters(statement.values)).changes, rows: [] }
  }

  /** After a change of the schema a kept statement may answer with the columns of before. */
  forget(): void {
    this.#prepared.clear()
  }

  /** Closes and opens again; the file must still be there, because a fresh one would silently lose everything. */
  async reopen(): Promise<void> {
    if (this.#path === undefined) throw new Error('a database in memory cannot be opened again')
    this.forget()
    try {
      await this.#connector.dispose?.()
    } catch {
      /* Closing a broken handle may fail as the handle did; what counts is the next one. */
    }
    if (statSync(this.#path).size === 0) throw new Error(`${this.#path} has become empty`)
    const { connector, db } = await connect(this.#path)
    this.#connector = connector
    this.#db = db
    this.poisoned = false
  }

  async close(): Promise<void> {
    this.forget()
    if (this.#path !== undefined && !this.poisoned && this.#db.open) {
      // Without a clean log the next start only takes longer, so a failure here is not worth failing the shutdown.
      try {
        this.#db.pragma('wal_checkpoint(TRUNCATE)')
      } catch {
        this.poisoned = true
      }
    }
    await this.#connector.dispose?.()
  }

  #control(sql: string): void {
    this.#prepared.get(sql, (text) => this.#compile(text)).statement.run()
  }
  #prepare(sql: string): Prepared {
    return this.#prepared.get(sql, (text) => {
      refuseControl(text)
      return this.#compile(text)
    })
  }
  #compile(sql: string): Prepared {
    const statement = this.#db.prepare<unknown[], Row>(steady(sql))
    return { statement, returns: statement.reader, reads: statement.readonly }
  }
}

async function connect(
  path: string | undefined,
): Promise<{ connector: Connector<BetterSqlite3.Database>; db: BetterSqlite3.Database }> {
  const connector = sqliteConnector(path === undefined ? { name: ':memory:' } : { path })
  const db = await connector.getInstance()
  try {
    for (const pragma of PRAGMAS) db.pragma(pragma)
    // The audit chain hashes inside its own INSERT, so that no row can come between reading the tip and writing the
    // next.
    db.function('svc_sha256', { deterministic: true }, (text) =>
      typeof text === 'string' ? hash('sha256', text) : null,
    )
  } catch (error) {
    db.close()
    throw error
  }
  return { connector, db }
}

const toParameters = (values: readonly Value[]): readonly Value[] =>
  values.some((value) => typeof value === 'string' && value.includes('\0'))
    ? values.map((value) => (typeof value === 'string' ? withoutNul(value) : value))
    : values
