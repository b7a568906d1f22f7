import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Settings } from '../config.ts'
import type { FoundMemory, Memory, MemoryQuery, NewMemory } from '../contract.ts'
import { EVERYTHING } from '../entries/access.ts'
import type { ReadScope } from '../entries/access.ts'
import { strengthOf } from '../entries/decay.ts'
import type { MemoryStore } from '../entries/store.ts'
import { narrowingLike, narrowingOf } from '../words/scopes.ts'
import type { WordMatches, WordScore, WordSearch } from '../words/search.ts'
import { ownersOf } from '../vectors/owner.ts'
import type { NearMemory, VectorSearch } from '../vectors/search.ts'
import type { Wanted } from '../vectors/signs.ts'
import type { Among, SignStore } from '../vectors/store.ts'
import { cosine } from '../vectors/vector.ts'
import { plainly, readQuestion } from '../words/question.ts'
import { wordsOf } from '../words/words.ts'

/** Candidates of each kind, of which the rows are read. */
const CANDIDATES = 30
/** Of reciprocal rank fusion: how little the first ranks differ. */
const RANK_OFFSET = 60
/** How much of a score depends on how strong the memory is. */
const STRENGTH_SHARE = 0.3

/** A vector and the model that made it: only those of one model are compared. */
export interface QuestionVector {
  readonly model: string
  /** It compares words and parts of words. */
  readonly isEmbedded: boolean
  readonly vector: Float32Array
}
export interface RetrievalDeps {
  readonly store: MemoryStore
  readonly signs: SignStore
  readonly vectors: VectorSearch
  readonly words: WordSearch
  readonly settings: Settings
  readonly now: () => number
  /** `undefined` when there is none in time. Never rejects. */
  readonly embedQuestion: (text: string, signal: AbortSignal | undefined) => Promise<QuestionVector | undefined>
  /** The vectors of an agent are of another model than those of questions. */
  readonly outdated: (agentId: string) => void
  /** These were found for somebody. */
  readonly used: (ids: readonly string[]) => void
  readonly measured: (ms: number, found: number) => void
}

/** Finds memories by words and by vectors. */
export class Retrieval {
  readonly #deps: RetrievalDeps
  constructor(deps: RetrievalDeps) {
    this.#deps = deps
  }

  /** Only those of these agents that the scope has. */
  async search(query: MemoryQuery, scope: ReadScope, agentIds: readonly string[]): Promise<readonly FoundMemory[]> {
    const { store, settings, words, now } = this.#deps
    const begun = performance.now()
    const asked = this.#deps.embedQuestion(query.text, query.signal)
    const narrowing = narrowingOf(scope, agentIds, query.agentId !== undefined, query)
    const text = readQuestion(query.text)
    const matches = narrowing && (await words.find(text, narrowing, query, CANDIDATES, settings.min_word_match))
    const question = await asked
    const near = await this.#near(question, { scope, agentIds, filter: query }, ownersOf(scope, agentIds, query))
    const byWords = [...(matches?.best.keys() ?? [])].filter((id) => !near.has(id))
    // The rows decide: what an index has may be from before a change, and the guard stands in the statement.
    const [others, similarities, scores] = await Promise.all([
      store.matching(scope, query, byWords),
      this.#similarities(question, near, byWords),
      scoresOf(matches, [...near.keys()]),
    ])
    const at = now()
    const rated = inOrder([...memoriesOf(near), ...others]).flatMap((memory) => {
      if (memory.supersededBy !== undefined) return []
      const similarity = similarities.get(memory.id) ?? 0
      const { score, covered } = scores.get(memory.id) ?? { score: 0, covered: 0 }
      const isCovering = covered >= settings.min_word_match
      if (!isCovering && similarity < settings.min_similarity) return []
      return [{ memory: withStrength(memory, settings, at), words: score, similarity, isCovering }]
    })
    // Parts of words have to do where nothing else is known of a question.
    const isStrict = text.isQuestion && (text.isEnglish || question?.isEmbedded !== true)
    const sureSimilarity = isStrict ? settings.sure_similarity : settings.min_similarity
    const isAnswered = rated.some(({ isCovering, similarity }) => isCovering || similarity >= sureSimilarity)
    const found = isAnswered ? fuse(rated, settings.min_similarity).slice(0, query.limit) : []
    this.#deps.measured(performance.now() - begun, found.length)
    if (found.length > 0) this.#deps.used(found.map(({ memory }) => memory.id))
    return found
  }

