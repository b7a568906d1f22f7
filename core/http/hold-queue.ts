import { Refusal } from '../errors/error.ts'

export interface HoldLimits {
  readonly maxRequests: number
  readonly maxMs: number
}

/** Requests for a plugin that is being replaced wait here instead of failing. */
export class HoldQueue {
  #held = new Map<string, { count: number; waiting: Set<() => void> }>()
  #waiting = 0

  /** Holds requests for the plugins until the returned function is called. Further calls of it do nothing. */
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

  isHeld(plugin: string): boolean {
    return this.#held.size > 0 && this.#held.has(plugin)
  }
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Resolves when the plugin is back. Throws `service_unavailable` when too many requests wait, when it takes too long,
   * and when the client leaves.
   */
  async wait(plugin: string, limits: HoldLimits, onLeave: (listener: () => void) => void): Promise<void> {
    const until = performance.now() + limits.maxMs
    const refusal = (): Refusal =>
      new Refusal('service_unavailable', `The plugin "${plugin}" is being replaced`, { retryAfterSecs: 1 })
    if (this.#waiting >= limits.maxRequests) throw refusal()
    this.#waiting++
    try {
      for (let held = this.#held.get(plugin); held; held = this.#held.get(plugin)) {
        const { waiting } = held
        const remaining = until - performance.now()
        if (remaining <= 0) throw refusal()
        const { promise, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, remaining)
        waiting.add(resolve)
        let left = false
        onLeave(() => {
          left = true
          resolve()
        })
        await promise
        clearTimeout(timer)
        waiting.delete(resolve)
        if (left) throw refusal()
      }
    } finally {
      this.#waiting--
    }
  }
}
