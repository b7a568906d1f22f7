import type { Clock } from 'svc/internal'

/** Requests and tools of this process that wait for the end of a task. */
export class Waiters {
  readonly #clock: Clock
  readonly #waiting = new Map<string, Set<() => void>>()
  constructor(clock: Clock) {
    this.#clock = clock
  }

  wake(id: string): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve()
  }

  /** Settles with the next `wake`, when the time is up or the signal aborts. */
  next(id: string, ms: number, signal: AbortSignal): { readonly promise: Promise<void>; readonly cancel: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = this.#waiting.get(id) ?? new Set()
    this.#waiting.set(id, waiting)
    const end = (): void => {
      stop()
      signal.removeEventListener('abort', end)
      waiting.delete(end)
      if (waiting.size === 0) this.#waiting.delete(id)
      resolve()
    }
    const stop = this.#clock.after(ms, end)
    signal.addEventListener('abort', end, { once: true })
    waiting.add(end)
    if (signal.aborted) end()
    return { promise, cancel: end }
  }
}
