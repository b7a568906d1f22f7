import type { Logger } from 'svc/sdk'
import type { Clock } from 'svc/internal'
import type { DefaultModel } from './default-model.ts'

/** So that several changes, and all of a start, make one line. */
const QUIET_MS = 500

export interface DefaultModelLogDeps {
  readonly defaults: Pick<DefaultModel, 'find'>
  /** Why the configured default cannot be used. */
  readonly problem: () => Promise<string | undefined>
  readonly clock: Clock
  readonly log: Logger
  /** Whether the start is over: until then the plugin of the default may not be loaded yet. */
  readonly isStarted: () => boolean
}

/** Logs which model is the default, and again when that changes. */
export class DefaultModelLog {
  readonly #defaults: Pick<DefaultModel, 'find'>
  readonly #problem: () => Promise<string | undefined>
  readonly #clock: Clock
  readonly #log: Logger
  readonly #isStarted: () => boolean
  #last = ''
  #cancel: () => void = () => {}
  #closed = false

  constructor({ defaults, problem, clock, log, isStarted }: DefaultModelLogDeps) {
    this.#defaults = defaults
    this.#problem = problem
    this.#clock = clock
    this.#log = log
    this.#isStarted = isStarted
  }

  async write(): Promise<void> {
    this.#cancel()
    await this.#writeChange()
  }
  /** Writes when nothing has changed for a while; the end of a start calls `write`. */
  schedule(): void {
    this.#cancel()
    if (!this.#closed && this.#isStarted())
      this.#cancel = this.#clock.after(QUIET_MS, () => {
        this.#writeChange().catch((error: unknown) =>
          this.#log.warn('the default model could not be determined', error),
        )
      })
  }
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  async #writeChange(): Promise<void> {
    const { provider, model, because } = await this.#defaults.find()
    const problem = await this.#problem()
    const suffix = problem === undefined ? '' : ` cannot be used: ${problem}`
    const line = `default model: ${provider} / ${model} (${because})${suffix}`
    if (this.#closed || line === this.#last) return
    this.#last = line
    if (problem === undefined) this.#log.info(line)
    else this.#log.warn(line)
  }
}
