import type { ConsolaInstance } from 'consola'
import { tellWritten } from './database.ts'
import type { Statement } from './database.ts'
import { codeOf, isBusy, isPoison, translate, unavailable } from './failure.ts'
import type { Outcome, SqliteConnection } from './sqlite-connection.ts'
import { messageOf } from '../errors/message.ts'

interface Batch {
  readonly statements: readonly Statement[]
  readonly since: number
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}
type Result =
  | { readonly batch: Batch; readonly outcomes: readonly Outcome[] }
  | { readonly batch: Batch; readonly error: unknown }

/** How long a write waits for a lock of another process before its caller is told to come back. */
const WAIT_MS = 2_500
const RETRY_MS = 15
const REOPEN_EVERY_MS = 250
/** One transaction blocks the loop no longer than about this; what is left goes into the next. */
const SLICE_MS = 12
const MAX_WAITING = 20_000
/**
 * From so many batches in a group on, writers come in numbers: a group then stays open while each round of the loop
 * brings more of them.
 */
const CROWD = 4
const MAX_GATHERED = 500
const GATHER_MS = 3
const HALF_DONE = new Error('a batch without a savepoint failed half-way')

/**
 * Group commit: every batch handed in during one tick goes into one transaction with one sync, and one that fails takes
 * nobody with it. Hardly any fails, so the first attempt has no savepoints; when one fails half-way, all is undone and
 * done again with them. A caller settles only after the commit; when it fails, nobody is told "done".
 */
export class GroupCommit {
  readonly #connection: SqliteConnection
  readonly #log: ConsolaInstance
  readonly #onFull: (() => void) | undefined
  #waiting: Batch[] = []
  #scheduled = false
  /** How many batches the last group had. */
  #taken = 0
  #reopening: Promise<void> | undefined
  #reopenedAt = -Infinity
  #closed = false
  /** So many of the next batches get a transaction of their own, because one of them spoils the commit of all. */
  #alone = 0
  /** The next group is done with a savepoint for each batch. */
  #careful = false
  #complainedAt = -Infinity
  #idle: (() => void)[] = []

  /** `onFull` is told of a commit for which the disk had no room. */
  constructor(connection: SqliteConnection, log: ConsolaInstance, onFull?: () => void) {
    this.#connection = connection
    this.#log = log
    this.#onFull = onFull
  }

