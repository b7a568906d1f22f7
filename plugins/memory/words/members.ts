import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Narrowing } from './scopes.ts'
import type { WordStore } from './store.ts'

/** Among fewer the marks are gone through in no time. */
const MIN_MEMBERS = 2_000
/** Where those of a search are a smaller share of the index, most of what is found without their marks is none of them. */
const MIN_SHARE = 0.5
/** Searches of which the numbers are kept, those that were used last: a bit for each memory of the index. */
const MAX_KEPT = 20
/** Numbers that are read before others have their turn. */
const SLICE = 2_000

/** Numbers of the index, a bit each. */
export class Members {
  /** All up to this one are known. */
  until = 0
  #bits = new Uint8Array(0)

  has(number: number): boolean {
    return ((this.#bits[number >>> 3] ?? 0) & (1 << (number & 7))) !== 0
  }
  add(numbers: readonly number[], until: number): void {
    if (until >>> 3 >= this.#bits.length) {
      const bits = new Uint8Array(Math.max(2 * this.#bits.length, (until >>> 3) + 1))
      bits.set(this.#bits)
      this.#bits = bits
    }
    for (const number of numbers) {
      const at = number >>> 3
      this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (number & 7))
    }
    this.until = until
  }
}

/**
 * To which memories a search is narrowed, where these are most of an index of FTS5: to go through their marks for each
 * word takes longer than all else. What was read stays true: a number is given once and keeps its marks, and what is
 * added later has a larger one. What the reader may see is decided by the rows all the same.
 */
export class MemberSets {
  readonly #store: WordStore
  /** By narrowing; the one that was used last comes last. */
  readonly #kept = new Map<string, Members>()
  constructor(store: WordStore) {
    this.#store = store
  }

  /** `undefined` where the marks do it. `total`: how many there are; `newest`: the largest number of the index now. */
  async of(narrowing: Narrowing, total: number, newest: number): Promise<Members | undefined> {
    if (!this.#store.isInOrder || narrowing.anyOf.length + narrowing.allOf.length === 0) return undefined
    if (total < MIN_MEMBERS || total < MIN_SHARE * newest) return undefined
    const key = JSON.stringify(narrowing)
    const members = this.#kept.get(key) ?? new Members()
    this.#kept.delete(key)
    this.#kept.set(key, members)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT) break
      this.#kept.delete(oldest)
    }
    while (members.until < newest) {
      const numbers = await this.#store.numbers(narrowing, members.until, SLICE)
      const last = numbers.length < SLICE ? newest : (numbers.at(-1) ?? newest)
      // Another search may have read further meanwhile.
      members.add(numbers, Math.max(members.until, last))
      if (members.until < newest) await nextTurn()
    }
    return members
  }
}
