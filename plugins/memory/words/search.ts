import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MemoryFilter } from '../contract.ts'
import { WordCounts } from './counts.ts'
import { MemberSets } from './members.ts'
import type { Question, Term } from './question.ts'
import type { Narrowing } from './scopes.ts'
import type { Alternatives, TextRow, Times, WordStore } from './store.ts'

/** BM25: how soon a repeated word counts no more, and how much a long text is held against it. */
const K1 = 1.2
const B = 0.75
/** Words of a question that are looked for, a bit each of a number: the longest, which are seldom the commonest. */
const MAX_WORDS = 30
/** Of a word the newest memories that are compared. One that more have says little, and is looked for with others. */
export const MAX_HITS = 1_000
/** The same of several words together. */
const MAX_TOGETHER = 300
/** Memories whose whole text is compared. */
const MAX_SCORED = 150
/** Of common words so many are looked for two by two. */
const MAX_PAIRED = 4
/** Marks of one statement. An agent with which many share is asked for in several. */
const MAX_MARKS = 60

/** Among fewer memories a word that one has would not be rare: they are weighed as if they were so many. */
const MIN_TOTAL = 50
/** Of a memory that has another word for it. */
const ALTERNATIVE_SHARE = 0.8

/** A word of the question, with how much it says: the fewer memories have it, the more. */
interface Weighed {
  readonly words: Alternatives
  readonly weight: number
}
/** What the words of a question say about one memory. */
export interface WordScore {
  /** BM25; 0 for one that has none of them. */
  readonly score: number
  /** The share of the weight of the words of the question that it has. */
  readonly covered: number
}
export interface WordMatches {
  /** By memory, the best first. */
  readonly best: ReadonlyMap<string, WordScore>
  /** Of other memories. */
  scoresOf(memoryIds: readonly string[]): Promise<ReadonlyMap<string, WordScore>>
}

/** Finds memories by words, in the index that the database has of them. */
export class WordSearch {
  readonly #store: WordStore
  readonly #counts: WordCounts
  readonly #members: MemberSets
  constructor(store: WordStore, now: () => number) {
    this.#store = store
    this.#counts = new WordCounts(store, now)
    this.#members = new MemberSets(store)
  }

