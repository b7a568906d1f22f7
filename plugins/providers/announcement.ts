import type { Logger } from 'svc/sdk'
import type { Clock } from './clock.ts'
import type { DefaultModel } from './default-model.ts'

/** After the last change, so that the choice is made once and when the daemon listens already. */
const QUIET_MS = 500

/** Says in the log which model is the default, and again when that changes. */
export class Announcement {
  readonly #defaults: DefaultModel
  readonly #problem: () => Promise<string | undefined>
  readonly #clock: Clock
  readonly #log: Logger
  #last = ''
  #cancel: () => void = () => {}
  #closed = false

  /** `problem` says why the default cannot be used as it is configured. */
  constructor(defaults: DefaultModel, problem: () => Promise<string | undefined>, clock: Clock, log: Logger) {
    this.#defaults = defaults
    this.#problem = problem
    this.#clock = clock
    this.#log = log
  }

  /** Looks now. */
  async now(): Promise<void> {
    this.#cancel()
    await this.#say()
  }
  /** Looks again when nothing has changed for a while. */
  soon(): void {
    this.#cancel()
    if (!this.#closed)
      this.#cancel = this.#clock.after(QUIET_MS, () => {
        this.#say().catch((error: unknown) => this.#log.warn('cannot tell the default model', error))
      })
  }
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  async #say(): Promise<void> {
    const { provider, model, because } = await this.#defaults.find()
    const problem = await this.#problem()
    const line = `default model: ${provider} / ${model} (${because})${problem === undefined ? '' : ` cannot be used: ${problem}`}`
    if (this.#closed || line === this.#last) return
    this.#last = line
    if (problem === undefined) this.#log.info(line)
    else this.#log.warn(line)
  }
}
