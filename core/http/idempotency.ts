import type { DaemonLiveness } from './key-owners.ts'
import type { IdempotencyDeps, IdempotentWork, Once, Work } from './idempotent-work.ts'

const DAY_MS = 86_400_000
const SWEEP_MS = 3_600_000
export const MAX_KEY_CHARS = 255
export const INVALID_KEY = `Idempotency-Key: 1 to ${MAX_KEY_CHARS} visible ASCII characters`

/** Idempotency keys. What answers them is loaded with the first one, and at once where other daemons may ask for it. */
export class Idempotency implements Disposable {
  readonly #deps: IdempotencyDeps
  #work: Promise<IdempotentWork> | undefined
  #liveness: DaemonLiveness | undefined
  #timer: NodeJS.Timeout | undefined
  constructor(deps: IdempotencyDeps) {
    this.#deps = deps
    if (deps.broadcast.isShared) void this.#open()
  }

  /** Without it the work of another daemon on the database is never taken over. */
  setLiveness(liveness: DaemonLiveness | undefined): void {
    this.#liveness = liveness
    void this.#work?.then((work) => work.setLiveness(liveness))
  }

  /** Throws `invalid_request` for an invalid key, and `conflict` if the key was used for another request. */
  async answer(work: Work): Promise<Once> {
    return (await this.#open()).answer(work)
  }

  /** Removes reservations older than 24 hours, now and every hour. */
  start(): void {
    const sweep = (): void => {
      this.#deps.reservations
        .forget(new Date((this.#deps.now?.() ?? Date.now()) - DAY_MS).toISOString())
        .catch((error: unknown) => this.#deps.onDefect(error, 'idempotency keys'))
    }
    this.#timer ??= setInterval(sweep, SWEEP_MS).unref()
    sweep()
  }
  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    void this.#work?.then((work) => work[Symbol.dispose]())
  }

  #open(): Promise<IdempotentWork> {
    return (this.#work ??= import('./idempotent-work.ts').then((module) => {
      const work = new module.IdempotentWork(this.#deps)
      work.setLiveness(this.#liveness)
      return work
    }))
  }
}
