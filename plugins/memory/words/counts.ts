import type { Narrowing } from './scopes.ts'
import type { Alternatives, WordStore } from './store.ts'

/** Up to so many are counted each time. */
const MAX_COUNTED = 1_000
/** Counts that are kept, of words that more memories have, and of agents with more memories. */
const MAX_KEPT = 2_000
/** A kept count that may have grown by this share is counted anew. */
const MAX_GROWN = 0.1
const MAX_AGE_MS = 300_000

interface Kept {
  readonly count: number
  readonly newest: number
  readonly at: number
}

/**
 * How many memories have a word. Large numbers are kept for some minutes: they only say how much a word weighs, to which
 * a few more or less make no difference.
 */
export class WordCounts {
  readonly #store: WordStore
  readonly #now: () => number
  /** The one that was used last comes last. */
  readonly #kept = new Map<string, Kept>()
  constructor(store: WordStore, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Without words: how many there are. `newest`: the largest number of the index now. */
  async of(words: readonly Alternatives[], narrowing: Narrowing, newest: number): Promise<number> {
    const key = JSON.stringify([words, narrowing])
    const kept = this.#kept.get(key)
    if (kept && this.#now() - kept.at < MAX_AGE_MS && newest - kept.newest < kept.count * MAX_GROWN) {
      this.#keep(key, kept)
      return kept.count
    }
    this.#kept.delete(key)
    const few = await this.#store.count(words, narrowing, MAX_COUNTED)
    if (few < MAX_COUNTED) return few
    const count = await this.#store.count(words, narrowing, Number.MAX_SAFE_INTEGER)
    this.#keep(key, { count, newest, at: this.#now() })
    return count
  }

  /** What is kept of it. Nothing is kept of what few have. */
  known(words: readonly Alternatives[], narrowing: Narrowing): number | undefined {
    return this.#kept.get(JSON.stringify([words, narrowing]))?.count
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    if (this.#kept.size <= MAX_KEPT) return
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest)
      return
    }
  }
}
