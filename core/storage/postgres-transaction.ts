import type { Client } from 'pg'
import { tellWritten } from './database.ts'
import type { Changes, PluginDatabase, Statement, Value } from './database.ts'
import { toNumbered } from './dialect.ts'
import { readColumn } from './postgres-pool.ts'
import { toStatement } from './text.ts'
import type { SqlPart } from './text.ts'

/** SQL in one transaction on a connection of its own, which the caller begins and ends: a batch is a savepoint in it. */
export class PostgresTransaction implements PluginDatabase {
  readonly dialect = 'postgresql'
  readonly #client: Client
  /** The client takes one statement after the other, and nothing may come in between those of a batch. */
  #last: Promise<unknown> = Promise.resolve()
  constructor(client: Client) {
    this.#client = client
  }

  sql(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Statement {
    return toStatement(template, values)
  }
  // As in the database of a daemon: the type of a row is the word of the store.
  async all<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T[]> {
    return (await this.query(toStatement(template, values))).rows as T[]
  }
  async one<T>(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<T | undefined> {
    return (await this.all<T>(template, ...values))[0]
  }
  async run(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): Promise<Changes> {
    return { changes: (await this.query(toStatement(template, values))).changes }
  }
  async batch(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return await this.#inTurn(() => this.#batch(statements))
  }
  async #batch(statements: readonly Statement[]): Promise<readonly Changes[]> {
    const outcomes: Changes[] = []
    await this.#client.query('SAVEPOINT batch')
    try {
      for (const statement of statements) outcomes.push({ changes: (await this.#query(statement)).changes })
    } catch (error) {
      await this.#client.query('ROLLBACK TO SAVEPOINT batch')
      throw error
    }
    await this.#client.query('RELEASE SAVEPOINT batch')
    tellWritten(statements, outcomes, (error) => {
      throw error
    })
    return outcomes
  }

  /** A statement that is built at run time; `?` stands for a value. */
  async query(statement: Statement): Promise<Answer> {
    return await this.#inTurn(() => this.#query(statement))
  }

  async #query({ sql, values }: Statement): Promise<Answer> {
    const { rows, rowCount } = await this.#client.query({ text: toNumbered(sql), values: [...values], types: TYPES })
    return { rows, changes: rowCount ?? 0 }
  }
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined /* told to whoever asked for it */)
    return done
  }
}

interface Answer {
  readonly rows: unknown[]
  readonly changes: number
}
const TYPES = {
  getTypeParser: (typeId: number) => (text: string) => readColumn(text, typeId),
}