  /** Compares a bounded number of memories, however many there are. */
  async find(
    question: Question,
    narrowing: Narrowing,
    filter: MemoryFilter,
    limit: number,
    minCovered: number,
  ): Promise<WordMatches> {
    const terms = chosen(question.terms)
    const weigh = weigherOf(question)
    const known = new Map<number, number>()
    const counts = terms.map(() => 0)
    let total = 0
    if (terms.length > 0) {
      const newest = await this.#store.newest()
      for (const part of partsOf(narrowing)) {
        const found = await this.#collect({ terms, weigh, narrowing: part, filter, newest, minCovered }, known)
        for (const [at, count] of found.counts.entries()) counts[at] = (counts[at] ?? 0) + count
        total += found.total
      }
    }
    const weighed = terms.map((term, at): Weighed => ({
      words: term.words,
      weight: weigh(term, counts[at] ?? 0, total),
    }))
    await nextTurn()
    const rows = await this.#store.texts(mostCovering(known, weighed))
    const average = rows.reduce((sum, { words: text }) => sum + lengthOf(text), 0) / Math.max(1, rows.length)
    const score = (row: TextRow): readonly [string, WordScore] => [row.memory_id, scoreOf(row, weighed, average)]
    const best = rows
      .map(score)
      .filter(([, found]) => found.score > 0)
      .toSorted(([, one], [, other]) => other.score - one.score)
      .slice(0, limit)
    return {
      best: new Map(best),
      scoresOf: async (memoryIds) => new Map((await this.#store.textsOf(memoryIds)).map(score)),
    }
  }

  /** Notes which memories have which words. Says how many have each, and how many there are. */
  async #collect(
    { terms, weigh, narrowing, filter, newest, minCovered }: Lookup,
    known: Map<number, number>,
  ): Promise<{ readonly counts: readonly number[]; readonly total: number }> {
    const total = await this.#counts.of([], narrowing, newest)
    // A time narrows the rows that are looked at: there the marks come first.
    const isTimed = filter.since !== undefined || filter.until !== undefined
    const members = isTimed ? undefined : await this.#members.of(narrowing, total, newest)
    const note = async (sought: readonly Places[], limit: number): Promise<readonly number[]> => {
      if (sought.length === 0) return []
      const together = sought.map(({ places, expected }) => ({
        words: places.map((at) => terms[at]?.words ?? []),
        expected,
      }))
      const hits = await this.#store.hits(together, { narrowing, times: filter, limit, newest, total, members })
      for (const [at, ids] of hits.entries()) {
        const bits = (sought[at]?.places ?? []).reduce((all, place) => all | (1 << place), 0)
        for (const id of ids) known.set(id, (known.get(id) ?? 0) | bits)
      }
      return hits.map(({ length }) => length)
    }
    const single = terms.map(({ words }, at) => ({
      places: [at],
      expected: this.#counts.known([words], narrowing) ?? 0,
    }))
    const counts = [...(await note(single, MAX_HITS))]
    const common = counts.flatMap((count, at) => (count < MAX_HITS ? [] : [at]))
    for (const at of common) counts[at] = await this.#counts.of([terms[at]?.words ?? []], narrowing, newest)
    await nextTurn()
    const weights = terms.map((term, at) => weigh(term, counts[at] ?? 0, total))
    const sum = (places: readonly number[]): number => places.reduce((all, at) => all + (weights[at] ?? 0), 0)
    // What has none but these words is no answer then.
    if (sum(common) < minCovered * sum([...weights.keys()])) return { counts, total }
    const combinations = combinationsOf(common, counts).map((places) => ({
      places,
      // As if they had nothing to do with each other.
      expected: places.reduce((all, at) => (all * (counts[at] ?? 0)) / total, total),
    }))
    await note(combinations, MAX_TOGETHER)
    return { counts, total }
  }
}

/** Words of a question by their places. */
interface Places {
  readonly places: readonly number[]
  /** How many memories may have them together. */
  readonly expected: number
}
interface Lookup {
  readonly terms: readonly Term[]
  readonly weigh: Weigher
  readonly narrowing: Narrowing
  readonly filter: Times
  /** The largest number of the index. */
  readonly newest: number
  /** The share of the weight of the words that an answer has. */
  readonly minCovered: number
}

function chosen(terms: readonly Term[]): readonly Term[] {
  if (terms.length <= MAX_WORDS) return terms
  const lengthOfWord = ({ words: [word = ''] }: Term): number => word.length
  return terms.toSorted((one, other) => lengthOfWord(other) - lengthOfWord(one)).slice(0, MAX_WORDS)
}

function partsOf({ anyOf, allOf }: Narrowing): readonly Narrowing[] {
  if (anyOf.length <= MAX_MARKS) return [{ anyOf, allOf }]
  const parts: Narrowing[] = []
  for (let from = 0; from < anyOf.length; from += MAX_MARKS)
    parts.push({ anyOf: anyOf.slice(from, from + MAX_MARKS), allOf })
  return parts
}

/** Common words that are looked for together: all of them, and the rarest two by two. */
function combinationsOf(common: readonly number[], counts: readonly number[]): readonly (readonly number[])[] {
  if (common.length < 2) return []
  const rarest = common.toSorted((one, other) => (counts[one] ?? 0) - (counts[other] ?? 0)).slice(0, MAX_PAIRED)
  const pairs = rarest.flatMap((one, at) => rarest.slice(at + 1).map((other) => [one, other]))
  return common.length > 2 ? [common, ...pairs] : pairs
}

type Weigher = (term: Term, count: number, total: number) => number
/**
 * The rarer, the heavier. What no memory has is heaviest, but where it is not known which words say little it weighs
 * what one memory alone has.
 */
function weigherOf({ isEnglish }: Question): Weigher {
  return ({ share, unseenShare }, count, total) => {
    const having = isEnglish ? count : Math.max(1, count)
    const rarity = Math.log(1 + (Math.max(MIN_TOTAL, having, total) - having + 0.5) / (having + 0.5))
    return rarity * (count === 0 ? unseenShare : share)
  }
}

/** Those with the heaviest words, of the same the newest. */
function mostCovering(known: ReadonlyMap<number, number>, words: readonly Weighed[]): readonly number[] {
  const weightOfBits = (bits: number): number =>
    words.reduce((sum, each, at) => ((bits & (1 << at)) === 0 ? sum : sum + each.weight), 0)
  // Thousands of memories have one of some ten sets of words: only what is taken is put in order.
  const byBits = Map.groupBy(known, ([, bits]) => bits)
  const byWeight = Map.groupBy(byBits, ([bits]) => weightOfBits(bits))
  const found: number[] = []
  for (const [, sets] of [...byWeight].toSorted(([one], [other]) => other - one)) {
    if (found.length >= MAX_SCORED) break
    found.push(...sets.flatMap(([, hits]) => hits.map(([id]) => id)).toSorted((one, other) => other - one))
  }
  return found.slice(0, MAX_SCORED)
}

function scoreOf({ words: text }: TextRow, words: readonly Weighed[], average: number): WordScore {
  const counts = new Map<string, number>()
  let length = 0
  for (const word of text === '' ? [] : text.split(' ')) {
    counts.set(word, (counts.get(word) ?? 0) + 1)
    length++
  }
  let [score, all, covered] = [0, 0, 0]
  for (const { words: alternatives, weight } of words) {
    all += weight
    const found = alternatives.findIndex((word) => counts.has(word))
    if (found < 0) continue
    covered += weight
    const count = counts.get(alternatives[found] ?? '') ?? 0
    const said = weight * (found === 0 ? 1 : ALTERNATIVE_SHARE)
    score += (said * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / Math.max(1, average)))
  }
  return { score, covered: all === 0 ? 0 : covered / all }
}

/** In words. */
function lengthOf(text: string): number {
  if (text === '') return 0
  let length = 1
  for (let at = text.indexOf(' '); at !== -1; at = text.indexOf(' ', at + 1)) length++
  return length
}
