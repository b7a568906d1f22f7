import { defineService, notify } from 'svc/sdk'

export const MEMORY_LEVELS = ['user', 'session', 'agent'] as const
/** How far a memory reaches: one person's, one session's, or the agent's own. */
export type MemoryLevel = (typeof MEMORY_LEVELS)[number]

export const SOURCE_KINDS = ['message', 'tool', 'file', 'person', 'import', 'agent'] as const
/** Where a memory comes from. */
export interface MemorySource {
  readonly kind: (typeof SOURCE_KINDS)[number]
  readonly turnId?: string | undefined
  readonly messageId?: string | undefined
  readonly sessionId?: string | undefined
  readonly tool?: string | undefined
  readonly file?: string | undefined
  readonly person?: string | undefined
  /** Labels as tools have them, such as `ExternalNetwork`. Empty: the person's own word. */
  readonly labels: readonly string[]
}

export interface NewMemory {
  readonly agentId: string
  /** Whom it is about and for: nobody else gets it. Absent: the owner of the daemon, and at level `agent` everybody. */
  readonly userId?: string | undefined
  /** Required at level `session`. */
  readonly sessionId?: string | undefined
  readonly content: string
  readonly level: MemoryLevel
  readonly category?: string | undefined
  /** From 0 to 1. */
  readonly confidence: number
  readonly tags: readonly string[]
  readonly source: MemorySource
  /** The name of a note, which is unique in its agent: a second one of that name replaces the content. */
  readonly key?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** The memory of the same agent that this one replaces: it stays in the history and is not found any more. */
  readonly supersedes?: string | undefined
  /** ISO 8601 UTC: when it was learnt elsewhere, for what is brought over. Absent: now. */
  readonly createdAt?: string | undefined
  /** Makes a repeat of the same write no second memory, such as the id of a turn and a number. */
  readonly idempotencyKey?: string | undefined
  /**
   * Idempotency keys of this agent: the memory is not written when one that was written under any of them has been
   * deleted, so that work that is done again does not bring it back.
   */
  readonly unlessDeleted?: readonly string[] | undefined
}
export interface Memory extends NewMemory {
  readonly id: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** ISO 8601 UTC, as the other times. */
  readonly createdAt: string
  readonly updatedAt: string
  readonly accessedAt: string
  readonly accessCount: number
  /** `confidence` after its decay, from 0 to 1. */
  readonly strength: number
  readonly supersededBy?: string | undefined
}

/**
 * Who reads, which decides what there is to read.
 * - `operator`: everything.
 * - `person`: what is kept for this person; without `userId` for the owner of the daemon.
 * - `agent`: what the agent knows in a turn for this person and session, and what other agents share with it.
 */
export type MemoryReader =
  | { readonly kind: 'operator' }
  | { readonly kind: 'person'; readonly userId?: string | undefined }
  | {
      readonly kind: 'agent'
      readonly agentId: string
      readonly userId?: string | undefined
      readonly sessionId?: string | undefined
    }

export interface MemoryFilter {
  readonly agentId?: string | undefined
  readonly userId?: string | undefined
  readonly level?: MemoryLevel | undefined
  readonly category?: string | undefined
  /** All of them. */
  readonly tags?: readonly string[] | undefined
  /** ISO 8601; of when it was made, `until` excluded. */
  readonly since?: string | undefined
  readonly until?: string | undefined
}
export interface MemoryQuery extends MemoryFilter {
  readonly text: string
  readonly limit: number
  readonly reader: MemoryReader
  /** Ends the wait for the vector of the question: what was found by words is the answer then. */
  readonly signal?: AbortSignal | undefined
}
export interface FoundMemory {
  readonly memory: Memory
  /** Above 0; the best first. Only comparable within one answer. */
  readonly score: number
  readonly by: readonly ('words' | 'vector')[]
}
export interface MemoryPage {
  readonly memories: readonly Memory[]
  readonly total: number
}

/** What agents remember. */
export interface Memories {
  /**
   * One commit, durable when it settles; vectors come later. A memory that was added before under the same
   * `idempotencyKey` is returned as it is now. Throws `invalid_request`, and `agent_not_found`.
   */
  add(memories: readonly NewMemory[]): Promise<readonly Memory[]>
  /**
   * Replaces the content and where it is known from; the former ones are in the history. Throws `memory_not_found`.
   * `by`: for the records. `source`: of the new content.
   */
  update(id: string, content: string, by: string, source: MemorySource): Promise<Memory>
  /**
   * Deletes the content everywhere, with what these memories superseded; their ids, times and who deleted them stay.
   * `failed`: those that are not there.
   */
  forget(ids: readonly string[], by: string): Promise<{ readonly deleted: number; readonly failed: readonly string[] }>
  find(id: string, reader?: MemoryReader): Promise<Memory | undefined>
  /** Newest first. */
  list(
    filter: MemoryFilter & { readonly reader: MemoryReader; readonly limit: number; readonly offset: number },
  ): Promise<MemoryPage>
  /** Empty when nothing is known that fits. */
  search(query: MemoryQuery): Promise<readonly FoundMemory[]>
  /**
   * What says nearly the same, most similar first; `score` is the similarity from 0 to 1 then: 1 where one contains the
   * other, else the larger of the cosine of their vectors and the share of their common words.
   */
  similar(
    memory: Pick<NewMemory, 'agentId' | 'userId' | 'sessionId' | 'level' | 'content'>,
    limit: number,
  ): Promise<readonly FoundMemory[]>
}
export const Memories = defineService<Memories>()('memories')

/** Memories were added, changed or deleted. It is on disk. */
export const MemoryChanged = notify<{
  readonly change: 'added' | 'updated' | 'superseded' | 'deleted'
  readonly agentId: string
  readonly ids: readonly string[]
}>('memory:changed')
