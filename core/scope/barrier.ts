import { runningCalls } from './call.ts'

/**
 * Users of a resource wait while its plugin is replaced, instead of finding nothing for some milliseconds. Work of the
 * plugins that are being replaced never waits: the replacement waits for it.
 */
export class Barrier {
  #holds = new Set<{
    readonly keys: ReadonlySet<string>
    readonly plugins: ReadonlySet<string>
    readonly released: Promise<void>
  }>()

  /** Holds these keys until the returned function is called. */
  hold(keys: Iterable<string>, plugins: Iterable<string>): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    const hold = { keys: new Set(keys), plugins: new Set(plugins), released: promise }
    this.#holds.add(hold)
    return () => {
      this.#holds.delete(hold)
      resolve()
    }
  }

  holds(key: string): boolean {
    for (const hold of this.#holds) if (hold.keys.has(key)) return true
    return false
  }

  /** What to await before using the key; `undefined` if nothing holds it or the caller must not wait. */
  wait(key: string, caller: string): Promise<void> | undefined {
    if (this.#holds.size === 0) return undefined
    for (const hold of this.#holds) {
      if (!hold.keys.has(key) || hold.plugins.has(caller)) continue
      if (runningCalls().some((call) => hold.plugins.has(call.plugin))) continue
      return hold.released
    }
    return undefined
  }
}