  /** What says nearly the same for the same person at the same level, most similar first. */
  async similar(
    memory: Pick<NewMemory, 'agentId' | 'userId' | 'sessionId' | 'level' | 'content'>,
    limit: number,
  ): Promise<readonly FoundMemory[]> {
    const { store, settings, words, now } = this.#deps
    const { agentId, userId = '', sessionId = '', level, content } = memory
    const asked = this.#deps.embedQuestion(content, undefined)
    const narrowing = narrowingLike({ agentId, userId, sessionId, level })
    const { best } = await words.find(plainly(content), narrowing, {}, CANDIDATES, 0)
    const question = await asked
    const alike = { agentId, userId, sessionId, level }
    const near = await this.#near(
      question,
      { scope: EVERYTHING, agentIds: [agentId], filter: { userId, level } },
      ownersOf(EVERYTHING, [agentId], alike),
    )
    const byWords = [...best.keys()].filter((id) => !near.has(id))
    const [others, similarities] = await Promise.all([
      store.byIds(byWords),
      this.#similarities(question, near, byWords),
    ])
    return inOrder([...memoriesOf(near), ...others])
      .filter((found) => found.supersededBy === undefined && isAlike(found, alike))
      .map((found): FoundMemory => {
        const byVector = similarities.get(found.id) ?? 0
        const byWords = similarityOfWords(content, found.content)
        return {
          memory: withStrength(found, settings, now()),
          score: Math.max(byVector, byWords),
          by: [...(byWords > 0 ? (['words'] as const) : []), ...(byVector > 0 ? (['vector'] as const) : [])],
        }
      })
      .filter(({ score }) => score > 0)
      .toSorted((one, other) => other.score - one.score)
      .slice(0, limit)
  }

  /** Those whose vectors are nearest. */
  async #near(
    question: QuestionVector | undefined,
    among: Omit<Among, 'model'>,
    owners: Pick<Wanted, 'owns' | 'user'>,
  ): Promise<ReadonlyMap<string, NearMemory>> {
    if (!question) return new Map()
    const { signs, vectors, outdated } = this.#deps
    const { model, vector } = question
    // What was read of words held the others up already.
    await nextTurn()
    const found = await vectors.find(vector, { ...among, model }, owners, CANDIDATES)
    for (const agentId of await signs.outdated(among.agentIds, model)) outdated(agentId)
    return found
  }
  /** The cosines of the nearest, and of others that were found by words. */
  async #similarities(
    question: QuestionVector | undefined,
    near: ReadonlyMap<string, NearMemory>,
    others: readonly string[],
  ): Promise<ReadonlyMap<string, number>> {
    if (!question) return new Map()
    const vectors = await this.#deps.store.vectors(others, question.model)
    return new Map([
      ...[...near].map(([id, { similarity }]) => [id, similarity] as const),
      ...[...vectors].map(([id, vector]) => [id, cosine(question.vector, vector)] as const),
    ])
  }
}

const memoriesOf = (near: ReadonlyMap<string, NearMemory>): readonly Memory[] =>
  [...near.values()].map(({ memory }) => memory)
/** By their ids, so that of those that are rated the same always the same come first. */
const inOrder = (memories: readonly Memory[]): readonly Memory[] =>
  memories.toSorted((one, other) => (one.id < other.id ? -1 : 1))

interface Alike {
  readonly agentId: string
  readonly userId: string
  readonly sessionId: string
  readonly level: string
}
/** Whether a memory is kept for the same person at the same level. */
function isAlike(memory: Memory, { agentId, userId, sessionId, level }: Alike): boolean {
  const { userId: user = '', sessionId: session = '' } = memory
  const isSame = memory.agentId === agentId && memory.level === level && user === userId
  return isSame && (level !== 'session' || session === sessionId)
}

/** What the words say of all of them. */
async function scoresOf(
  matches: WordMatches | undefined,
  near: readonly string[],
): Promise<ReadonlyMap<string, WordScore>> {
  if (!matches) return new Map()
  const others = near.filter((id) => !matches.best.has(id))
  return new Map([...matches.best, ...(await matches.scoresOf(others))])
}

interface Rated {
  readonly memory: Memory
  readonly words: number
  readonly similarity: number
  /** It has enough of the words. */
  readonly isCovering: boolean
}
/** Reciprocal rank fusion of both orders; what is strong comes before what has faded. */
function fuse(rated: readonly Rated[], minSimilarity: number): readonly FoundMemory[] {
  const byWords = rated.filter(({ words }) => words > 0).toSorted((one, other) => other.words - one.words)
  const near = rated.filter(({ similarity }) => similarity > minSimilarity / 2)
  const byVector = near.toSorted((one, other) => other.similarity - one.similarity)
  const scores = new Map<string, { score: number; by: ('words' | 'vector')[] }>()
  for (const [by, order] of [['words', byWords] as const, ['vector', byVector] as const])
    for (const [rank, { memory }] of order.entries()) {
      const sum = scores.get(memory.id) ?? { score: 0, by: [] }
      sum.score += 1 / (RANK_OFFSET + rank + 1)
      sum.by.push(by)
      scores.set(memory.id, sum)
    }
  return rated
    .flatMap(({ memory }) => {
      const sum = scores.get(memory.id)
      if (!sum) return []
      return [{ memory, score: sum.score * (1 - STRENGTH_SHARE + STRENGTH_SHARE * memory.strength), by: sum.by }]
    })
    .toSorted((one, other) => other.score - one.score || (one.memory.createdAt < other.memory.createdAt ? 1 : -1))
}

function withStrength(memory: Memory, { decay_rate: rate }: Settings, now: number): Memory {
  if (memory.key !== undefined) return memory
  return { ...memory, strength: strengthOf({ ...memory, accessedAt: Date.parse(memory.accessedAt) }, rate, now) }
}

/** 1 where one contains the other, else the share of their words that both have (Jaccard). */
export function similarityOfWords(one: string, other: string): number {
  const [a, b] = [plain(one), plain(other)]
  if (a === '' || b === '') return 0
  if (` ${a} `.includes(` ${b} `) || ` ${b} `.includes(` ${a} `)) return 1
  const [words, others] = [new Set(wordsOf(one)), new Set(wordsOf(other))]
  const common = [...words].filter((word) => others.has(word)).length
  return common === 0 ? 0 : common / (words.size + others.size - common)
}
const plain = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).join(' ')
