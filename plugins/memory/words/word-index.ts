import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Statement } from 'svc/sdk'
import type { JobOutcome, Queue } from '../../queue/contract.ts'
import type { NewMemory } from '../contract.ts'
import { WORDS_LANE } from '../lazy.ts'
import { wordsOf } from './words.ts'
import { marksOf } from './scopes.ts'
import type { IndexedText, WordStore } from './store.ts'

/** Memories of one commit: what one write keeps others waiting. */
const ADDED = 100

export interface WordIndexDeps {
  readonly store: WordStore
  readonly queue: Queue
  readonly newId: () => string
}
type Text = Pick<NewMemory, 'agentId' | 'userId' | 'sessionId' | 'level' | 'category' | 'tags' | 'key' | 'content'> & {
  readonly id: string
}

/** Keeps the words of memories in the index of the database, with the memories. */
export class WordIndex {
  readonly #deps: WordIndexDeps
  #isQueued = false
  constructor(deps: WordIndexDeps) {
    this.#deps = deps
  }

  /** For the batch that adds it, behind it. */
  add(memory: Text): Statement {
    return this.#deps.store.add(toText(memory))
  }
  /** For the batch that changes its content, behind that. */
  replace(memory: Text): readonly Statement[] {
    return this.#deps.store.replace(toText(memory))
  }

  /** Adds a job where memories are not in the index: those of an older version. */
  async fillLater(): Promise<void> {
    const { store, queue, newId } = this.#deps
    if (this.#isQueued || (await store.unindexed(ADDED)).length === 0) return
    this.#isQueued = true
    try {
      await store.commit([queue.add({ lane: WORDS_LANE, id: newId(), payload: null })])
    } catch (error) {
      this.#isQueued = false
      throw error
    }
  }
  /** Makes up for a job that was lost. */
  async sweep(): Promise<void> {
    this.#isQueued = false
    await this.fillLater()
  }
  async fill(signal: AbortSignal): Promise<JobOutcome> {
    this.#isQueued = false
    for (;;) {
      signal.throwIfAborted()
      const { store } = this.#deps
      const rows = await store.unindexed(ADDED)
      if (rows.length === 0) return { outcome: 'done' }
      await store.commit(
        rows.flatMap((row) => {
          const memory = {
            id: row.id,
            agentId: row.agent_id,
            userId: row.user_id,
            sessionId: row.session_id,
            level: row.level,
            category: row.category,
            tags: row.tags,
            key: row.key,
            content: row.content,
          }
          return [store.add(toText(memory)), store.indexed(row.id, row.content)]
        }),
      )
      await nextTurn()
    }
  }
}

function toText(memory: Omit<Text, 'level'> & { readonly level: string }): IndexedText {
  const { id, agentId, userId = '', sessionId = '', level, category, tags, key, content } = memory
  return {
    memoryId: id,
    content,
    words: wordsOf(key === undefined ? content : `${key} ${content}`),
    marks: marksOf({ agentId, userId, sessionId, level, category, tags }),
  }
}
