import type { IndexRow } from '../entries/row.ts'
import { wordsOf } from './words.ts'

/** What is known of a memory without reading its row. */
export interface Slot {
  readonly id: string
  readonly userId: string
  readonly sessionId: string
  readonly level: string
  readonly category: string | undefined
  /** JSON. */
  readonly tags: string
  readonly createdAt: string
  /** In words. */
  readonly length: number
}
interface Posting {
  /** Ascending. */
  readonly slots: number[]
  readonly counts: number[]
}
export interface Hit {
  readonly slot: number
  readonly score: number
}

/** BM25: how soon a repeated word counts no more, and how much a long text is held against it. */
const K1 = 1.2
const B = 0.75
/** Slots that are looked at before others have their turn. */
const SLICE = 25_000
const BITS = 32

/**
 * Words and vectors of the memories of one agent. Of a vector it keeps the signs of its numbers, a bit each: they say
 * which few are near, and the vectors of those are read for the exact order. A copy of rows: `retrieval.ts` keeps it up
 * to date.
 */
export class AgentIndex {
  readonly #slots: (Slot | undefined)[] = []
  readonly #slotOf = new Map<string, number>()
  readonly #words = new Map<string, Posting>()
  #length = 0
  #bits = new Uint32Array(0)
  #hasBits = new Uint8Array(0)
  #width = 0
  /** The model of the vectors it holds; vectors of others are left out. */
  model: string | undefined

  get size(): number {
    return this.#slotOf.size
  }
  /** Places of deleted ones are not used again: with many of them it is built anew. */
  get isWorn(): boolean {
    return this.#slots.length > 1_000 && this.#slots.length > this.size * 2
  }
  slot(at: number): Slot | undefined {
    return this.#slots[at]
  }

