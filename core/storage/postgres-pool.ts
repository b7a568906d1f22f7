import { setTimeout as delay } from 'node:timers/promises'
import type { ConsolaInstance } from 'consola'
import pg from 'pg'
import type { ClientConfig, Pool, PoolClient } from 'pg'
import { StatementBatch } from './postgres-batch.ts'
import type { Answer, BatchStatement } from './postgres-batch.ts'
import { clientConfig } from './postgres-client.ts'
import type { PostgresSettings } from './postgres-client.ts'
import { serverFailure } from './server-failure.ts'
import type { Value } from './database.ts'
import { codeOf, isConflict, isLost, isOutdated, SERVER_AWAY, ServerAway, unavailable } from './failure.ts'
import { messageOf } from '../errors/message.ts'

/** For `GET /api/metrics`. */
export interface PoolFigures {
  readonly open: number
  readonly idle: number
  readonly waiting: number
  readonly batches: number
  readonly statements: number
  readonly roundTrips: number
  readonly retries: number
  /** Writes of which the server did not say whether they are committed. */
  readonly unknown: number
}

/** How long a call that the server has not begun tries to reach it. */
const WAIT_MS = 2_500
const RETRY_MS = 20
const MAX_RETRY_MS = 500
const CONFLICT_TRIES = 5
const MAX_WAITING = 10_000
const IDLE_MS = 60_000
/** Beyond what the server itself allows a statement. */
const GRACE_MS = 5_000
/**
 * More than this may reach the server in pieces. A daemon that is paused in between would keep its locks, for only
 * between the statements of a `BEGIN` the server ends a transaction that stands still.
 */
const MAX_PIPELINED_BYTES = 65_536
const MAX_PIPELINED = 200

const BEGIN: BatchStatement = { prepared: { text: 'BEGIN', hasRows: false }, values: [] }
const COMMIT: BatchStatement = { prepared: { text: 'COMMIT', hasRows: false }, values: [] }
const ROLLBACK: BatchStatement = { prepared: { text: 'ROLLBACK', hasRows: false }, values: [] }

/** The connection broke. `isUndone`: nothing of the batch can be committed. */
class ConnectionLost extends Error {
  readonly isUndone: boolean
  constructor(cause: unknown, isUndone: boolean) {
    super(messageOf(cause), { cause })
    this.isUndone = isUndone
  }
}

export interface RunOptions {
  /** Reads may be done again when the connection is lost. */
  readonly isRead?: boolean
  /** Takes as long as it takes, such as a migration of a large table. */
  readonly isPatient?: boolean
  /** Told before `run` settles, and before anything else is read or written on that connection. */
  readonly committed?: (answers: readonly Answer[]) => void
}

/** Batches over a pool of connections: each is one transaction on one of them. */
export class PostgresPool {
  readonly #pool: Pool
  readonly #answerMs: number
  readonly #counts = { batches: 0, statements: 0, roundTrips: 0, retries: 0, unknown: 0 }
  readonly #working = new Set<Promise<unknown>>()
  #closed = false
  /** Rises when tables change. */
  #generation = 0

  constructor(url: string, settings: PostgresSettings, log: ConsolaInstance) {
    this.#answerMs = settings.statementTimeoutMs + GRACE_MS
    const config = clientConfig(url, settings)
    // The pool would count the time that a call waits for a connection as well.
    const { connectionTimeoutMillis, ...pooled } = config
    class TimedClient extends pg.Client {
      constructor(given: ClientConfig = {}) {
        super({ ...given, connectionTimeoutMillis })
      }
    }
    this.#pool = new pg.Pool({ ...pooled, Client: TimedClient, max: settings.connections, idleTimeoutMillis: IDLE_MS })
    // Without listeners a connection that breaks would end the process; whoever uses it is told as well.
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
    this.#pool.on('error', (error) => log.debug('an idle connection to the database broke', { error: error.message }))
  }

