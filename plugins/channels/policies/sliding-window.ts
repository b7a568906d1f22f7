const WINDOW_MS = 60_000
const MAX_KEYS = 100_000

interface Window {
  /** When each of the last messages came. */
  times: number[]
  toldAt: number
}

/** So many messages in any 60 seconds, for each key. */
export class SlidingWindow {
  readonly #windows = new Map<string, Window>()
  readonly #now: () => number
  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether one more is within the limit; 0 is no limit. */
  take(key: string, limit: number): boolean {
    if (limit === 0) return true
    const now = this.#now()
    const window = this.#find(key, now)
    if (window.times.length >= limit) return false
    window.times.push(now)
    return true
  }
  /** Whether to tell somebody that the limit is reached: once in a window. */
  notify(key: string): boolean {
    const now = this.#now()
    const window = this.#find(key, now)
    if (now - window.toldAt < WINDOW_MS) return false
    window.toldAt = now
    return true
  }

  #find(key: string, now: number): Window {
    const window = this.#windows.get(key) ?? { times: [], toldAt: -Infinity }
    const from = window.times.findIndex((time) => time > now - WINDOW_MS)
    if (from !== 0) window.times = from === -1 ? [] : window.times.slice(from)
    // Kept in the order of use, so that the idle ones are dropped first.
    this.#windows.delete(key)
    this.#windows.set(key, window)
    if (this.#windows.size > MAX_KEYS) this.#dropOldest()
    return window
  }
  #dropOldest(): void {
    let surplus = MAX_KEYS / 100
    for (const key of this.#windows.keys()) {
      if (surplus-- <= 0) return
      this.#windows.delete(key)
    }
  }
}
