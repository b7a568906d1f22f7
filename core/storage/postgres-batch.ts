import type { Connection, Submittable } from 'pg'
import type { Value } from './database.ts'
import { withoutNul } from './text.ts'

/** A statement as PostgreSQL reads it. */
export interface PreparedText {
  /** With `$1` for each value. */
  readonly text: string
  /** Whether it may answer with rows. */
  readonly hasRows: boolean
}
export interface BatchStatement {
  readonly prepared: PreparedText
  readonly values: readonly Value[]
}
export type Row = Record<string, unknown>
export interface Answer {
  readonly changes: number
  readonly rows: readonly Row[]
}
/** Turns the text of a column into a value, by the type of the column. */
export type ReadColumn = (text: string, typeId: number) => unknown

interface Field {
  readonly name: string
  readonly dataTypeID: number
}

/** Names of statements that a connection keeps parsed and planned. */
const MAX_PREPARED = 200
const MAX_SEEN = 2_000

/** What a connection has prepared. A text gets a name when it comes a second time: most come once, or all the time. */
class PreparedStatements {
  readonly #names = new Map<string, string>()
  readonly #seen = new Set<string>()
  /** Names that the server may still have. */
  #stale: string[] = []
  #count = 0
  #generation = 0

  /** After a change of tables all are made anew: their columns may be others. */
  renew(generation: number): void {
    if (this.#generation === generation) return
    this.#generation = generation
    this.#stale.push(...this.#names.values())
    this.#names.clear()
  }

  find(text: string): { readonly name: string; readonly isNew: boolean } {
    const known = this.#names.get(text)
    if (known !== undefined) return { name: known, isNew: false }
    if (!this.#seen.has(text)) {
      if (this.#seen.size >= MAX_SEEN) this.#seen.clear()
      this.#seen.add(text)
      return { name: '', isNew: true }
    }
    if (this.#names.size >= MAX_PREPARED) for (const oldest of [...this.#names.keys()].slice(0, 1)) this.forget(oldest)
    const name = `svc${++this.#count}`
    this.#names.set(text, name)
    return { name, isNew: true }
  }

  /** Whether the server has it is not known. */
  forget(text: string): void {
    const name = this.#names.get(text)
    if (name === undefined) return
    this.#names.delete(text)
    this.#stale.push(name)
  }

  takeStale(): readonly string[] {
    if (this.#stale.length === 0) return []
    const stale = this.#stale
    this.#stale = []
    return stale
  }
}
const preparedOf = new WeakMap<Connection, PreparedStatements>()

/**
 * Statements in one round trip: all are sent, then one `Sync`, up to which they are one transaction of their own, as the
 * protocol says (https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-PIPELINING). Given to
 * `client.query`, which then tells it what the server answers (https://node-postgres.com/apis/client#clientquery).
 */
export class StatementBatch implements Submittable {
  readonly settled: Promise<readonly Answer[]>
  readonly #statements: readonly BatchStatement[]
  readonly #generation: number
  readonly #read: ReadColumn
  readonly #committed: (answers: readonly Answer[]) => void
  readonly #answers: Answer[] = []
  readonly #resolve: (answers: readonly Answer[]) => void
  readonly #reject: (error: unknown) => void
  #prepared: PreparedStatements | undefined
  #fields: readonly Field[] = []
  #rows: Row[] = []

  constructor(
    statements: readonly BatchStatement[],
    generation: number,
    read: ReadColumn,
    /** Told before `settled`, and before anything else that the server said is read. */
    committed: (answers: readonly Answer[]) => void,
  ) {
    this.#statements = statements
    this.#generation = generation
    this.#read = read
    this.#committed = committed
    const { promise, resolve, reject } = Promise.withResolvers<readonly Answer[]>()
    this.settled = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Whether anything of it was given to the server. */
  get isSent(): boolean {
    return this.#prepared !== undefined
  }
  /** Whether every statement was carried out, so that it may be committed although no word of that came. */
  get isCarriedOut(): boolean {
    return this.#answers.length === this.#statements.length
  }

  submit(connection: Connection): void {
    const prepared = preparedOf.get(connection) ?? new PreparedStatements()
    preparedOf.set(connection, prepared)
    this.#prepared = prepared
    prepared.renew(this.#generation)
    // One write for all of it.
    connection.stream.cork()
    try {
      for (const name of prepared.takeStale()) connection.close({ type: 'S', name }, true)
      for (const { prepared: statement, values } of this.#statements) {
        const { name, isNew } = prepared.find(statement.text)
        if (isNew) connection.parse({ name, text: statement.text, types: [] }, true)
        connection.bind({ statement: name, values: values.map(toParameter) }, true)
        if (statement.hasRows) connection.describe({ type: 'P' }, true)
        connection.execute(null, true)
      }
      connection.sync()
    } finally {
      connection.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#fields = fields
  }
  handleDataRow({ fields: texts }: { readonly fields: readonly (string | null)[] }): void {
    const row: Row = {}
    for (const [at, { name, dataTypeID }] of this.#fields.entries()) {
      const text = texts[at] ?? null
      row[name] = text === null ? null : this.#read(text, dataTypeID)
    }
    this.#rows.push(row)
  }
  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#complete(Number(/\d+$/.exec(text)?.[0] ?? 0))
  }
  handleEmptyQuery(): void {
    this.#complete(0)
  }
  handlePortalSuspended(): void {
    // No statement is given a number of rows at which it would stop.
  }
  handleReadyForQuery(): void {
    this.#committed(this.#answers)
    this.#resolve(this.#answers)
  }
  handleError(error: unknown): void {
    // Those behind the one that failed were not even parsed.
    for (const { prepared } of this.#statements.slice(this.#answers.length)) this.#prepared?.forget(prepared.text)
    this.#reject(error)
  }

  #complete(changes: number): void {
    this.#answers.push({ changes, rows: this.#rows })
    this.#rows = []
    this.#fields = []
  }
}

function toParameter(value: Value): string | Buffer | null {
  if (value === null) return null
  if (typeof value === 'string') return withoutNul(value)
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return String(value)
}