  submit(statements: readonly Statement[]): Promise<readonly Outcome[]> {
    if (this.#closed) return Promise.reject(unavailable('The database is closed'))
    if (statements.length === 0) return Promise.resolve([])
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(unavailable('Too many writes are waiting for the database', undefined, 5))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statements, since: performance.now(), resolve, reject })
      this.#schedule()
    })
  }

  /** Settles when what was handed in has settled; nothing is accepted from now on. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Opens the connection again after an I/O error, at most every 250 ms. Rejects with `service_unavailable`. */
  async recover(): Promise<void> {
    if (!this.#connection.poisoned) return
    if (this.#connection.inMemory) {
      this.#connection.poisoned = false
      return
    }
    if (!this.#reopening) {
      if (performance.now() - this.#reopenedAt < REOPEN_EVERY_MS)
        throw unavailable('The database cannot be read or written', undefined, 5)
      this.#reopenedAt = performance.now()
      this.#reopening = this.#connection.reopen().finally(() => {
        this.#reopening = undefined
      })
    }
    try {
      await this.#reopening
    } catch (error) {
      throw unavailable('The database cannot be opened again', error, 5)
    }
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // A lone writer waits for nobody.
    if (this.#taken < CROWD) setImmediate(() => this.#flush())
    else this.#gather(0, performance.now() + GATHER_MS)
  }
  /**
   * Everyone in a group shares its sync and the pages it writes, so the larger it is, the less it costs each of them.
   */
  #gather(before: number, until: number): void {
    setImmediate(() => {
      const { length } = this.#waiting
      if (length > before && length < MAX_GATHERED && performance.now() < until) this.#gather(length, until)
      else this.#flush()
    })
  }
  #retry(): void {
    this.#scheduled = true
    setTimeout(() => this.#flush(), RETRY_MS)
  }
  #next(): void {
    if (this.#waiting.length > 0) this.#schedule()
    else for (const wake of this.#idle.splice(0)) wake()
  }

  #flush(): void {
    this.#scheduled = false
    if (!this.#connection.poisoned) {
      this.#commit()
      return
    }
    this.#scheduled = true
    this.recover().then(
      () => {
        this.#scheduled = false
        this.#commit()
      },
      (error: unknown) => {
        this.#scheduled = false
        this.#refuse(this.#waiting.splice(0), error)
      },
    )
  }

  #commit(): void {
    const connection = this.#connection
    try {
      connection.begin()
    } catch (error) {
      this.#notBegun(error)
      return
    }
    const careful = this.#careful
    this.#careful = false
    const results: Result[] = []
    const started = performance.now()
    let taken = 0
    for (const batch of this.#waiting) {
      if (taken > 0 && (this.#alone > 0 || (taken % 16 === 0 && performance.now() - started > SLICE_MS))) break
      taken++
      try {
        results.push({ batch, outcomes: this.#apply(batch.statements, careful) })
      } catch (error) {
        if (error === HALF_DONE) {
          this.#again()
          return
        }
        results.push({ batch, error })
        const code = codeOf(error)
        if (code === 'SQLITE_FULL' || isPoison(code)) {
          this.#failed(taken, error)
          return
        }
        if (!connection.inTransaction) {
          this.#undone(taken, batch, error)
          return
        }
      }
    }
    try {
      connection.commit()
    } catch (error) {
      this.#notCommitted(taken, error)
      return
    }
    if (this.#alone > 0) this.#alone--
    this.#taken = taken
    this.#waiting.splice(0, taken)
    for (const result of results) {
      if ('outcomes' in result) {
        tellWritten(result.batch.statements, result.outcomes, this.#unheard)
        result.batch.resolve(result.outcomes)
      } else result.batch.reject(translate(result.error))
    }
    this.#next()
  }

  /** Throws `HALF_DONE` when a batch without a savepoint failed after it had changed something. */
  #apply(statements: readonly Statement[], careful: boolean): readonly Outcome[] {
    const connection = this.#connection
    const outcomes: Outcome[] = []
    // A single statement is undone by the engine itself when it fails.
    const guarded = careful && statements.length > 1
    if (guarded) connection.savepoint()
    try {
      for (const statement of statements) outcomes.push(connection.run(statement))
      if (guarded) connection.release()
      return outcomes
    } catch (error) {
      if (!connection.inTransaction) throw error
      if (guarded) connection.rollbackToSavepoint()
      else if (outcomes.length > 0 && codeOf(error) !== 'SQLITE_FULL' && !isPoison(codeOf(error))) throw HALF_DONE
      throw error
    }
  }

  #again(): void {
    this.#careful = true
    try {
      this.#connection.rollback()
    } catch (error) {
      this.#failed(this.#waiting.length, error)
      return
    }
    this.#commit()
  }

  /** Somebody else holds the lock, or the file is gone. */
  #notBegun(error: unknown): void {
    if (isBusy(codeOf(error))) {
      const limit = performance.now() - WAIT_MS
      let expired = 0
      while (expired < this.#waiting.length && (this.#waiting[expired]?.since ?? Infinity) < limit) expired++
      this.#refuse(this.#waiting.splice(0, expired), error, this.#waiting.length === 0)
      if (this.#waiting.length > 0) this.#retry()
      return
    }
    this.#failed(this.#waiting.length, error)
  }

  /**
   * A deferred constraint is checked at the commit only: to find whose it is, each batch of the group is done alone.
   */
  #notCommitted(taken: number, error: unknown): void {
    if (taken === 1 || !codeOf(error).startsWith('SQLITE_CONSTRAINT')) {
      this.#failed(taken, error)
      return
    }
    this.#connection.rollback()
    this.#alone = taken
    this.#next()
  }

  /** The transaction is lost for everyone in it. */
  #failed(taken: number, error: unknown): void {
    try {
      this.#connection.rollback()
    } catch {
      this.#connection.poisoned = true
    }
    if (isPoison(codeOf(error))) this.#connection.poisoned = true
    if (codeOf(error) === 'SQLITE_FULL') this.#onFull?.()
    if (this.#alone > 0) this.#alone--
    if (performance.now() - this.#complainedAt > 1_000) {
      this.#complainedAt = performance.now()
      this.#log.error('a commit failed; none of its writes is acknowledged', {
        code: codeOf(error),
        writes: taken,
        error: messageOf(error),
      })
    }
    this.#refuse(this.#waiting.splice(0, taken), error)
  }

  /** One statement ended the transaction although it must not: its batch fails, the others are done again. */
  #undone(taken: number, culprit: Batch, error: unknown): void {
    this.#waiting.splice(taken - 1, 1)
    culprit.reject(translate(error))
    this.#next()
  }

  readonly #unheard = (error: unknown): void => this.#log.error('a copy of rows could not follow a write', error)

  #refuse(batches: readonly Batch[], error: unknown, goOn = true): void {
    const reason = translate(error)
    for (const batch of batches) batch.reject(reason)
    if (goOn) this.#next()
  }
}
