import { messageOf, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Counter, Logger } from 'svc/sdk'
import type { McpServers, McpServerState, McpServerView } from '../mcp/contract.ts'
import type { Extensions } from './config.ts'

export interface MonitorDeps {
  readonly servers: Pick<McpServers, 'find' | 'client' | 'reconnect'>
  readonly settings: Extensions & { readonly check_timeout_secs: number }
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly checks: Counter
  readonly reconnects: Counter
  /** It failed as often as its template allows, or works again after that. */
  readonly alert: (id: string, error: string | undefined) => Promise<void>
}
/** One that is checked, with what its template says of checks. */
export interface Checked {
  readonly id: string
  readonly intervalSecs: number
  readonly threshold: number
}
export interface Health {
  readonly lastOk: string | null
  readonly lastError: string | null
  readonly failures: number
  readonly isReconnecting: boolean
  readonly attempts: number
}
interface Entry {
  checkedAt: number
  lastOk: number | undefined
  lastError: string | undefined
  failures: number
  attempts: number
  nextAttempt: number
  isReconnecting: boolean
  isAlerted: boolean
}

/** The states in which there is nothing to check: it waits for a person, or for itself. */
const UNCHECKED: ReadonlySet<McpServerState> = new Set(['login_required', 'disabled', 'connecting'])

/** Checks integrations, connects those again that do not work, and gives the alarm. */
export class HealthMonitor {
  readonly #deps: MonitorDeps
  readonly #entries = new Map<string, Entry>()
  constructor(deps: MonitorDeps) {
    this.#deps = deps
  }

  health(id: string): Health {
    const entry = this.#entries.get(id)
    return {
      lastOk: entry?.lastOk === undefined ? null : toIso(entry.lastOk),
      lastError: entry?.lastError ?? null,
      failures: entry?.failures ?? 0,
      isReconnecting: entry?.isReconnecting ?? false,
      attempts: entry?.attempts ?? 0,
    }
  }
  /** Whether it counts as not working. */
  isUnhealthy({ id, threshold }: Checked): boolean {
    return (this.#entries.get(id)?.failures ?? 0) >= threshold
  }
  forget(id: string): void {
    this.#entries.delete(id)
  }

  /** Checks those whose interval is over. Never rejects for what a server does wrong. */
  async check(integrations: readonly Checked[]): Promise<void> {
    const now = this.#deps.clock.now()
    const due = integrations.filter(({ id, intervalSecs }) => {
      const entry = this.#entry(id)
      // Ticks of the job are not exact.
      return !entry.isReconnecting && now - entry.checkedAt >= intervalSecs * 1000 * 0.9
    })
    await Promise.all(due.map((one) => this.#checkOne(one, now)))
  }

  async #checkOne(one: Checked, now: number): Promise<void> {
    const { servers, checks } = this.#deps
    const entry = this.#entry(one.id)
    entry.checkedAt = now
    const view = await servers.find(one.id)
    if (view !== undefined && UNCHECKED.has(view.state)) return
    const failure = await this.#probe(view)
    checks.add(1, { outcome: failure === undefined ? 'ok' : 'failed' })
    if (failure === undefined) return this.succeeded(one.id)
    await this.#failed(one, entry, failure)
    if (view !== undefined) await this.#reconnect(one, entry, now)
  }

  /** Why it does not work. A program that is not running because nobody needs it is not started for this. */
  async #probe(view: McpServerView | undefined): Promise<string | undefined> {
    if (view === undefined) return 'its MCP server was removed'
    if (view.state === 'error') return view.error ?? 'its MCP server failed'
    if (view.state === 'disconnected') return undefined
    try {
      const connection = await this.#deps.servers.client(view.name)
      await connection.ping({ timeoutMs: this.#deps.settings.check_timeout_secs * 1000 })
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  /** It was reached, by a check or by what a person did. */
  async succeeded(id: string): Promise<void> {
    const entry = this.#entry(id)
    const wasAlerted = entry.isAlerted
    Object.assign(entry, { lastOk: this.#deps.clock.now(), failures: 0, attempts: 0, nextAttempt: 0, isAlerted: false })
    if (wasAlerted) await this.#deps.alert(id, undefined)
  }
  async #failed({ id, threshold }: Checked, entry: Entry, failure: string): Promise<void> {
    entry.lastError = failure
    entry.failures += 1
    if (entry.isAlerted || entry.failures < threshold) return
    entry.isAlerted = true
    await this.#deps.alert(id, failure)
  }

  async #reconnect(one: Checked, entry: Entry, now: number): Promise<void> {
    const { servers, settings, reconnects, log } = this.#deps
    const { auto_reconnect: isOn, reconnect_max_attempts: max } = settings
    if (!isOn || entry.attempts >= max || now < entry.nextAttempt) return
    entry.attempts += 1
    entry.nextAttempt = now + this.#backOff(one, entry.attempts)
    entry.isReconnecting = true
    try {
      const view = await servers.reconnect(one.id)
      if (view.state === 'error') throw new Error(view.error ?? 'its MCP server failed')
      reconnects.add(1, { outcome: 'connected' })
      await this.succeeded(one.id)
    } catch (error) {
      reconnects.add(1, { outcome: 'failed' })
      entry.lastError = messageOf(error)
      if (entry.attempts >= max)
        log.warn(`the integration "${one.id}" was given up after ${max} attempts to connect`, {
          error: entry.lastError,
        })
    } finally {
      entry.isReconnecting = false
    }
  }

  /** Doubles from the interval of checks. A fifth is random, so that those that failed together do not come together. */
  #backOff({ intervalSecs }: Checked, attempts: number): number {
    const { reconnect_max_backoff_secs: max } = this.#deps.settings
    return Math.min(max, intervalSecs * 2 ** (attempts - 1)) * 1000 * (0.8 + 0.2 * this.#deps.random())
  }
  #entry(id: string): Entry {
    const known = this.#entries.get(id)
    if (known) return known
    const entry: Entry = {
      checkedAt: 0,
      lastOk: undefined,
      lastError: undefined,
      failures: 0,
      attempts: 0,
      nextAttempt: 0,
      isReconnecting: false,
      isAlerted: false,
    }
    this.#entries.set(id, entry)
    return entry
  }
}