  /** Replaces what it has of this memory. */
  set(row: IndexRow): void {
    this.remove(row.id)
    const at = this.#slots.length
    const words = wordsOf(row.key === undefined ? row.content : `${row.key} ${row.content}`)
    this.#slots.push({
      id: row.id,
      userId: row.user_id,
      sessionId: row.session_id,
      level: row.level,
      category: row.category,
      tags: row.tags,
      createdAt: row.created_at,
      length: words.length,
    })
    this.#slotOf.set(row.id, at)
    this.#length += words.length
    const counts = new Map<string, number>()
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    for (const [word, count] of counts) {
      let posting = this.#words.get(word)
      if (posting === undefined) this.#words.set(word, (posting = { slots: [], counts: [] }))
      posting.slots.push(at)
      posting.counts.push(count)
    }
    if (row.model !== undefined && row.vector !== undefined) this.#setBits(at, row.model, row.vector)
  }
  /** Leaves none of its words behind. */
  remove(id: string): void {
    const at = this.#slotOf.get(id)
    if (at === undefined) return
    this.#slotOf.delete(id)
    this.#length -= this.#slots[at]?.length ?? 0
    this.#slots[at] = undefined
    if (at < this.#hasBits.length) this.#hasBits[at] = 0
    for (const [word, posting] of this.#words) {
      const place = placeOf(posting.slots, at)
      if (posting.slots[place] !== at) continue
      posting.slots.splice(place, 1)
      posting.counts.splice(place, 1)
      if (posting.slots.length === 0) this.#words.delete(word)
    }
  }

  /** Whether the memory in this slot has the word. */
  has(word: string, slot: number): boolean {
    const slots = this.#words.get(word)?.slots
    return slots !== undefined && slots[placeOf(slots, slot)] === slot
  }
  /** The weight of a word here: the rarer, the heavier. One that no memory has weighs what one memory alone has. */
  weightOf(word: string): number {
    const having = this.#words.get(word)?.slots.length ?? 1
    return Math.log(1 + (this.size - having + 0.5) / (having + 0.5))
  }

  /** The best by their words, best first. `accepts` is asked of candidates only. */
  async byWords(
    words: readonly string[],
    limit: number,
    accepts: (slot: Slot) => boolean,
    pause: () => Promise<void>,
  ): Promise<readonly Hit[]> {
    const scores = new Float32Array(this.#slots.length)
    const average = this.#length / Math.max(1, this.size)
    let looked = 0
    for (const word of new Set(words)) {
      const posting = this.#words.get(word)
      if (!posting) continue
      const weight = this.weightOf(word)
      for (let at = 0; at < posting.slots.length; at++) {
        const slot = posting.slots[at] ?? 0
        const count = posting.counts[at] ?? 0
        const length = this.#slots[slot]?.length ?? 0
        scores[slot] =
          (scores[slot] ?? 0) + (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / average))
        if (++looked % SLICE === 0) await pause()
      }
    }
    return this.#best(scores, limit, accepts, pause)
  }

  /** Those whose vectors have most signs in common with this one, best first. */
  async byVector(
    vector: Float32Array,
    limit: number,
    accepts: (slot: Slot) => boolean,
    pause: () => Promise<void>,
  ): Promise<readonly Hit[]> {
    const wanted = signsOf(vector)
    const width = this.#width
    if (width === 0 || wanted.length !== width) return []
    const scores = new Float32Array(this.#slots.length)
    const bits = this.#bits
    for (let slot = 0; slot < scores.length; slot++) {
      if (this.#hasBits[slot] === 1) {
        let apart = 0
        const from = slot * width
        for (let at = 0; at < width; at++) apart += countBits((bits[from + at] ?? 0) ^ (wanted[at] ?? 0))
        scores[slot] = width * BITS - apart
      }
      if ((slot + 1) % SLICE === 0) await pause()
    }
    return this.#best(scores, limit, accepts, pause)
  }

  async #best(
    scores: Float32Array,
    limit: number,
    accepts: (slot: Slot) => boolean,
    pause: () => Promise<void>,
  ): Promise<readonly Hit[]> {
    const best: Hit[] = []
    let least = 0
    for (let slot = 0; slot < scores.length; slot++) {
      const score = scores[slot] ?? 0
      if (score > least) {
        const known = this.#slots[slot]
        if (known && accepts(known)) least = insert(best, { slot, score }, limit)
      }
      if ((slot + 1) % SLICE === 0) await pause()
    }
    return best
  }

  #setBits(at: number, model: string, vector: Uint8Array): void {
    const width = Math.ceil(vector.length / BITS)
    if (this.model !== model || this.#width !== width) {
      if (this.model !== undefined && this.#width !== 0 && this.model !== model) return
      this.model = model
      this.#width = width
    }
    if ((at + 1) * width > this.#bits.length) {
      const places = Math.max(64, at + 1, Math.floor(at * 1.5))
      const bits = new Uint32Array(places * width)
      bits.set(this.#bits)
      this.#bits = bits
      const has = new Uint8Array(places)
      has.set(this.#hasBits)
      this.#hasBits = has
    }
    const numbers = new Int8Array(vector.buffer, vector.byteOffset, vector.length)
    this.#bits.set(signsOf(numbers), at * width)
    this.#hasBits[at] = 1
  }
}

/** Keeps the list sorted and short; says what a further score has to exceed. */
function insert(best: Hit[], hit: Hit, limit: number): number {
  let at = best.length
  while (at > 0 && (best[at - 1]?.score ?? 0) < hit.score) at--
  best.splice(at, 0, hit)
  if (best.length > limit) best.pop()
  return best.length < limit ? 0 : (best.at(-1)?.score ?? 0)
}
/** Where a number is in an ascending list, or would be. */
function placeOf(list: readonly number[], wanted: number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle] ?? 0) < wanted) low = middle + 1
    else high = middle
  }
  return low
}
function signsOf(vector: Float32Array | Int8Array): Uint32Array {
  const bits = new Uint32Array(Math.ceil(vector.length / BITS))
  for (let at = 0; at < vector.length; at++)
    if ((vector[at] ?? 0) > 0) bits[at >>> 5] = (bits[at >>> 5] ?? 0) | (1 << (at & 31))
  return bits
}
function countBits(value: number): number {
  let bits = value - ((value >>> 1) & 0x5555_5555)
  bits = (bits & 0x3333_3333) + ((bits >>> 2) & 0x3333_3333)
  return (((bits + (bits >>> 4)) & 0x0f0f_0f0f) * 0x0101_0101) >>> 24
}
