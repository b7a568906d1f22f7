import type { ConsolaInstance } from 'consola'
import type { OnDefect } from '../errors/defect.ts'
import { Refusal } from '../errors/error.ts'

/** Counts failures that are bugs, for the health of the daemon. */
export class Defects {
  readonly #log: ConsolaInstance
  readonly #onDefect: OnDefect | undefined
  #count = 0

  constructor(log: ConsolaInstance, onDefect: OnDefect | undefined) {
    this.#log = log
    this.#onDefect = onDefect
  }

  get count(): number {
    return this.#count
  }

  /** Counts a failure that is in the log already. */
  readonly note: OnDefect = (error, where) => {
    this.#count++
    this.#onDefect?.(error, where)
  }

  /** What waits for the database, or for something else that is away, is no bug: one line says so. */
  readonly report: OnDefect = (error, where) => {
    if (isAway(error)) {
      this.#log.warn(`${where}: ${error.message}`)
      return
    }
    this.#log.error(where, error)
    this.note(error, where)
  }
}

/** Whether it can be tried again. */
const isAway = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.code === 'service_unavailable' && error.retryAfterSecs !== undefined