  get figures(): PoolFigures {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { open: totalCount, idle: idleCount, waiting: waitingCount, ...this.#counts }
  }

  /** What is prepared was prepared for other tables. */
  forget(): void {
    this.#generation++
  }

  /**
   * Carries statements out as one transaction. Conflicts are tried again, and so is what the server cannot have
   * committed when the connection was lost. Otherwise rejects with what the server said, or with `service_unavailable`.
   */
  async run(statements: readonly BatchStatement[], options: RunOptions = {}): Promise<readonly Answer[]> {
    if (this.#closed) throw unavailable('The database is closed')
    if (this.#working.size >= MAX_WAITING)
      throw unavailable('Too many calls are waiting for the database', undefined, 5)
    this.#counts.batches++
    this.#counts.statements += statements.length
    const work = this.#retry(statements, options)
    this.#working.add(work)
    try {
      return await work
    } finally {
      this.#working.delete(work)
    }
  }

  /** Settles when what was handed in has settled; nothing is accepted from now on. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.allSettled(this.#working)
    await this.#pool.end()
  }

  async #retry(statements: readonly BatchStatement[], options: RunOptions): Promise<readonly Answer[]> {
    const begun = performance.now()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(statements, options)
      } catch (error) {
        if (error instanceof ConnectionLost) await this.#waitForServer(error, options, { attempt, begun })
        else this.#expectRetry(error, attempt)
        this.#counts.retries++
      }
    }
  }

  /** Throws what the caller gets instead of another attempt. */
  async #waitForServer(
    error: ConnectionLost,
    { isRead }: RunOptions,
    { attempt, begun }: { readonly attempt: number; readonly begun: number },
  ): Promise<void> {
    if (!error.isUndone && isRead !== true) throw this.#outcomeUnknown(error)
    if (performance.now() - begun > WAIT_MS) throw new ServerAway(SERVER_AWAY, error.cause)
    await delay(Math.min(RETRY_MS * 2 ** (attempt - 1), MAX_RETRY_MS))
  }

  #expectRetry(error: unknown, attempt: number): void {
    const code = codeOf(error)
    if (attempt === CONFLICT_TRIES || !(isConflict(code) || isOutdated(code))) throw error
    if (isOutdated(code)) this.forget()
  }

  #outcomeUnknown({ cause }: ConnectionLost): Error {
    this.#counts.unknown++
    return new ServerAway(
      'The connection to the database server was lost during a write; whether it was written is not known',
      cause,
      true,
    )
  }

  async #attempt(statements: readonly BatchStatement[], options: RunOptions): Promise<readonly Answer[]> {
    const client = await this.#connect()
    let broken = false
    try {
      const [first = [], ...others] = groupStatements(statements)
      return await (others.length === 0
        ? this.#exchange(client, first, options)
        : this.#stepByStep(client, statements, options))
    } catch (error) {
      broken = error instanceof ConnectionLost
      throw error
    } finally {
      client.release(broken)
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      const failure = serverFailure(error, pg)
      // A wrong password or name stays wrong.
      throw failure instanceof ServerAway ? new ConnectionLost(error, true) : failure
    }
  }

  /** A round trip for as many statements as reach the server at once, between `BEGIN` and `COMMIT`. */
  async #stepByStep(
    client: PoolClient,
    statements: readonly BatchStatement[],
    { committed, ...options }: RunOptions,
  ): Promise<readonly Answer[]> {
    const answers: Answer[] = []
    try {
      await this.#exchange(client, [BEGIN], options)
      for (const group of groupStatements(statements)) answers.push(...(await this.#exchange(client, group, options)))
    } catch (error) {
      if (error instanceof ConnectionLost) throw new ConnectionLost(error.cause, true)
      await this.#exchange(client, [ROLLBACK], options)
      throw error
    }
    await this.#exchange(client, [COMMIT], { ...options, committed: () => committed?.(answers) })
    return answers
  }

  /** One round trip. */
  async #exchange(
    client: PoolClient,
    statements: readonly BatchStatement[],
    { isPatient, committed = () => undefined }: RunOptions,
  ): Promise<readonly Answer[]> {
    this.#counts.roundTrips++
    const batch = new StatementBatch(statements, this.#generation, readColumn, committed)
    const timer = isPatient
      ? undefined
      : setTimeout(
          () => client.connection.stream.destroy(new Error('the server did not answer in time')),
          this.#answerMs * statements.length,
        )
    try {
      client.query(batch)
      return await batch.settled
    } catch (error) {
      const isWord = error instanceof pg.DatabaseError
      if (isWord && !isLost(codeOf(error))) throw error
      // The server says goodbye behind everything that it did before. What says of it that it is lost (class 08), such
      // as a pooler, does not know what it did.
      const isGoodbye = isWord && !codeOf(error).startsWith('08')
      throw new ConnectionLost(error, !batch.isSent || (isGoodbye && !batch.isCarriedOut))
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Those that are small enough to reach the server at once. */
function groupStatements(statements: readonly BatchStatement[]): readonly (readonly BatchStatement[])[] {
  const groups: BatchStatement[][] = []
  let group: BatchStatement[] = []
  let bytes = 0
  for (const statement of statements) {
    const size = statement.values.reduce<number>((sum, value) => sum + sizeOf(value), statement.prepared.text.length)
    if (group.length > 0 && (group.length >= MAX_PIPELINED || bytes + size > MAX_PIPELINED_BYTES)) {
      groups.push(group)
      group = []
      bytes = 0
    }
    group.push(statement)
    bytes += size
  }
  return [...groups, group]
}
function sizeOf(value: Value): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
}

const INT8 = 20
const NUMERIC = 1700
/** 64-bit integers and sums are numbers here, as SQLite gives them: exact up to 2^53. */
export function readColumn(text: string, typeId: number): unknown {
  return typeId === INT8 || typeId === NUMERIC ? Number(text) : pg.types.getTypeParser(typeId, 'text')(text)
}
