import type { JobTimer } from './timer.ts'

interface Entry {
  readonly run: () => Promise<void>
  /** The first time after this one, in milliseconds since 1970. */
  readonly next: (after: number) => number
  dueMs: number
}
/** A clock that stands still until a test moves it. */
export class ManualTimer implements JobTimer {
  #nowMs: number
  readonly #entries = new Set<Entry>()
  #opening: Promise<unknown> = Promise.resolve()

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  get nowMs(): number {
    return this.#nowMs
  }

  every(ms: number, run: () => Promise<void>): () => void {
    return this.#add(run, (after) => after + ms)
  }

  cron(expression: string, run: () => Promise<void>, onError: (error: unknown) => void): () => void {
    let remove: (() => void) | undefined
    let isStopped = false
    const open = async (): Promise<void> => {
      const { Cron } = await import('croner')
      const pattern = new Cron(expression, { timezone: 'UTC', mode: '5-part', paused: true })
      const next = (after: number): number => pattern.nextRun(new Date(after))?.getTime() ?? Number.POSITIVE_INFINITY
      if (!isStopped) remove = this.#add(run, next)
    }
    this.#opening = Promise.all([this.#opening, open().catch(onError)])
    return () => {
      isStopped = true
      remove?.()
    }
  }

  /** Moves on, and runs the jobs that are due, each at its time and in their order. Settles when they have ended. */
  async advance(ms: number): Promise<void> {
    await this.#opening
    const end = this.#nowMs + ms
    for (;;) {
      const [entry] = [...this.#entries].filter(({ dueMs }) => dueMs <= end).sort((a, b) => a.dueMs - b.dueMs)
      if (!entry) break
      this.#nowMs = entry.dueMs
      entry.dueMs = entry.next(entry.dueMs)
      await entry.run()
    }
    this.#nowMs = end
  }

  #add(run: () => Promise<void>, next: (after: number) => number): () => void {
    const entry: Entry = { run, next, dueMs: next(this.#nowMs) }
    this.#entries.add(entry)
    return () => {
      this.#entries.delete(entry)
    }
  }
}
