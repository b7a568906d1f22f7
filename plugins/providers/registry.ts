import { UpstreamFailure } from 'svc/sdk'
import type { ProviderClient, ProviderDriver, ProviderLink, ProviderRegistry } from 'svc/providers'
import type { Clock } from './clock.ts'

/** A driver that does not end its calls after an abort is given up on after this long, so that unloading goes on. */
const SETTLE_MS = 5000
/** Connections differ by section and address; far more than anyone configures. */
const MOST_CLIENTS = 200

/** A driver that is loaded, with the calls that run in it. */
export class DriverEntry {
  readonly driver: ProviderDriver<any>
  readonly #calls = new Set<AbortController>()
  readonly #clients = new Map<string, ProviderClient>()
  #idle: (() => void) | undefined
  open = true

  constructor(driver: ProviderDriver<any>) { this.driver = driver }

  get running(): number { return this.#calls.size }

  /** The client of one address, connected on first use. */
  client(address: string, link: () => ProviderLink<unknown>): ProviderClient {
    let client = this.#clients.get(address)
    if (!client) {
      if (this.#clients.size >= MOST_CLIENTS) this.#clients.clear()
      client = this.driver.connect(link())
      this.#clients.set(address, client)
    }
    return client
  }

  /** Counts a call until the returned function is called. The controller is aborted when the driver goes. */
  enter(controller: AbortController): () => void {
    this.#calls.add(controller)
    return () => { if (this.#calls.delete(controller) && this.#calls.size === 0) this.#idle?.() }
  }

  /** Runs one short call of the driver, counted and with a limit of time. */
  async use<T>(ms: number, work: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T> {
    outer?.throwIfAborted()
    const controller = new AbortController()
    const leave = this.enter(controller)
    const stop = (): void => controller.abort(outer?.reason)
    const { name } = this.driver
    const timer = setTimeout(() => controller.abort(new UpstreamFailure(name, `${name} did not answer within ${ms / 1000} s`, { reason: 'timeout', retry: 'later' })), ms)
    outer?.addEventListener('abort', stop, { once: true })
    try { return await work(controller.signal) } finally {
      clearTimeout(timer)
      outer?.removeEventListener('abort', stop)
      leave()
    }
  }

  async close(clock: Clock): Promise<void> {
    this.open = false
    if (this.#calls.size === 0) return
    const gone = new UpstreamFailure(this.driver.name, `Provider ${this.driver.name} was unloaded during the call`, { reason: 'cut', retry: 'later' })
    const settled = Promise.withResolvers<boolean>()
    this.#idle = () => settled.resolve(true)
    const cancel = clock.after(SETTLE_MS, () => settled.resolve(false))
    for (const controller of this.#calls) controller.abort(gone)
    const clean = await settled.promise
    cancel()
    if (!clean) throw new Error(`provider ${this.driver.name}: ${this.#calls.size} calls ignored the abort signal`)
  }
}

/** The drivers that are loaded, by name. */
export class DriverRegistry implements ProviderRegistry {
  readonly #clock: Clock
  readonly #entries = new Map<string, DriverEntry>()
  readonly #changed: (name: string) => void

  constructor(clock: Clock, changed: (name: string) => void) {
    this.#clock = clock
    this.#changed = changed
  }

  add(driver: ProviderDriver<any>): () => Promise<void> {
    if (this.#entries.has(driver.name)) throw new Error(`there is a provider "${driver.name}" already`)
    const entry = new DriverEntry(driver)
    this.#entries.set(driver.name, entry)
    this.#changed(driver.name)
    let closing: Promise<void> | undefined
    return () => (closing ??= (async () => {
      this.#entries.delete(driver.name)
      this.#changed(driver.name)
      await entry.close(this.#clock)
    })())
  }

  find(name: string): DriverEntry | undefined { return this.#entries.get(name) }
  list(): readonly DriverEntry[] { return [...this.#entries.values()] }
}
