import { newId, stableId, toIso } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Settings } from '../config.ts'
import type {
  FoundMemory,
  Memories,
  Memory,
  MemoryFilter,
  MemoryPage,
  MemoryQuery,
  MemoryReader,
  MemorySource,
  NewMemory,
} from '../contract.ts'
import type { MemoryRemoval } from '../removal/removal.ts'
import type { BackedUp, Restored } from '../restore/restore.ts'
import type { RestoreStore } from '../restore/store.ts'
import type { Retrieval } from '../retrieval/retrieval.ts'
import type { WordIndex } from '../words/word-index.ts'
import { scopeOf } from './access.ts'
import { checkNew } from './check.ts'
import type { Draft, MemoryStore } from './store.ts'

export interface MemoryDeps {
  readonly store: MemoryStore
  readonly retrieval: Retrieval
  readonly wordIndex: WordIndex
  readonly agents: Agents
  readonly audit: Audit
  readonly settings: Settings
  readonly removal: Pick<MemoryRemoval, 'forget' | 'release' | 'replace'>
  readonly now: () => number
  /** Told once it is on disk. */
  readonly changed: (
    change: 'added' | 'updated' | 'superseded' | 'deleted',
    agentId: string,
    ids: readonly string[],
  ) => void
  /** For the batch that changes memories of an agent: the work of making their vectors. */
  readonly embedLater: (agentId: string) => readonly Statement[]
  /** Told of the agents that got memories: they may have too many now. */
  readonly grown: (agentId: string, added: { readonly all: number; readonly automatic: number }) => void
}

export interface MemoryHistory {
  readonly versions: readonly {
    readonly number: number
    readonly content: string
    /** Where this content is known from. */
    readonly source: MemorySource | undefined
    readonly writtenAt: string
    readonly replacedAt: string | undefined
    readonly replacedBy: string | undefined
    /** Of which memory of the chain. */
    readonly memoryId: string
  }[]
  readonly deleted: { readonly at: string; readonly by: string } | undefined
}

/** The memories of all agents. */
export class MemoryService implements Memories {
  readonly #deps: MemoryDeps
  constructor(deps: MemoryDeps) {
    this.#deps = deps
  }

