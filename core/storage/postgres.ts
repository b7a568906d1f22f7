import type { ConsolaInstance } from 'consola'
import type { Connector } from 'db0'
import { Refusal } from '../errors/error.ts'
import { tellWritten } from './database.ts'
import type { Changes, PluginDatabase, Statement, Value } from './database.ts'
import { codeOf, isConflict, translate, unavailable } from './failure.ts'
import { toNumbered } from './dialect.ts'
import { Recent, refuseControl, toStatement } from './text.ts'
import { messageOf } from '../errors/message.ts'

type Row = Record<string, unknown>
interface Answer {
  readonly rows: readonly Row[]
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[]
  readonly rowCount?: number | null
  readonly affectedRows?: number
}
/** What is used of `pg.Client`, as db0's connector hands it out. */
interface Client {
  query(text: string, values: readonly Value[]): Promise<Answer>
  on?(event: 'error', listener: (error: Error) => void): unknown
}

const MAX_WAITING = 10_000
const CONFLICT_TRIES = 5
const GOODBYE_MS = 1_000
const INT8 = 20
const NUMERIC = 1700
const WRITES = /^\s*(insert|update|delete|with\b[\s\S]*\b(insert\s+into|update|delete\s+from))\b/i

/**
 * SQL over one PostgreSQL client of a db0 connector. Everything stands in one line, so that nobody's read happens
 * inside another's transaction; with a second connector reads have a line of their own.
 */
export class PostgresDatabase implements PluginDatabase {
  readonly dialect = 'postgresql'
  readonly #writer: Line
  readonly #reader: Line
  readonly #numbered = new Recent<string>(2_000)

  readonly #unheard: (error: unknown) => void

  constructor(writer: Connector, reader: Connector | undefined, log: ConsolaInstance) {
    this.#unheard = (error) => log.error('a copy of rows could not follow a write', error)
    this.#writer = new Line(writer, log)
    this.#reader = reader ? new Line(reader, log) : this.#writer
  }

  sql(template: TemplateStringsArray, ...values: Value[]): Statement {
    return toStatement(template, values)
  }

  // The type of a row is the word of the store that wrote the SQL; a row that holds JSON is parsed there.
  async all<T>(template: TemplateStringsArray, ...values: Value[]): Promise<T[]> {
    const statement = toStatement(template, values)
    const line = WRITES.test(statement.sql) ? this.#writer : this.#reader
    return (await line.use((client) => this.#ask(client, statement))).rows as T[]
  }
  async one<T>(template: TemplateStringsArray, ...values: Value[]): Promise<T | undefined> {
    return (await this.all<T>(template, ...values))[0]
  }
  async run(template: TemplateStringsArray, ...values: Value[]): Promise<Changes> {
    const [changes] = await this.batch([toStatement(template, values)])
    return changes ?? { changes: 0 }
  }
  async batch(statements: readonly Statement[]): Promise<readonly Changes[]> {
    if (statements.length === 0) return []
    for (const statement of statements) refuseControl(statement.sql)
    const only = statements[0]
    if (only && statements.length === 1) {
      return this.#writer.use(async (client) => {
        const changes = [changesOf(await this.#ask(client, only))]
        tellWritten(statements, changes, this.#unheard)
        return changes
      })
    }
    return this.#writer.use(async (client) => {
      for (let attempt = 1; ; attempt++) {
        await client.query('BEGIN', [])
        try {
          const changes: Changes[] = []
          for (const statement of statements) changes.push(changesOf(await this.#ask(client, statement)))
          await client.query('COMMIT', [])
          tellWritten(statements, changes, this.#unheard)
          return changes
        } catch (error) {
          await rollback(client, error)
          if (!isConflict(codeOf(error)) || attempt === CONFLICT_TRIES) throw error
        }
      }
    })
  }

  async close(): Promise<void> {
    await this.#writer.close()
    if (this.#reader !== this.#writer) await this.#reader.close()
  }

  #ask(client: Client, statement: Statement): ReturnType<typeof ask> {
    return ask(client, this.#numbered.get(statement.sql, toNumbered), statement.values)
  }
}

/** Uses of one client, strictly one after the other. */
class Line {
  readonly #connector: Connector
  readonly #log: ConsolaInstance
  readonly #watched = new WeakSet<object>()
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #closed = false

  constructor(connector: Connector, log: ConsolaInstance) {
    this.#connector = connector
    this.#log = log
  }

  async use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (this.#closed) throw unavailable('The database is closed')
    if (this.#waiting >= MAX_WAITING) throw unavailable('Too many calls are waiting for the database', undefined, 5)
    this.#waiting++
    const turn = this.#last.then(() => this.#run(work))
    // The line goes on whether or not this one failed; its failure is the caller's.
    this.#last = turn.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await turn
    } finally {
      this.#waiting--
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#last
    await this.#connector.dispose?.()
  }

  async #run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#client())
    } catch (error) {
      const reason = translate(error)
      // A lost client never comes back by itself: without it db0 connects anew at the next call.
      if (reason instanceof Refusal) await this.#drop()
      throw reason
    }
  }

  /** Saying goodbye over a dead connection may take for ever; nobody waits longer than a second for it. */
  async #drop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, GOODBYE_MS)
    })
    const goodbye = Promise.resolve(this.#connector.dispose?.()).catch((error: unknown) => {
      this.#log.debug('a broken connection was not closed properly', {
        error: messageOf(error),
      })
    })
    await Promise.race([goodbye, late])
    clearTimeout(timer)
  }

  async #client(): Promise<Client> {
    const client: unknown = await this.#connector.getInstance()
    if (!isClient(client)) throw new Error(`db0 connector "${this.#connector.name}" does not give a PostgreSQL client`)
    if (client.on && !this.#watched.has(client)) {
      this.#watched.add(client)
      // Without a listener a connection that breaks while idle would end the process.
      client.on('error', (error) =>
        this.#log.warn('the connection to the database server broke', { error: error.message }),
      )
    }
    return client
  }
}

async function rollback(client: Client, reason: unknown): Promise<void> {
  // A client that cannot even do this may be left inside the transaction, so it is given up.
  try {
    await client.query('ROLLBACK', [])
  } catch {
    throw unavailable('The database server does not answer', reason, 5)
  }
}

const changesOf = ({ changes }: Changes): Changes => ({ changes })
/** PostgreSQL refuses texts with this character, which anybody can put into a message. */
function withoutZeros(value: Value): Value {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value
}
async function ask(
  client: Client,
  text: string,
  values: readonly Value[],
): Promise<{ readonly changes: number; readonly rows: readonly Row[] }> {
  const answer = await client.query(text, values.map(withoutZeros))
  return { changes: answer.rowCount ?? answer.affectedRows ?? 0, rows: toNumbers(answer) }
}

/** 64-bit integers and sums arrive as text or bigint; up to 2^53 they are numbers here, as SQLite gives them. */
function toNumbers(answer: Answer): readonly Row[] {
  const names = answer.fields
    .filter((field) => field.dataTypeID === INT8 || field.dataTypeID === NUMERIC)
    .map((field) => field.name)
  if (names.length === 0) return answer.rows
  return answer.rows.map((row) => {
    const copy: Row = { ...row }
    for (const name of names) if (copy[name] !== null && copy[name] !== undefined) copy[name] = Number(copy[name])
    return copy
  })
}

function isClient(value: unknown): value is Client {
  return typeof value === 'object' && value !== null && 'query' in value && typeof value.query === 'function'
}
