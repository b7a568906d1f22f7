import type { ConsolaInstance } from 'consola'
import { tellWritten } from './database.ts'
import type { Changes, PluginDatabase, Statement, Value } from './database.ts'
import { toNumbered } from './dialect.ts'
import { translate } from './failure.ts'
import type { Answer, BatchStatement, PreparedText } from './postgres-batch.ts'
import type { PostgresSettings } from './postgres-client.ts'
import { PostgresPool } from './postgres-pool.ts'
import type { PoolFigures, RunOptions } from './postgres-pool.ts'
import { Recent, refuseControl, toStatement } from './text.ts'
import type { SqlPart } from './text.ts'

const WRITES = /^\s*(insert|update|delete|with\b[\s\S]*\b(insert\s+into|update|delete\s+from))\b/i
const PLAIN_WRITE = /^\s*(insert|update|delete)\b(?![\s\S]*\breturning\b)/i
/** Of the locks that others may take in the same database. */
export const LOCK_SEED = 7_826_803

/** SQL over a pool of connections to a PostgreSQL server. */
export class PostgresDatabase implements PluginDatabase {
  readonly dialect = 'postgresql'
  readonly #pool: PostgresPool
  readonly #texts = new Recent<PreparedText>(2_000)
  readonly #unheard: (error: unknown) => void

  constructor(url: string, settings: PostgresSettings, log: ConsolaInstance) {
    this.#unheard = (error) => log.error('a copy of rows could not follow a write', error)
    this.#pool = new PostgresPool(url, settings, log)
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  sql(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Statement {
    return toStatement(template, values)
  }

  // The type of a row is the word of the store that wrote the SQL; a row that holds JSON is parsed there.
  async all<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T[]> {
    const statement = toStatement(template, values)
    const [answer] = await this.#run([this.#prepare(statement)], { isRead: !WRITES.test(statement.sql) })
    return [...(answer?.rows ?? [])] as T[]
  }
  async one<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T | undefined> {
    return (await this.all<T>(template, ...values))[0]
  }
  async run(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<Changes> {
    const [changes] = await this.batch([toStatement(template, values)])
    return changes ?? { changes: 0 }
  }
  batch(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#batch(statements, lockKeys(statements), {})
  }

  /** For migrations: alone among those with the same key, and for as long as it takes. */
  async patientBatch(key: string, statements: readonly Statement[]): Promise<readonly Changes[]> {
    const endless = { sql: `SELECT set_config('statement_timeout', '0', true)`, values: [] }
    return (await this.#batch([endless, ...statements], [key], { isPatient: true })).slice(1)
  }

  /** The tables have changed. */
  forget(): void {
    this.#pool.forget()
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  async #batch(
    statements: readonly Statement[],
    keys: readonly string[],
    options: RunOptions,
  ): Promise<readonly Changes[]> {
    if (statements.length === 0) return []
    for (const statement of statements) refuseControl(statement.sql)
    const locks = keys.map((key) => ({ prepared: LOCK, values: [key, LOCK_SEED] }))
    const answers = await this.#run([...locks, ...statements.map((statement) => this.#prepare(statement))], {
      ...options,
      committed: (all) => tellWritten(statements, all.slice(locks.length), this.#unheard),
    })
    return answers.slice(locks.length).map(({ changes }) => ({ changes }))
  }

  async #run(statements: readonly BatchStatement[], options: RunOptions): Promise<readonly Answer[]> {
    try {
      return await this.#pool.run(statements, options)
    } catch (error) {
      throw translate(error)
    }
  }

  #prepare({ sql, values }: Statement): BatchStatement {
    return { prepared: this.#texts.get(sql, prepareText), values }
  }
}

const LOCK: PreparedText = { text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', hasRows: false }

function prepareText(sql: string): PreparedText {
  return { text: toNumbered(sql), hasRows: !PLAIN_WRITE.test(sql) }
}
/** In one order everywhere, so that two batches never wait for each other. */
function lockKeys(statements: readonly Statement[]): readonly string[] {
  const keys = new Set<string>()
  for (const { exclusive } of statements) if (exclusive !== undefined) keys.add(exclusive)
  return keys.size < 2 ? [...keys] : [...keys].toSorted()
}