  /** `ids`: of those without an idempotency key, where their caller gives them. */
  async add(memories: readonly NewMemory[], ids: readonly string[] = []): Promise<readonly Memory[]> {
    const { store, agents, settings, now } = this.#deps
    for (const memory of memories) checkNew(memory, settings)
    for (const agentId of new Set(memories.map((memory) => memory.agentId))) await agents.require(agentId)
    const drafts: Draft[] = []
    const guards = new Map<Draft, readonly string[]>()
    let isRepeatable = false
    for (const [place, memory] of memories.entries()) {
      const at = now()
      const id =
        memory.idempotencyKey === undefined
          ? (ids[place] ?? newId())
          : stableId('memory', memory.agentId, memory.idempotencyKey)
      const draft = { ...memory, id, at, createdAt: memory.createdAt ?? toIso(at) }
      drafts.push(draft)
      // An id that its caller gives is of work that may be done again, too.
      const unlessDeleted =
        memory.idempotencyKey === undefined && ids[place] !== undefined
          ? [id]
          : (memory.unlessDeleted ?? []).map((key) => stableId('memory', memory.agentId, key))
      isRepeatable ||= unlessDeleted.length > 0 || memory.idempotencyKey !== undefined
      guards.set(draft, unlessDeleted)
    }
    if (drafts.length === 0) return []
    // Nobody is told of a repeat that writes nothing. The statements see to one that comes at the same time.
    const pending = isRepeatable ? await this.#pending(drafts, guards) : drafts
    const statements: Statement[] = []
    for (const draft of pending) statements.push(...(await this.#insert(draft, guards.get(draft))))
    try {
      if (pending.length > 0) await this.#commit(statements, pending)
    } catch (error) {
      throw (await this.#supersededAlready(pending)) ?? error
    }
    if (!isRepeatable) return drafts.map(toMemory)
    // Some may have been there before, and changed or deleted since.
    const found = new Map((await store.byIds(drafts.map(({ id }) => id))).map((memory) => [memory.id, memory]))
    return drafts.flatMap(({ id }) => found.get(id) ?? [])
  }

  async update(id: string, content: string, by: string, source: MemorySource): Promise<Memory> {
    const { store, audit, settings, now, removal, wordIndex, embedLater } = this.#deps
    const memory = await this.#requireNewest(id)
    checkNew({ ...memory, content, source }, settings)
    const at = toIso(now())
    const chars = `(${content.length} characters)`
    const details =
      memory.key === undefined ? `memory ${id} changed by ${by} ${chars}` : `noted "${memory.key}" ${chars}`
    try {
      await store.commit([
        store.keepVersion(id, by, at),
        store.replace(id, content, source, at),
        ...(await removal.replace(id)),
        ...wordIndex.replace({ ...memory, content }),
        store.dropVersions(id, settings.max_versions),
        audit.entry({ event: 'memory_access', agentId: memory.agentId, details }),
        ...embedLater(memory.agentId),
      ])
    } catch (error) {
      // Somebody may have deleted or superseded it since it was read.
      await this.#requireNewest(id)
      throw error
    }
    this.#deps.changed('updated', memory.agentId, [id])
    return this.#require(id)
  }

  async forget(
    ids: readonly string[],
    by: string,
  ): Promise<{ readonly deleted: number; readonly failed: readonly string[] }> {
    const { store, audit, now, removal } = this.#deps
    const found = await store.owners(ids)
    const there = new Set(found.map(({ id }) => id))
    const failed = ids.filter((id) => !there.has(id))
    if (found.length === 0) return { deleted: 0, failed }
    // What they superseded would come to light in no list, and would stay in the database.
    const chains = await store.chains([...there])
    const byAgent = Map.groupBy(found, ({ agent_id: agentId }) => agentId)
    await store.commit([
      ...store.forget(chains, by, toIso(now())),
      ...(await removal.forget(chains)),
      ...[...byAgent].map(([agentId, own]) => {
        const which = own.length > 3 ? `${own.length} memories` : `memory ${own.map(({ id }) => id).join(', ')}`
        return audit.entry({ event: 'memory_access', agentId, details: `${which} deleted by ${by}` })
      }),
    ])
    for (const [agentId, own] of byAgent)
      this.#deps.changed(
        'deleted',
        agentId,
        own.map(({ id }) => id),
      )
    return { deleted: found.length, failed }
  }

  /** Brings back a backup of an agent; what is there already stays as it is. */
  async restore(
    rows: RestoreStore,
    agentId: string,
    backup: readonly BackedUp[],
    by: string,
    isDryRun: boolean,
  ): Promise<Restored> {
    const { Restore } = await import('../restore/restore.ts')
    return new Restore(this.#deps, rows).run(agentId, backup, by, isDryRun)
  }

  async find(id: string, reader: MemoryReader = { kind: 'operator' }): Promise<Memory | undefined> {
    const [memory] = await this.#deps.store.visible(await scopeOf(reader, this.#deps.agents), [id])
    return memory
  }

  async list({
    reader,
    limit,
    offset,
    ...filter
  }: MemoryFilter & {
    readonly reader: MemoryReader
    readonly limit: number
    readonly offset: number
  }): Promise<MemoryPage> {
    const { store, agents } = this.#deps
    const scope = await scopeOf(reader, agents)
    const agentIds = await this.#agentsIn(scope, filter.agentId)
    const [memories, total] = await Promise.all([
      store.list(scope, agentIds, filter, { limit, offset }),
      store.count(scope, agentIds, filter),
    ])
    return { memories, total }
  }

  async search(query: MemoryQuery): Promise<readonly FoundMemory[]> {
    const { reader } = query
    const scope = await scopeOf(reader, this.#deps.agents)
    const found = await this.#deps.retrieval.search(query, scope, await this.#agentsIn(scope, query.agentId))
    return reader.kind === 'agent' ? this.#withoutSecretNotes(found, reader.agentId) : found
  }
  /** A note is for the agent that has it alone, and under the rights of its key. */
  async #withoutSecretNotes(found: readonly FoundMemory[], agentId: string): Promise<readonly FoundMemory[]> {
    const keys = found.flatMap(({ memory: { key } }) => key ?? [])
    if (keys.length === 0) return found
    const readable = new Set(await this.#deps.agents.readableMemory(agentId, keys))
    return found.filter(
      ({ memory }) => memory.key === undefined || (memory.agentId === agentId && readable.has(memory.key)),
    )
  }

  async similar(
    memory: Pick<NewMemory, 'agentId' | 'userId' | 'sessionId' | 'level' | 'content'>,
    limit: number,
  ): Promise<readonly FoundMemory[]> {
    return this.#deps.retrieval.similar(memory, limit)
  }

  /** Former contents, oldest first, those of what it superseded before its own, and the present one last. */
  async history(id: string, reader: MemoryReader): Promise<MemoryHistory> {
    const { store, agents } = this.#deps
    const scope = await scopeOf(reader, agents)
    const [memory] = await store.visible(scope, [id])
    if (!memory) return this.#historyOfDeleted(id, scope.all || scope.isPerson ? scope : undefined)
    const chain = await store.visible(scope, await store.chains([id]))
    const inOrder = chain.toSorted((one, other) => (one.createdAt < other.createdAt ? -1 : 1))
    const versions: MemoryHistory['versions'][number][] = []
    for (const entry of inOrder) {
      for (const row of await store.versions(entry.id))
        versions.push({
          number: versions.length + 1,
          content: row.content,
          source: row.source,
          writtenAt: row.written_at,
          replacedAt: row.replaced_at,
          replacedBy: row.replaced_by,
          memoryId: entry.id,
        })
      const next = inOrder.find((other) => other.id === entry.supersededBy)
      versions.push({
        number: versions.length + 1,
        content: entry.content,
        source: entry.source,
        writtenAt: entry.updatedAt,
        replacedAt: next?.createdAt,
        replacedBy: next && `memory ${next.id}`,
        memoryId: entry.id,
      })
    }
    return { versions, deleted: undefined }
  }

  /** For whom something is kept, the one with the newest first, as far as the reader may see it. */
  async users(reader: MemoryReader, page: { readonly limit: number; readonly offset: number }) {
    const { store, agents } = this.#deps
    const scope = await scopeOf(reader, agents)
    const [users, total] = await Promise.all([store.users(scope, page), store.countUsers(scope)])
    return { users, total }
  }
  /** Whether some that the reader may see are not in an index yet. */
  async lacking(reader: MemoryReader, agentId: string | undefined) {
    const scope = await scopeOf(reader, this.#deps.agents)
    return this.#deps.store.lacking(scope, await this.#agentsIn(scope, agentId))
  }
  /** How many the reader may see, by level and category, and how many of them are not in each index yet. */
  async figures(reader: MemoryReader, agentId: string | undefined) {
    const scope = await scopeOf(reader, this.#deps.agents)
    const rows = await this.#deps.store.figures(scope, await this.#agentsIn(scope, agentId))
    return {
      rows,
      withoutVector: rows.reduce((sum, row) => sum + row.without_vector, 0),
      withoutWords: rows.reduce((sum, row) => sum + row.without_words, 0),
    }
  }

  async #historyOfDeleted(
    id: string,
    scope: { readonly all: boolean; readonly userId: string } | undefined,
  ): Promise<MemoryHistory> {
    const mark = await this.#deps.store.tombstone(id)
    if (!mark || !scope || !(scope.all || scope.userId === mark.user_id)) throw notFound(id)
    return { versions: [], deleted: { at: mark.deleted_at, by: mark.deleted_by } }
  }

  /** Those that were neither written before nor deleted since. */
  async #pending(drafts: readonly Draft[], guards: ReadonlyMap<Draft, readonly string[]>): Promise<readonly Draft[]> {
    const { store, removal } = this.#deps
    const [written, deleted] = await Promise.all([
      store.byIds(drafts.map(({ id }) => id)),
      store.deleted([...guards.values()].flat()),
    ])
    const there = new Set(written.map(({ id }) => id))
    const pending = drafts.filter(
      (draft) => !there.has(draft.id) && !(guards.get(draft) ?? []).some((id) => deleted.has(id)),
    )
    // What was forgotten may be added anew before its row is deleted.
    await removal.release(pending.map(({ id }) => id))
    return pending
  }
  async #insert(draft: Draft, unlessDeleted?: readonly string[]): Promise<readonly Statement[]> {
    const { store, settings, removal, wordIndex } = this.#deps
    const added = [store.insert(draft, settings.max_notes_per_agent, unlessDeleted), wordIndex.add(draft)]
    if (draft.supersedes === undefined) return added
    return [...added, ...(await removal.replace(draft.supersedes, draft.id)), ...store.supersede(draft)]
  }
  async #commit(statements: readonly Statement[], drafts: readonly Draft[]): Promise<void> {
    const { store, audit, embedLater, grown } = this.#deps
    const byAgent = Map.groupBy(drafts, ({ agentId }) => agentId)
    for (const [agentId, own] of byAgent) {
      const keys = own.flatMap(({ key }) => (key === undefined ? [] : [`"${key}"`]))
      const what =
        keys.length > 0
          ? `noted ${keys.join(', ')}`
          : `${own.length === 1 ? 'a memory' : `${own.length} memories`} added`
      const superseded = own.flatMap(({ supersedes }) => supersedes ?? [])
      const instead = superseded.length === 0 ? '' : `, superseding memory ${superseded.join(', ')}`
      const chars = own.reduce((sum, { content }) => sum + content.length, 0)
      statements = [
        ...statements,
        audit.entry({ event: 'memory_access', agentId, details: `${what} (${chars} characters)${instead}` }),
        ...embedLater(agentId),
      ]
    }
    await store.commit(statements)
    for (const [agentId, own] of byAgent) {
      const superseded = own.flatMap(({ supersedes }) => supersedes ?? [])
      grown(agentId, {
        all: own.length,
        automatic: own.filter(({ source }) => source.kind === 'message' || source.kind === 'tool').length,
      })
      this.#deps.changed(
        'added',
        agentId,
        own.map(({ id }) => id),
      )
      if (superseded.length > 0) this.#deps.changed('superseded', agentId, superseded)
    }
  }

  /** Why the batch failed, where that is what a memory was to supersede. */
  async #supersededAlready(drafts: readonly Draft[]): Promise<Refusal | undefined> {
    for (const { agentId, supersedes } of drafts) {
      if (supersedes === undefined) continue
      const [former] = await this.#deps.store.byIds([supersedes])
      if (former?.agentId !== agentId)
        return new Refusal('memory_not_found', `supersedes: agent ${agentId} has no memory ${supersedes}`)
      if (former.supersededBy !== undefined)
        return new Refusal('conflict', `supersedes: memory ${supersedes} is superseded by ${former.supersededBy}`)
    }
    return undefined
  }

