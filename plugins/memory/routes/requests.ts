import { newId, stableId } from 'svc/internal'
import { nameOf, omitUndefined, parse, Refusal } from 'svc/sdk'
import type { Principal } from 'svc/sdk'
import type * as v from 'valibot'
import { isVisible, scopeOf } from '../entries/access.ts'
import { readerOf } from '../entries/reader.ts'
import type { FoundMemory, Memory, MemoryFilter, MemoryLevel, MemorySource, NewMemory } from '../contract.ts'
import type { Agent } from '../../agents/contract.ts'
import type { Report } from '../composition.ts'
import { CATEGORIES } from '../extraction/fact.ts'
import { notFound } from '../entries/service.ts'
import type { OpenMemories } from '../entries/open.ts'
import type { EntryView, Import, ImportedEntry, NewEntry } from '../schema.ts'
import { Backup } from '../restore/schema.ts'
import type { BackupEntry } from '../restore/schema.ts'
import type { BackedUp } from '../restore/restore.ts'
import type { RestoreStore } from '../restore/store.ts'

const PAGE = 500
const DEFAULT_LIMIT = 10
const MAX_LIMIT = 100

/** What the routes do, for whoever makes the request: each sees what `readerOf` lets it see. */
export class MemoryRequests {
  readonly #opened: OpenMemories
  readonly #principal: Principal
  constructor(opened: OpenMemories, principal: Principal) {
    this.#opened = opened
    this.#principal = principal
  }

  get #reader() {
    return readerOf(this.#principal)
  }
  get #by(): string {
    return nameOf(this.#principal)
  }

