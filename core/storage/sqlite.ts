import type { ConsolaInstance } from 'consola'
import { GroupCommit } from './commit.ts'
import type { Changes, PluginDatabase, Statement, Value } from './database.ts'
import { codeOf, isBusy, isPoison, translate } from './failure.ts'
import type { SqliteConnection } from './sqlite-connection.ts'
import { toStatement } from './text.ts'
import type { SqlPart } from './text.ts'

const READ_RETRY_MS = 10
const READ_WAIT_MS = 2_000

/** SQL over one SQLite connection: reads run at once, writes through the group commit. */
export class SqliteDatabase implements PluginDatabase {
  readonly dialect = 'sqlite'
  readonly #connection: SqliteConnection
  readonly #commit: GroupCommit

  constructor(connection: SqliteConnection, log: ConsolaInstance, onFull?: () => void) {
    this.#connection = connection
    this.#commit = new GroupCommit(connection, log, onFull)
  }

  sql(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Statement {
    return toStatement(template, values)
  }

  // The type of a row is the word of the store that wrote the SQL; a row that holds JSON is parsed there.
  async all<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T[]> {
    const statement = toStatement(template, values)
    return (await this.#query(statement, () => this.#connection.all(statement))) as T[]
  }
  async one<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T | undefined> {
    const statement = toStatement(template, values)
    const rows = await this.#query(statement, () => {
      const row = this.#connection.one(statement)
      return row ? [row] : []
    })
    return rows[0] as T | undefined
  }
  async run(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<Changes> {
    const [outcome] = await this.#commit.submit([toStatement(template, values)])
    return { changes: outcome?.changes ?? 0 }
  }
  async batch(statements: readonly Statement[]): Promise<readonly Changes[]> {
    const outcomes = await this.#commit.submit(statements)
    return outcomes.map(({ changes }) => ({ changes }))
  }

  close(): Promise<void> {
    return this.#commit.close()
  }

  async #query(statement: Statement, read: () => readonly unknown[]): Promise<readonly unknown[]> {
    const until = performance.now() + READ_WAIT_MS
    for (;;) {
      if (this.#connection.poisoned) await this.#commit.recover()
      try {
        if (this.#connection.isRead(statement.sql)) return read()
        break
      } catch (error) {
        const code = codeOf(error)
        if (isPoison(code)) this.#connection.poisoned = true
        if (!isBusy(code) || performance.now() > until) throw translate(error)
      }
      await new Promise((resolve) => setTimeout(resolve, READ_RETRY_MS))
    }
    // INSERT … RETURNING and its like are writes: durable before they answer.
    const [outcome] = await this.#commit.submit([statement])
    return outcome?.rows ?? []
  }
}
