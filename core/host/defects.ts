import type { ConsolaInstance } from 'consola'
import type { OnDefect } from '../errors/defect.ts'

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

  readonly report: OnDefect = (error, where) => {
    this.#log.error(where, error)
    this.note(error, where)
  }
}