  async list(
    {
      level,
      category,
      ...query
    }: Pick<MemoryFilter, 'level' | 'category'> & {
      readonly limit?: string | undefined
      readonly offset?: string | undefined
    },
    { agentId, user }: { readonly agentId?: string; readonly user?: string } = {},
  ) {
    const page = pageOf(query)
    if (agentId !== undefined) await this.#opened.agents.require(agentId)
    const filter = { level, category, agentId, userId: user === undefined ? undefined : this.userId(user) }
    const { memories, total } = await this.#opened.memories.list({ ...filter, ...page, reader: this.#reader })
    return { memories: memories.map(toView), total, ...page }
  }
  /** Whom a path means: `me` is the caller, with the key or a paired device the owner of the daemon. */
  userId(user: string): string {
    if (user !== 'me') return user
    const reader = this.#reader
    return (reader.kind === 'person' && reader.userId) || ''
  }
  async users(query: { readonly limit?: string | undefined; readonly offset?: string | undefined }) {
    const page = pageOf(query)
    const { users, total } = await this.#opened.memories.users(this.#reader, page)
    return { users: [...users], total, ...page, me: this.userId('me') || null }
  }
  async exportedOf(user: string) {
    const userId = this.userId(user)
    const memories = await this.#all({ userId })
    return {
      user_id: userId || null,
      count: memories.length,
      memories: memories.map((memory) => ({ ...toExported(memory), agent_id: memory.agentId })),
    }
  }
  async forgetUser(user: string) {
    const userId = this.userId(user)
    if (userId === '')
      throw new Refusal('invalid_request', 'user_id: what the owner of the daemon has is deleted by agent or by memory')
    const [{ GraphStore }, { MemoryUses }] = await Promise.all([
      import('../graph/store.ts'),
      import('../prompt/store.ts'),
    ])
    const { audit, db, log, upkeep } = this.#opened
    const deleted = await upkeep.clearUser(userId, this.#by)
    await db.batch([
      ...new GraphStore(db, log).ofUserForgotten(userId),
      new MemoryUses(db, log).ofUserForgotten(userId),
      audit.entry({ event: 'memory_access', details: `what is kept for "${userId}" deleted by ${this.#by}` }),
    ])
    return { status: 'deleted' as const, user_id: userId, deleted }
  }
  async search(
    query: {
      readonly q: string
      readonly level?: MemoryLevel | undefined
      readonly category?: string | undefined
      readonly limit?: string | undefined
    },
    agent: string | undefined,
    signal: AbortSignal,
  ) {
    const agentId = agent === undefined ? undefined : (await this.#opened.agents.resolve(agent)).id
    const { q: text, level, category } = query
    const found = await this.#opened.memories.search({
      text,
      limit: clamp(query.limit),
      reader: this.#reader,
      signal,
      ...omitUndefined({ agentId, level, category }),
    })
    const lacking = await this.#opened.memories.lacking(this.#reader, agentId)
    const index = lacking.words ? 'filling' : lacking.vectors ? 'words_only' : 'complete'
    return { memories: found.map(toFound), index } as const
  }
  async add(body: v.InferOutput<typeof NewEntry>, id: string | undefined, report: Report, signal: AbortSignal) {
    const { agents, memories } = this.#opened
    const agent = body.agent_id === undefined ? await agents.forCaller() : await agents.resolve(body.agent_id)
    if (body.messages) return this.#reported(body.messages, { agent, userId: body.user_id, id }, report, signal)
    const { content = '', user_id: userId, session_id: sessionId, tags = [], category, confidence = 1 } = body
    const added = await memories.add(
      [
        {
          agentId: agent.id,
          content,
          level: body.level ?? (userId === undefined ? 'agent' : 'user'),
          confidence,
          tags,
          source: ownWord(this.#by),
          ...omitUndefined({ userId, sessionId, category, metadata: body.metadata, supersedes: body.supersedes }),
        },
      ],
      id === undefined ? [] : [id],
    )
    return { added: added.length, memories: added.map(toView) }
  }
  async #reported(
    messages: readonly { readonly role: string; readonly content: string }[],
    {
      agent,
      userId,
      id = newId(),
    }: { readonly agent: Agent; readonly userId: string | undefined; readonly id?: string | undefined },
    report: Report,
    signal: AbortSignal,
  ) {
    const added: Memory[] = []
    for (const [place, { role, content: text }] of messages.entries())
      if (role === 'user')
        added.push(...(await report({ agent, userId, text, id: `${id}:${place}`, by: this.#by }, signal)))
    return { added: added.length, memories: added.map(toView) }
  }
  async update(id: string, content: string) {
    await this.#opened.memories.update(id, content, this.#by, ownWord(this.#by))
    return { updated: true as const, memory_id: id }
  }
  async find(id: string) {
    const memory = await this.#opened.memories.find(id, this.#reader)
    if (!memory) throw notFound(id)
    return toView(memory)
  }
  async forget(id: string) {
    // Whoever signed in may forget what they see, which is kept for them alone.
    if (this.#principal.kind === 'user') await this.find(id)
    const { deleted } = await this.#opened.memories.forget([id], this.#by)
    if (deleted === 0) throw notFound(id)
    return { status: 'deleted' as const, memory_id: id }
  }
  async forgetAll(ids: readonly string[]) {
    const { deleted, failed } = await this.#opened.memories.forget(ids, this.#by)
    return { deleted, failed: failed.length, total: ids.length }
  }
  async history(id: string) {
    const { versions, deleted } = await this.#opened.memories.history(id, this.#reader)
    return {
      memory_id: id,
      versions: versions.map((version) => ({
        version: version.number,
        memory_id: version.memoryId,
        content: version.content,
        source: version.source ? toSource(version.source) : null,
        written_at: version.writtenAt,
        replaced_at: version.replacedAt ?? null,
        replaced_by: version.replacedBy ?? null,
      })),
      version_count: versions.length,
      deleted_at: deleted?.at ?? null,
      deleted_by: deleted?.by ?? null,
    }
  }
  async stats(agentId?: string) {
    if (agentId !== undefined) await this.#opened.agents.require(agentId)
    const { rows, withoutVector, withoutWords } = await this.#opened.memories.figures(this.#reader, agentId)
    const sum = (level?: string): number =>
      rows.reduce((all, row) => all + (level === undefined || row.level === level ? row.count : 0), 0)
    const categories: Record<string, number> = {}
    for (const { category, count } of rows)
      if (category !== '') categories[category] = (categories[category] ?? 0) + count
    const settings: Readonly<Record<string, unknown>> = this.#opened.settings
    return {
      total: sum(),
      user_count: sum('user'),
      session_count: sum('session'),
      agent_count: sum('agent'),
      categories,
      without_vector: withoutVector,
      without_words: withoutWords,
      enabled: true,
      auto_memorize_enabled: settings['auto_memorize'] === true,
      auto_retrieve_enabled: settings['auto_retrieve'] === true,
      llm_extraction: settings['auto_memorize'] === true && settings['extraction_model'] !== '',
    }
  }
  config() {
    const { embedding, decay_rate: decayRate, ...settings } = this.#opened.settings
    return {
      embedding_provider: embedding.provider,
      embedding_model: embedding.model,
      embedding_api_key_env: null,
      decay_rate: decayRate,
      proactive_memory: {
        enabled: true as const,
        auto_memorize: settings.auto_memorize,
        auto_retrieve: settings.auto_retrieve,
        extraction_model: settings.extraction_model,
        extraction_threshold: settings.extraction_threshold,
        extract_categories: [...CATEGORIES],
        max_retrieve: settings.max_retrieve,
        duplicate_threshold: settings.duplicate_threshold,
        session_ttl_hours: settings.session_ttl_hours,
        max_memories_per_agent: settings.max_memories_per_agent,
      },
    }
  }
  async count(agentId: string, level: MemoryLevel | undefined) {
    const { total } = await this.list({ level, limit: '1' }, { agentId })
    return { agent_id: agentId, count: total, level: level ?? null }
  }
  async duplicates(agentId: string) {
    const { agents, upkeep } = this.#opened
    await agents.require(agentId)
    const scope = await scopeOf(this.#reader, agents)
    const mine = (await upkeep.duplicates(agentId))
      .map((group) => group.filter((memory) => isVisible(scope, { ...memory, ...namesOf(memory) })))
      .filter(({ length }) => length > 1)
    return { duplicate_groups: mine.length, groups: mine.map((group) => group.map(toView)) }
  }
  async consolidate(agentId: string) {
    await this.#opened.agents.require(agentId)
    return { consolidated: true as const, merged_count: await this.#opened.upkeep.consolidate(agentId) }
  }
  async clear(agentId: string, level?: MemoryLevel) {
    await this.#opened.agents.require(agentId)
    const deleted = await this.#opened.upkeep.clear(agentId, level, this.#by)
    return { status: 'deleted' as const, agent_id: agentId, deleted }
  }
  async cleanup() {
    const { upkeep, settings } = this.#opened
    const deleted = await upkeep.cleanup()
    return { cleaned_up: true as const, deleted_count: deleted, session_ttl_hours: settings.session_ttl_hours }
  }
  async decay() {
    await this.#opened.upkeep.decay()
    return { decayed: true as const, decay_rate: this.#opened.settings.decay_rate }
  }

  async exported(agentId: string) {
    await this.#opened.agents.require(agentId)
    const memories = await this.#all({ agentId })
    const rows = await this.#restoreStore()
    const { agents, store } = this.#opened
    const live = new Set(memories.map(({ id }) => id))
    const scope = await scopeOf(this.#reader, agents)
    const chains = await store.visible(scope, await store.chains([...live]))
    const superseded = chains.filter(({ id }) => !live.has(id))
    const versions = Map.groupBy(
      await rows.versions([...live, ...superseded.map(({ id }) => id)]),
      ({ memory_id: id }) => id,
    )
    const toBackup = (memory: Memory) => ({
      ...toExported(memory),
      id: memory.id,
      source: toSource(memory.source),
      strength: memory.strength,
      accessed_at: memory.accessedAt,
      access_count: memory.accessCount,
      supersedes: memory.supersedes ?? null,
      versions: (versions.get(memory.id) ?? []).map(({ memory_id: _id, number: _number, source, ...version }) => ({
        ...version,
        source: source ? toSource(source) : null,
      })),
    })
    return {
      agent_id: agentId,
      count: memories.length,
      memories: memories.map(toBackup),
      superseded: superseded.map((memory) => ({ ...toBackup(memory), superseded_by: memory.supersededBy ?? '' })),
    }
  }
  async #restoreStore(): Promise<RestoreStore> {
    const { RestoreStore } = await import('../restore/store.ts')
    return new RestoreStore(this.#opened.db, this.#opened.log)
  }
  /** The oldest first. */
  async #all(filter: MemoryFilter): Promise<readonly Memory[]> {
    const memories: Memory[] = []
    for (;;) {
      const page = { limit: PAGE, offset: memories.length, reader: this.#reader }
      const found = (await this.#opened.memories.list({ ...filter, ...page })).memories
      memories.push(...found)
      if (found.length < PAGE) return memories.toReversed()
    }
  }
  async imported(agentId: string, body: v.InferOutput<typeof Import>) {
    const { agents, memories, notes } = this.#opened
    await agents.require(agentId)
    if ('restore' in body && body.restore) return this.#restored(agentId, body, body.dry_run)
    const entries = 'memories' in body ? body.memories : body
    this.#checkImport(entries.length)
    const plain = entries.filter(({ key }) => key === null || key === undefined)
    await memories.add(plain.map((entry) => toNew(entry, agentId, this.#by)))
    for (const { key, content } of entries)
      if (typeof key === 'string') await notes.put(agentId, key, content, fromElsewhere(this.#by))
    return { imported: entries.length, agent_id: agentId }
  }
  async #restored(agentId: string, body: object, isDryRun = false) {
    const { memories, superseded } = parse(Backup, body)
    this.#checkImport(memories.length + superseded.length)
    const backup = [
      ...memories.map((entry) => toBackedUp(entry, agentId)),
      ...superseded.map((entry) => toBackedUp(entry, agentId, entry.superseded_by)),
    ]
    const rows = await this.#restoreStore()
    const { restored, unchanged, conflicts } = await this.#opened.memories.restore(
      rows,
      agentId,
      backup,
      this.#by,
      isDryRun,
    )
    return { imported: restored, agent_id: agentId, unchanged, conflicts: [...conflicts], dry_run: isDryRun }
  }
  #checkImport(count: number): void {
    const { max_import: max } = this.#opened.settings
    if (count > max) throw new Refusal('invalid_request', `at most ${max} memories at once (plugins.memory.max_import)`)
  }
}

/** What a request has added that was made before. */
export async function recall({ memories, store }: OpenMemories, id: string) {
  const memory = await memories.find(id)
  const made = memory ? [memory] : await store.reported(id)
  return made.length === 0 ? undefined : { added: made.length, memories: made.map(toView) }
}

function pageOf({ limit, offset }: { readonly limit?: string | undefined; readonly offset?: string | undefined }) {
  return { limit: clamp(limit), offset: Number(offset ?? 0) }
}
function clamp(limit: string | undefined): number {
  return Math.min(Number(limit ?? DEFAULT_LIMIT), MAX_LIMIT)
}
const namesOf = ({ userId = '', sessionId = '' }: Memory) => ({ userId, sessionId })

const ownWord = (person: string): MemorySource => ({ kind: 'person', person, labels: [] })
/** Who wrote it first is not known any more: it is nobody's own word. */
const fromElsewhere = (person: string): MemorySource => ({ kind: 'import', person, labels: ['ExternalNetwork'] })
const toSource = (source: MemorySource) => ({
  ...omitUndefined(source),
  labels: [...source.labels],
  kind: source.kind,
})

function toNew(entry: ImportedEntry, agentId: string, person: string): NewMemory {
  const [userId, sessionId] = [entry.user_id ?? undefined, entry.session_id ?? undefined]
  const level = entry.level ?? (userId === undefined ? 'agent' : 'user')
  return {
    agentId,
    content: entry.content,
    level,
    // The same import again adds nothing.
    idempotencyKey: stableId('import', level, userId ?? '', sessionId ?? '', entry.content),
    confidence: entry.confidence ?? 1,
    tags: entry.tags ?? [],
    source: fromElsewhere(person),
    ...omitUndefined({
      userId,
      sessionId,
      category: entry.category ?? undefined,
      metadata: entry.metadata,
      createdAt: entry.created_at,
    }),
  }
}

function toBackedUp(entry: BackupEntry, agentId: string, supersededBy?: string): BackedUp {
  return {
    memory: {
      id: entry.id,
      agentId,
      content: entry.content,
      level: entry.level,
      confidence: entry.confidence,
      strength: entry.strength,
      tags: entry.tags,
      source: entry.source,
      metadata: entry.metadata,
      createdAt: entry.created_at,
      updatedAt: entry.updated_at,
      accessedAt: entry.accessed_at,
      accessCount: entry.access_count,
      ...omitUndefined({
        userId: entry.user_id ?? undefined,
        sessionId: entry.session_id ?? undefined,
        category: entry.category ?? undefined,
        key: entry.key ?? undefined,
        supersedes: entry.supersedes ?? undefined,
        supersededBy,
      }),
    },
    versions: entry.versions.map((version) => ({
      content: version.content,
      source: version.source,
      writtenAt: version.written_at,
      replacedAt: version.replaced_at,
      replacedBy: version.replaced_by,
    })),
  }
}

function toView(memory: Memory): EntryView {
  return {
    id: memory.id,
    agent_id: memory.agentId,
    user_id: memory.userId ?? null,
    session_id: memory.sessionId ?? null,
    content: memory.content,
    level: memory.level,
    category: memory.category ?? null,
    key: memory.key ?? null,
    tags: [...memory.tags],
    metadata: memory.metadata,
    source: toSource(memory.source),
    confidence: memory.confidence,
    strength: memory.strength,
    created_at: memory.createdAt,
    updated_at: memory.updatedAt,
    accessed_at: memory.accessedAt,
    access_count: memory.accessCount,
    supersedes: memory.supersedes ?? null,
  }
}
const toFound = ({ memory, score, by }: FoundMemory) => ({ ...toView(memory), score, found_by: [...by] })

function toExported(memory: Memory) {
  const { id: _id, agent_id: _agent, source: _source, ...view } = toView(memory)
  const { strength: _strength, accessed_at: _at, access_count: _count, supersedes: _supersedes, ...exported } = view
  return exported
}
