import type { Broadcast } from './broadcast.ts'
import type { DatabaseServer } from './database-server.ts'
import type { BroadcastFigures } from './postgres-broadcast.ts'
import type { PoolFigures } from './postgres-pool.ts'
import type { SqlPart } from './text.ts'

/** What a column may hold. Booleans are stored as 0 and 1. */
export type Value = string | number | bigint | Uint8Array | null
/** A statement that has not run yet. Text with `?` for each value; runs on SQLite and PostgreSQL alike. */
export interface Statement {
  /** The text, with `?` for each value. */
  readonly sql: string
  /** The values, in the order of the question marks. */
  readonly values: readonly Value[]
  /**
   * Told how many rows were written once they are on disk, before the batch settles and before anything else is read or
   * written: so a copy in memory changes with its rows. Not told of a statement that was not carried out. Must not
   * throw.
   */
  readonly written?: (changes: number) => void
  /**
   * Batches with the same key are carried out one after the other, by whichever daemons on the database: for a write that
   * counts rows or takes the next number. Without it two on PostgreSQL may both find room for one more. SQLite carries
   * out one batch at a time anyway.
   */
  readonly exclusive?: string
}
/** What a statement did. */
export interface Changes {
  /** The number of rows written. */
  readonly changes: number
}
/** For the engines: what was in a batch is on disk. Whoever fails to hear it stops nobody else; `failed` is told. */
export function tellWritten(
  statements: readonly Statement[],
  outcomes: readonly Changes[],
  failed: (error: unknown) => void,
): void {
  for (let at = 0; at < statements.length; at++) {
    try {
      statements[at]?.written?.(outcomes[at]?.changes ?? 0)
    } catch (error) {
      failed(error)
    }
  }
}

/**
 * SQL for one plugin. Values are always bound, never spliced; only what `sqlPart` made becomes text. Reads see every write that has settled.
 * Rejects with `Refusal('service_unavailable')` when the database is locked, full or gone; other failures are defects.
 */
export interface PluginDatabase {
  /** The engine that runs the SQL. */
  readonly dialect: 'sqlite' | 'postgresql'
  /** Every row, in the order of the statement. */
  all<T>(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T[]>
  /** The first row, or `undefined` when there is none. */
  one<T>(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T | undefined>
  /** One statement, durable before it settles. `changes` is the number of rows written. */
  run(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<Changes>
  /** Builds a statement for `batch` without running it. */
  sql(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]): Statement
  /**
   * All or nothing, durable before it settles. There is no interactive transaction: a batch never awaits inside. On
   * PostgreSQL batches are carried out side by side: one that is to come after another awaits it. When the connection is
   * lost before the server has said whether a batch is committed, it rejects with `service_unavailable` and may be
   * committed all the same: whoever repeats it gives its rows ids of their own, which cannot be there twice.
   */
  batch(statements: readonly Statement[]): Promise<readonly Changes[]>
}

/** One step of a plugin's tables: SQL in the SQLite dialect, several statements allowed. Never edited once released. */
export interface Migration {
  readonly id: string
  readonly sql: string
  /** What PostgreSQL runs instead where the engines have nothing in common, such as an index of words. As it is. */
  readonly postgresql?: string
}

/** An open database. Whoever opened it disposes it; writes already handed in are committed first. */
export interface Database extends AsyncDisposable {
  readonly dialect: 'sqlite' | 'postgresql'
  /** The handle given to plugins and to the core itself. */
  readonly sql: PluginDatabase
  /** For metrics; absent where there is no such thing, as on SQLite. */
  figures(): { readonly pool: PoolFigures | undefined; readonly broadcast: BroadcastFigures | undefined }
  /** Messages to and from the other daemons on it. */
  readonly broadcast: Broadcast
  readonly server: DatabaseServer
  /**
   * Applies the missing migrations of one plugin in order, each with its record in one batch; says how many. Throws
   * when a recorded checksum differs, naming plugin and id; and with `strict` on SQLite when a newer version of the
   * plugin changed the tables, which otherwise is a warning: a reload that is taken back runs on the tables of the code
   * that failed, and of daemons that share a database some may be older than others.
   */
  migrate(plugin: string, migrations: readonly Migration[], options?: { readonly strict?: boolean }): Promise<number>
  /** Whether `migrate` of any of these would do something: the daemon takes a snapshot first. */
  pending(plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[]): Promise<boolean>
  /** A consistent copy while in use, mode 0600, whole or not there. Throws on PostgreSQL, which has its own tools. */
  snapshot(file: string): Promise<void>
  /** A real write and read; `false` when either fails. */
  check(): Promise<boolean>
  /** Moves the write-ahead log into the database and empties it, so that deleted values are on no page any more. */
  scrub(): Promise<void>
}
