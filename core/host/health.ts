import type { ConsolaInstance } from 'consola'
import { isServerAway, SERVER_AWAY } from '../storage/failure.ts'
import type { Health } from './daemon.ts'

export interface HealthDeps {
  /** Writes to the database and reads it. */
  readonly check: () => Promise<boolean>
  /** Defects so far. */
  readonly panicCount: () => number
  readonly restartCount: number
  readonly warnings: () => readonly string[]
  readonly log: ConsolaInstance
}

/** Below the five seconds that an answer may be old, so that a health request never waits for the disk. */
const CHECK_MS = 4_000
/** A check waits as long for another write, such as a migration of another daemon that holds a table. */
const SILENT_MS = 10_000

/** The health of the daemon. Dispose it to end the checks. */
export class HealthMonitor implements Disposable {
  readonly #deps: HealthDeps
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #checkingSince: number | undefined
  #connected = true
  #leftOut = 0
  readonly #impaired = new Map<string, string>()
  readonly #unready = new Set<string>()
  readonly #noted = new Map<string, readonly string[]>()

  constructor(deps: HealthDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => {
      void this.check()
    }, CHECK_MS)
    this.#timer.unref()
  }

  /** Reports the daemon as degraded because of this part; a reason of `undefined` clears it. */
  setImpaired(part: string, reason: string | undefined): void {
    this.#unready.delete(part)
    if (reason === undefined) this.#impaired.delete(part)
    else this.#impaired.set(part, reason)
  }

  /** The same, and a load balancer sends no requests here meanwhile. */
  setUnready(part: string, reason: string | undefined): void {
    this.setImpaired(part, reason)
    if (reason !== undefined) this.#unready.add(part)
  }

  /** Shows warnings of this part, and the daemon as well as before; none take them back. */
  setWarnings(part: string, warnings: readonly string[]): void {
    if (warnings.length === 0) this.#noted.delete(part)
    else this.#noted.set(part, warnings)
  }

  /**
   * Whether a failure, or its text, says only that the database is away, which the log says once: such lines are counted
   * until it is back. The first one makes it be checked at once.
   */
  isKnown(part: unknown): boolean {
    if (typeof part === 'string' ? !part.includes(SERVER_AWAY) : !isServerAway(part)) return false
    if (this.#connected) void this.check()
    else this.#leftOut++
    return !this.#connected
  }

  async check(): Promise<void> {
    if (this.#checkingSince !== undefined) {
      if (performance.now() - this.#checkingSince > SILENT_MS) this.#note(false)
      return
    }
    this.#checkingSince = performance.now()
    try {
      this.#note(await this.#deps.check())
    } catch {
      this.#note(false) /* that it fails is the answer */
    } finally {
      this.#checkingSince = undefined
    }
  }

  #note(connected: boolean): void {
    if (this.#connected && !connected) this.#deps.log.error('the database does not answer')
    if (!this.#connected && connected) {
      const more = this.#leftOut === 0 ? '' : `; ${this.#leftOut} lines on what failed meanwhile were left out`
      this.#deps.log.info(`the database answers again${more}`)
      this.#leftOut = 0
    }
    this.#connected = connected
  }

  warnings(): readonly string[] {
    return [
      ...this.#deps.warnings(),
      ...[...this.#impaired].map(([part, reason]) => `${part}: ${reason}`),
      ...[...this.#noted].flatMap(([part, warnings]) => warnings.map((warning) => `${part}: ${warning}`)),
    ]
  }

  health(): Health {
    return {
      status: this.#connected && this.#impaired.size === 0 ? 'ok' : 'degraded',
      uptimeSecs: Math.floor((performance.now() - this.#startedAt) / 1000),
      panicCount: this.#deps.panicCount(),
      restartCount: this.#deps.restartCount,
      database: this.#connected ? 'connected' : 'error',
      unready: [...this.#unready],
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
