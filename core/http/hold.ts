import { Refusal } from '../errors/error.ts'

export interface HoldLimits {
  readonly maxRequests: number
  readonly maxMs: number
}

/** Requests for a plugin that is being replaced wait here instead of failing. */
export class Holds {
  #held = new Map<string, { count: number; waiting: Set<() => void> }>()
  #waiting = 0

  /** Holds the plugins until the returned function is called (once; further calls do nothing). */
  hold(plugins: readonly string[]): () => void {
    for (const name of plugins) {
      const held = this.#held.get(name)
      if (held) held.count++
      else this.#held.set(name, { count: 1, waiting: new Set() })
    }
    let released = false
    return () => {
      if (released) return
      released = true
      for (const name of plugins) {
        const held = this.#held.get(name)
        if (!held || --held.count > 0) continue
        this.#held.delete(name)
        for (const wake of held.waiting) wake()
      }
    }
  }

  holds(plugin: string): boolean {
    return this.#held.size > 0 && this.#held.has(plugin)
  }
  get waiting(): number {
    return this.#waiting
  }

  /** Settles when the plugin is back. Throws `service_unavailable` when too many wait already, or too long. */
  async wait(plugin: string, limits: HoldLimits, gone: (listener: () => void) => void): Promise<void> {
    const until = performance.now() + limits.maxMs
    const refusal = (): Refusal =>
      new Refusal('service_unavailable', `The plugin "${plugin}" is being replaced`, { retryAfterSecs: 1 })
    if (this.#waiting >= limits.maxRequests) throw refusal()
    this.#waiting++
    try {
      for (let held = this.#held.get(plugin); held; held = this.#held.get(plugin)) {
        const { waiting } = held
        const left = until - performance.now()
        if (left <= 0) throw refusal()
        const { promise, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, left)
        waiting.add(resolve)
        let away = false
        gone(() => {
          away = true
          resolve()
        })
        await promise
        clearTimeout(timer)
        waiting.delete(resolve)
        if (away) throw refusal()
      }
    } finally {
      this.#waiting--
    }
  }
}
