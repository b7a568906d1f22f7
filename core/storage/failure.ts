import { Refusal } from '../errors/error.ts'

/** The `code` of a database error: `SQLITE_FULL`, `57P01`, `ECONNRESET`. Empty when it has none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : ''
}

/** Another process holds the lock; the same call may work a moment later. */
export const isBusy = (code: string): boolean => code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')
const isFull = (code: string): boolean => code === 'SQLITE_FULL'
/** After these nothing the connection remembers can be trusted: it is closed and opened again. */
export const isPoison = (code: string): boolean =>
  code.startsWith('SQLITE_IOERR') ||
  code.startsWith('SQLITE_CORRUPT') ||
  code === 'SQLITE_NOTADB' ||
  code.startsWith('SQLITE_CANTOPEN') ||
  code === 'SQLITE_PROTOCOL'
const isRefusedWrite = (code: string): boolean =>
  code.startsWith('SQLITE_READONLY') || code === 'SQLITE_NOMEM' || code.startsWith('SQLITE_PERM')

/** PostgreSQL went away, is starting, is full or has no connection left (classes 08, 53, 57P), or ended an idle one. */
export const isLost = (code: string): boolean =>
  /^(08|53|57P|25P03)/.test(code) || /^(ECONN|EPIPE|ENOENT|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_)/.test(code)
/** Two transactions met; the same one run again may pass (serialization failure, deadlock). */
export const isConflict = (code: string): boolean => code === '40001' || code === '40P01'

/**
 * What `SELECT svc_require(condition)` fails with on PostgreSQL, so that a batch is done only while the condition holds:
 * for what this daemon owns, and another may take over.
 */
export const NOT_HELD = 'SVC01'
/** A prepared statement is of tables that have changed since, or the server has forgotten it. */
export const isOutdated = (code: string): boolean => code === '0A000' || code === '26000'
/** `statement_timeout`, or somebody cancelled it. */
const isCancelled = (code: string): boolean => code === '57014'

/** Whether a statement failed for that. */
export const isNotHeld = (error: unknown): boolean => codeOf(error) === NOT_HELD

/**
 * The server of the database does not answer, or broke off: no failure of what was to be done, which may be done when it
 * answers again.
 */
export class ServerAway extends Refusal {
  /** Whether what was to be written may be written all the same. */
  readonly mayBeWritten: boolean
  constructor(message: string, cause: unknown, mayBeWritten = false) {
    super('service_unavailable', message, { cause, retryAfterSecs: 5 })
    this.mayBeWritten = mayBeWritten
  }
}

/** What it says. */
export const SERVER_AWAY = 'The database server does not answer'
/** Whether that is what it is, or why something else failed. */
export function isServerAway(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof ServerAway) return true
  return false
}

export function unavailable(message: string, cause?: unknown, retryAfterSecs = 1): Refusal {
  return new Refusal('service_unavailable', message, { cause, retryAfterSecs })
}

/**
 * What the caller gets for a failure of the engine: a refusal when time or an operator can mend it, else the defect
 * as it is.
 */
export function translate(error: unknown): unknown {
  if (error instanceof Refusal) return error
  const code = codeOf(error)
  if (isBusy(code)) return unavailable('The database is locked by another process', error)
  if (code === NOT_HELD) return unavailable('Another daemon has taken over what this one worked on', error)
  if (isFull(code)) return unavailable('The disk of the database is full', error, 5)
  if (isPoison(code) || isRefusedWrite(code)) return unavailable('The database cannot be read or written', error, 5)
  if (isLost(code)) return new ServerAway(SERVER_AWAY, error)
  if (isCancelled(code)) return unavailable('The database took too long (database.statement_timeout_secs)', error, 5)
  return error
}
