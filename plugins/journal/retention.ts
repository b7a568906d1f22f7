import type { JournalStore } from './store.ts'

const SLICE = 200
const DAY = 86_400_000

/** Keeps the journal from growing forever. Works in slices, so that running turns do not wait for it. */
export class Retention {
  readonly #store: JournalStore
  readonly #keep: { readonly days: number; readonly traces: number }
  readonly #now: () => number
  /** Traces written since an agent's were trimmed: only those who write have something to trim. */
  readonly #written = new Map<string, number>()
  constructor(store: JournalStore, keep: { readonly days: number; readonly traces: number }, now: () => number) {
    this.#store = store
    this.#keep = keep
    this.#now = now
  }

  wrote(agentId: string, traces: number): void {
    this.#written.set(agentId, (this.#written.get(agentId) ?? 0) + traces)
  }
  forget(agentId: string): void {
    this.#written.delete(agentId)
  }
  /** Agents that wrote since theirs were trimmed. */
  get counted(): number {
    return this.#written.size
  }

  /** Those of agents that wrote so many since. */
  async trim(signal: AbortSignal, slack = Math.ceil(this.#keep.traces / 10)): Promise<void> {
    for (const [agentId, written] of this.#written) {
      if (signal.aborted) return
      if (written < slack) continue
      this.#written.delete(agentId)
      await this.#store.trimTraces(agentId, this.#keep.traces)
    }
  }
  /** Also trims every agent that wrote: removed ones, and those that write little, must not be counted forever. */
  async dropOld(signal: AbortSignal): Promise<void> {
    await this.trim(signal, 1)
    if (this.#keep.days === 0) return
    const before = new Date(this.#now() - this.#keep.days * DAY).toISOString()
    while (!signal.aborted && (await this.#store.dropEnded(before, SLICE)) === SLICE)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    if (!signal.aborted) await this.#store.dropTraces(before)
  }
}
