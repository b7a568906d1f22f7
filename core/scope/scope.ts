import { Call, enterCall } from './call.ts'

/** Undoes one registration. Called at most once. */
export type Dispose = () => void | Promise<void>
/** One line of a ledger: what was registered, such as `{ kind: 'route', label: 'GET /api/goals' }`. */
export interface Entry {
  readonly kind: string
  readonly label: string
}

/** Owns everything one plugin registered; closing it undoes the registrations newest first. */
export class Scope {
  readonly name: string
  #entries = new Map<Entry, Dispose>()
  #leaving = new AbortController()
  #abort = new AbortController()
  #running = 0
  #idle: (() => void)[] = []
  #state: 'open' | 'draining' | 'closed' = 'open'

  constructor(name: string) {
    this.name = name
  }

  /** Aborts before the drain of `close`, for work that only waits. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }
  /** Aborts after the drain of `close`, for work that did not end by itself. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }
  /** How many calls of `run` and `enter` have not ended yet. */
  get running(): number {
    return this.#running
  }
  get state(): 'open' | 'draining' | 'closed' {
    return this.#state
  }

  /** Adds a registration. Returns its undo, which may be called early and is idempotent. Throws when no longer open. */
  own(kind: string, label: string, dispose: Dispose): Dispose {
    if (this.#state !== 'open') throw new Error(`scope "${this.name}" is ${this.#state}: cannot add ${kind} ${label}`)
    const entry: Entry = { kind, label }
    let undo: Promise<void> | undefined
    const once = (): Promise<void> =>
      (undo ??= (async () => {
        this.#entries.delete(entry)
        await dispose()
      })())
    this.#entries.set(entry, once)
    return once
  }

  /** Marks work as running until the returned function is called (once; further calls do nothing). */
  enter(): () => void {
    const call = new Call(this.name)
    enterCall(call)
    return this.#begin(call)
  }

  /** Runs work the scope must wait for before it closes. */
  async run<T>(work: () => Promise<T> | T): Promise<T> {
    const call = new Call(this.name)
    const leave = this.#begin(call)
    try {
      return await call.within(work)
    } finally {
      leave()
    }
  }

  #begin(call: Call): () => void {
    this.#running++
    return () => {
      if (call.ended) return
      call.end()
      if (--this.#running === 0) for (const wake of this.#idle.splice(0)) wake()
    }
  }

  ledger(): readonly Entry[] {
    return [...this.#entries.keys()]
  }

  /** Announces `close`. The scope still accepts registrations and work. */
  leave(): void {
    this.#leaving.abort(new Error(`plugin "${this.name}" is being unloaded`))
  }

  /**
   * Drains, aborts, drains again and undoes the ledger newest first. Every undo runs, whatever fails before it;
   * the failures are thrown together at the end as an `AggregateError`.
   */
  async close(drainMs: number): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    this.leave()
    await this.#drain(drainMs)
    this.#abort.abort(new Error(`plugin "${this.name}" unloaded`))
    await this.#drain(drainMs)
    const failures: unknown[] = []
    if (this.#running > 0) failures.push(new Error(`${this.#running} calls ignored the abort signal`))
    for (const undo of [...this.#entries.values()].toReversed()) {
      try {
        await undo()
      } catch (error) {
        failures.push(error)
      }
    }
    this.#state = 'closed'
    if (failures.length > 0) throw new AggregateError(failures, `plugin "${this.name}" did not unload cleanly`)
  }

  async #drain(ms: number): Promise<void> {
    if (this.#running === 0) return
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms)
    })
    await Promise.race([new Promise<void>((resolve) => this.#idle.push(resolve)), timeout])
    clearTimeout(timer)
  }
}
