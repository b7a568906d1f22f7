import type { ConsolaInstance } from 'consola'
import type { Clock } from './clock.ts'
import type { DefaultModel } from './default-model.ts'

/** After the last change, so that the choice is made once and when the daemon listens already. */
const QUIET_MS = 500

/** Says in the log which model is the default, and again when that changes. */
export class Announcement {
  readonly #defaults: DefaultModel
  readonly #clock: Clock
  readonly #log: ConsolaInstance
  #last = ''
  #cancel: () => void = () => {}
  #closed = false

  constructor(defaults: DefaultModel, clock: Clock, log: ConsolaInstance) {
    this.#defaults = defaults
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
    const line = `default model: ${provider} / ${model} (${because})`
    if (this.#closed || line === this.#last) return
    this.#last = line
    this.#log.info(line)
  }
}
