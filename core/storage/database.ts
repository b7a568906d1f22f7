export type Value = string | number | bigint | Uint8Array | null
/** A statement that has not run yet. Text with `?` for each value; runs on SQLite and PostgreSQL alike. */
export interface Statement { readonly sql: string; readonly values: readonly Value[] }
export interface Changes { readonly changes: number }

/**
 * SQL for one plugin. Values are always bound, never spliced. Reads see every write that has settled.
 * Rejects with `Refusal('service_unavailable')` when the database is locked, full or gone; other failures are defects.
 */
export interface PluginDatabase {
  readonly dialect: 'sqlite' | 'postgresql'
  all<T>(sql: TemplateStringsArray, ...values: Value[]): Promise<T[]>
  /** The first row, or `undefined` when there is none. */
  one<T>(sql: TemplateStringsArray, ...values: Value[]): Promise<T | undefined>
  /** One statement, durable before it settles. `changes` is the number of rows written. */
  run(sql: TemplateStringsArray, ...values: Value[]): Promise<Changes>
  /** Builds a statement for `batch` without running it. */
  sql(sql: TemplateStringsArray, ...values: Value[]): Statement
  /** All or nothing, durable before it settles. There is no interactive transaction: a batch never awaits inside. */
  batch(statements: readonly Statement[]): Promise<readonly Changes[]>
}
