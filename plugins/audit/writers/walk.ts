import { digestOf, ORIGIN, writerHashOf } from '../chain.ts'
import type { Link } from '../chain.ts'
import type { ChainTip } from './store.ts'

/** What is wrong with the chain of a writer. */
export interface WriterProblem {
  readonly reason: string
  readonly writer: string
  /** The first entry of that chain that is missing or changed. */
  readonly seq: number
  /** The number of the entry where it shows; absent when that is the end. */
  readonly id?: number
}
interface Chain {
  readonly seq: number
  readonly hash: string
  readonly entries: number
}

/** Walks the chains of all writers at once: feed it the entries of the common chain in their order. */
export class WriterWalk {
  readonly #chains = new Map<string, Chain>()
  readonly #tips: ReadonlyMap<string, ChainTip>
  readonly #reached = new Set<string>()
  readonly #isWhole: boolean
  #problem: WriterProblem | undefined

  /** `tips`: what must be there at least. `isWhole`: no entry was dropped for its age, so chains begin at 1. */
  constructor(tips: readonly ChainTip[], isWhole: boolean) {
    this.#tips = new Map(tips.map((tip) => [tip.writer, tip]))
    this.#isWhole = isWhole
  }

  /** By writer: the newest entry, and how many there are. */
  get chains(): ReadonlyMap<string, Chain> {
    return this.#chains
  }

  add(link: Link): void {
    const { writer, writer_hash: hash } = link
    if (!writer) return
    const seq = Number(link.seq)
    const last = this.#chains.get(writer) ?? (this.#isWhole ? { seq: 0, hash: ORIGIN, entries: 0 } : undefined)
    this.#chains.set(writer, { seq, hash: hash ?? '', entries: (last?.entries ?? 0) + 1 })
    const tip = this.#tips.get(writer)
    if (tip && seq === tip.seq && hash === tip.hash) this.#reached.add(writer)
    // What the oldest one follows was dropped.
    if (!last || this.#problem) return
    if (seq !== last.seq + 1)
      this.#problem = {
        reason: 'an entry was removed from the chain of its writer before it got its number',
        writer,
        seq: Math.min(seq, last.seq + 1),
        id: link.id,
      }
    else if (hash !== writerHashOf({ writer, seq }, last.hash, digestOf(link)))
      this.#problem = { reason: 'an entry was changed before it got its number', writer, seq, id: link.id }
  }

  /** Ask when all entries were added. */
  problem(): WriterProblem | undefined {
    return this.#problem ?? this.#missingEnd()
  }
  #missingEnd(): WriterProblem | undefined {
    for (const { writer, seq: expected } of this.#tips.values()) {
      if (this.#reached.has(writer)) continue
      const seq = this.#chains.get(writer)?.seq ?? 0
      return seq < expected
        ? { reason: 'the newest entries of a writer were removed', writer, seq: seq + 1 }
        : { reason: 'the record of how far a writer got was changed', writer, seq: expected }
    }
    return undefined
  }
}
