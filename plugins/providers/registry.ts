import { UpstreamFailure } from 'svc/sdk'
import type { ProviderClient, ProviderDriver, ProviderLink, ProviderRegistry } from 'svc/providers'
import type { Clock } from 'svc/internal'

/** A removed driver may be reloading, which takes milliseconds: calls wait this long for the reload to begin. */
const RETURN_MS = 1000
/** Between two looks at whether its plugin is still loading. */
const CHECK_MS = 100
/** A driver that does not end its calls after an abort is abandoned after this long, so that unloading goes on. */
const SETTLE_MS = 5000
/** Connections differ by section and address; far more than anyone configures. */
const MAX_CLIENTS = 200

/** A driver that is loaded, with the calls that run in it. */
export class DriverEntry {
  readonly driver: ProviderDriver
  readonly #calls = new Set<AbortController>()
  readonly #clients = new Map<string, ProviderClient>()
  #idle: (() => void) | undefined
  open = true

  constructor(driver: ProviderDriver) {
    this.driver = driver
  }

  get running(): number {
    return this.#calls.size
  }

  /** The client of one address, connected on first use. */
  client(address: string, link: () => ProviderLink<Record<string, unknown>>): ProviderClient {
    let client = this.#clients.get(address)
    if (!client) {
      if (this.#clients.size >= MAX_CLIENTS) this.#clients.clear()
      client = this.driver.connect(link())
      this.#clients.set(address, client)
    }
    return client
  }

  /** Counts a call until the returned function is called. The controller is aborted when providers as a whole go. */
  enter(controller: AbortController): () => void {
    this.#calls.add(controller)
    return () => {
      if (this.#calls.delete(controller) && this.#calls.size === 0) this.#idle?.()
    }
  }

  /** Runs one short call of the driver, counted and with a limit of time. */
  async use<T>(ms: number, work: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T> {
    outer?.throwIfAborted()
    const controller = new AbortController()
    const leave = this.enter(controller)
    const stop = (): void => controller.abort(outer?.reason)
    const { name } = this.driver
    const timer = setTimeout(
      () =>
        controller.abort(
          new UpstreamFailure(name, `${name} did not answer within ${ms / 1000} s`, {
            reason: 'timeout',
            retry: 'later',
          }),
        ),
      ms,
    )
    outer?.addEventListener('abort', stop, { once: true })
    try {
      return await work(controller.signal)
    } finally {
      clearTimeout(timer)
      outer?.removeEventListener('abort', stop)
      leave()
    }
  }

  /** Accepts no new calls. Running ones end on this code; `idle` is called after the last one. */
  retire(idle: () => void): void {
    this.open = false
    this.#idle = idle
    if (this.#calls.size === 0) idle()
  }
  /** Aborts what runs and settles when it has ended. */
  async close(clock: Clock): Promise<void> {
    this.open = false
    if (this.#calls.size === 0) return
    const gone = new UpstreamFailure(this.driver.name, `Provider ${this.driver.name} was unloaded during the call`, {
      reason: 'cut',
      retry: 'later',
    })
    const settled = Promise.withResolvers<boolean>()
    this.#idle = () => settled.resolve(true)
    const cancel = clock.after(SETTLE_MS, () => settled.resolve(false))
    for (const controller of this.#calls) controller.abort(gone)
    const clean = await settled.promise
    cancel()
    if (!clean) throw new Error(`provider ${this.driver.name}: ${this.#calls.size} calls ignored the abort signal`)
  }
}

export interface ReloadState {
  /** Whether a plugin is being loaded, which may bring a driver back. */
  readonly isRunning: () => boolean
  /** How long a call waits for that. */
  readonly maxMs: number
}

/** The drivers that are loaded, by name. */
export class DriverRegistry implements ProviderRegistry {
  readonly #clock: Clock
  readonly #entries = new Map<string, DriverEntry>()
  /** Those that went while calls ran in them. */
  readonly #retired = new Set<DriverEntry>()
  readonly #away = new Map<string, { readonly since: number; readonly back: PromiseWithResolvers<void> }>()
  readonly #changed: (name: string) => void
  readonly #reload: ReloadState

  constructor(clock: Clock, changed: (name: string) => void, reload: ReloadState) {
    this.#clock = clock
    this.#changed = changed
    this.#reload = reload
  }

  add(driver: ProviderDriver): () => Promise<void> {
    if (this.#entries.has(driver.name)) throw new Error(`provider "${driver.name}" exists already`)
    const entry = new DriverEntry(driver)
    this.#entries.set(driver.name, entry)
    this.#away.get(driver.name)?.back.resolve()
    this.#away.delete(driver.name)
    this.#changed(driver.name)
    let gone = false
    return async () => {
      if (gone) return
      gone = true
      this.#entries.delete(driver.name)
      this.#away.set(driver.name, { since: this.#clock.now(), back: Promise.withResolvers() })
      this.#retired.add(entry)
      entry.retire(() => this.#retired.delete(entry))
      this.#changed(driver.name)
    }
  }
  /** Settles when a driver that went a moment ago is back, or does not come back; at once for any other. */
  async returned(name: string): Promise<void> {
    const away = this.#away.get(name)
    if (!away) return
    let cancel = (): void => undefined
    const check = (): void => {
      const goneMs = this.#clock.now() - away.since
      if (goneMs < RETURN_MS || (goneMs < this.#reload.maxMs && this.#reload.isRunning())) {
        cancel = this.#clock.after(goneMs < RETURN_MS ? RETURN_MS - goneMs : CHECK_MS, check)
        return
      }
      if (this.#away.get(name) === away) this.#away.delete(name)
      away.back.resolve()
    }
    check()
    await away.back.promise
    cancel()
  }
  /** Ends every call, of drivers that went too. Throws when some do not let themselves be ended. */
  async close(): Promise<void> {
    for (const { back } of this.#away.values()) back.resolve()
    this.#away.clear()
    const results = await Promise.allSettled(
      [...this.#entries.values(), ...this.#retired].map((entry) => entry.close(this.#clock)),
    )
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    if (failures.length > 0)
      throw failures.length === 1
        ? failures[0]
        : new AggregateError(failures, 'several providers ignored the abort signal')
  }

  find(name: string): DriverEntry | undefined {
    return this.#entries.get(name)
  }
  list(): readonly DriverEntry[] {
    return [...this.#entries.values()]
  }
}