  /** Agents whose memories the scope may hold, so that a statement looks at no others. */
  async #agentsIn(scope: Awaited<ReturnType<typeof scopeOf>>, agentId: string | undefined): Promise<readonly string[]> {
    const all = scope.all
      ? agentId === undefined && (await this.#deps.store.agents())
      : scope.isPerson
        ? await this.#deps.store.agentsOf(scope.userId)
        : [scope.agentId, ...[...scope.shared].map((line) => line.slice(0, line.indexOf(' ')))]
    if (agentId === undefined) return [...new Set(all || [])]
    return !all || all.includes(agentId) ? [agentId] : []
  }
  /** Throws `memory_not_found`, and `conflict` for one that is superseded. */
  async #requireNewest(id: string): Promise<Memory> {
    const memory = await this.#require(id)
    if (memory.supersededBy === undefined) return memory
    throw new Refusal('conflict', `memory ${id} is superseded by ${memory.supersededBy}: change that one`)
  }
  async #require(id: string): Promise<Memory> {
    const [memory] = await this.#deps.store.byIds([id])
    if (!memory) throw notFound(id)
    return memory
  }
}

export const notFound = (id: string): Refusal => new Refusal('memory_not_found', `There is no memory ${id}`)

function toMemory({ at: _at, unlessDeleted: _keys, ...draft }: Draft): Memory {
  return {
    ...omitUndefined(draft),
    metadata: draft.metadata ?? {},
    updatedAt: draft.createdAt,
    accessedAt: draft.createdAt,
    accessCount: 0,
    strength: draft.confidence,
  }
}
