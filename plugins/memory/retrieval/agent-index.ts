import type { IndexRow } from '../entries/row.ts'

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
}
export interface Hit {
  readonly slot: number
  readonly score: number
}

/** Slots that are looked at before others have their turn. */
const SLICE = 25_000
const BITS = 32

/**
 * Vectors of the memories of one agent. Of a vector it keeps the signs of its numbers, a bit each: they say
 * which few are near, and the vectors of those are read for the exact order. A copy of rows: `retrieval.ts` keeps it up
 * to date.
 */
export class AgentIndex {
  readonly #slots: (Slot | undefined)[] = []
  readonly #slotOf = new Map<string, number>()
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
    this.#slots.push({
      id: row.id,
      userId: row.user_id,
      sessionId: row.session_id,
      level: row.level,
      category: row.category,
      tags: row.tags,
      createdAt: row.created_at,
    })
    this.#slotOf.set(row.id, at)
    if (row.model !== undefined && row.vector !== undefined) this.#setBits(at, row.model, row.vector)
  }
  remove(id: string): void {
    const at = this.#slotOf.get(id)
    if (at === undefined) return
    this.#slotOf.delete(id)
    this.#slots[at] = undefined
    if (at < this.#hasBits.length) this.#hasBits[at] = 0
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
