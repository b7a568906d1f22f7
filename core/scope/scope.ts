import { Refusal, UpstreamFailure } from '../errors/error.ts'
import { Call, enterCall } from './call.ts'
import { isThenable } from './thenable.ts'

/** Undoes one registration. Called at most once. */
export type Dispose = () => void | Promise<void>
/** One line of a ledger: what was registered, such as `{ kind: 'route', label: 'GET /api/goals' }`. */
export interface Entry {
  readonly kind: string
  readonly label: string
}

/** Calls of one copy of a plugin, and how many failed because of its code. */
export interface CallCounts {
  readonly calls: number
  readonly failures: number
}

/** What running work of a retired copy may need until it ends. */
const RESOURCES: ReadonlySet<string> = new Set(['connection', 'own', 'process'])

/** Owns everything one plugin registered; closing it undoes the registrations newest first. */
export class Scope {
  readonly name: string
  #entries = new Map<Entry, Dispose>()
  #leaving = new AbortController()
  #abort = new AbortController()
  #running = 0
  #idle: (() => void)[] = []
  #state: 'open' | 'retired' | 'draining' | 'closed' = 'open'
  #calls = 0
  #failures = 0
  #onFailure: ((error: unknown) => void) | undefined

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
  get state(): 'open' | 'retired' | 'draining' | 'closed' {
    return this.#state
  }
  get counts(): CallCounts {
    return { calls: this.#calls, failures: this.#failures }
  }

  /** Called with each failure that `countFailure` counts. One listener. */
  onFailure(listener: ((error: unknown) => void) | undefined): void {
    this.#onFailure = listener
  }

  /** A call failed because of the code of the plugin: not by a refusal, another system or an abort. */
  countFailure(error: unknown): void {
    if (error instanceof Refusal || error instanceof UpstreamFailure || this.signal.aborted) return
    this.#failures++
    this.#onFailure?.(error)
  }

  /** Adds a registration. Returns its undo, which may be called early and is idempotent. Throws when no longer open. */
  own(kind: string, label: string, dispose: Dispose): Dispose {
    const accepts = this.#state === 'open' || (this.#state === 'retired' && RESOURCES.has(kind))
    if (!accepts) throw new Error(`scope "${this.name}" is ${this.#state}: cannot add ${kind} ${label}`)
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
    return this.call(work)
  }

  /** The same for work that mostly ends at once, which then needs no promise: throws or returns what the work does. */
  call<T>(work: () => Promise<T> | T): Promise<T> | T {
    const call = new Call(this.name)
    const leave = this.#begin(call)
    let result: Promise<T> | T
    try {
      result = call.within(work)
    } catch (error) {
      this.countFailure(error)
      leave()
      throw error
    }
    if (isThenable(result)) return this.#ended(result, leave)
    leave()
    return result
  }

  async #ended<T>(running: PromiseLike<T>, leave: () => void): Promise<T> {
    try {
      return await running
    } catch (error) {
      this.countFailure(error)
      throw error
    } finally {
      leave()
    }
  }

  #begin(call: Call): () => void {
    this.#running++
    this.#calls++
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
   * Announces the end and removes what others can reach; running work goes on. Waits a moment for work that ends at
   * once. Returns whether all has ended. `close` must follow. Throws like `close`.
   */
  async retire(graceMs: number): Promise<boolean> {
    if (this.#state !== 'open') return this.#running === 0
    this.#state = 'retired'
    this.leave()
    const failures = await this.#undo(({ kind }) => !RESOURCES.has(kind))
    await this.#drain(graceMs)
    if (failures.length > 0) throw new AggregateError(failures, `plugin "${this.name}" did not unload cleanly`)
    return this.#running === 0
  }

  /** Settles when nothing runs, when the time is over, or when the scope closes. */
  idle(ms: number): Promise<void> {
    return this.#drain(ms)
  }

  /**
   * Drains, aborts, drains again and undoes the ledger newest first. Every undo runs, whatever fails before it;
   * the failures are thrown together at the end as an `AggregateError`.
   */
  async close(drainMs: number): Promise<void> {
    if (this.#state === 'draining' || this.#state === 'closed') return
    if (this.#state === 'retired') for (const wake of this.#idle.splice(0)) wake()
    this.#state = 'draining'
    this.leave()
    await this.#drain(drainMs)
    this.#abort.abort(new Error(`plugin "${this.name}" unloaded`))
    await this.#drain(drainMs)
    const late = this.#running > 0 ? [new Error(`${this.#running} calls ignored the abort signal`)] : []
    const failures = [...late, ...(await this.#undo(() => true))]
    this.#state = 'closed'
    if (failures.length > 0) throw new AggregateError(failures, `plugin "${this.name}" did not unload cleanly`)
  }

  /** Undoes entries newest first. Returns the failures. */
  async #undo(concerns: (entry: Entry) => boolean): Promise<readonly unknown[]> {
    const failures: unknown[] = []
    for (const [entry, undo] of [...this.#entries].toReversed()) {
      if (!concerns(entry)) continue
      try {
        await undo()
      } catch (error) {
        failures.push(error)
      }
    }
    return failures
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
