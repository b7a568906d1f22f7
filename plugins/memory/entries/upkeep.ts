import { setImmediate as nextTurn } from 'node:timers/promises'
import { RepeatedWork, toIso } from 'svc/internal'
import type { Agents } from '../../agents/contract.ts'
import type { Settings } from '../config.ts'
import type { Memory, MemoryLevel } from '../contract.ts'
import { similarityOfWords } from '../retrieval/retrieval.ts'
import { cosineOfBytes } from '../retrieval/vector.ts'
import type { MemoryService } from './service.ts'
import type { MemoryStore } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Rows of one statement: what one write keeps others waiting. */
const BATCH = 500
/** Automatic writes of an agent after which its newest memories are compared. API facts 2.6. */
const CONSOLIDATE_EVERY = 10

export interface UpkeepDeps {
  readonly store: MemoryStore
  readonly memories: MemoryService
  readonly agents: Agents
  readonly settings: Settings
  readonly now: () => number
  readonly background: (work: () => Promise<void>) => void
  readonly forgotten: (reason: string, count: number) => void
}

/** What happens to memories with time: they fade, expire, make room for others and are merged. */
export class Upkeep {
  readonly #deps: UpkeepDeps
  /** As far as this daemon knows: a reason to count, nothing more. */
  readonly #counts = new Map<string, number>()
  readonly #automatic = new Map<string, number>()
  readonly #capping = new Map<string, RepeatedWork>()
  constructor(deps: UpkeepDeps) {
    this.#deps = deps
  }

  /** Told of what was added. */
  grown(agentId: string, added: { readonly all: number; readonly automatic: number }): void {
    const known = this.#counts.get(agentId)
    if (known !== undefined) this.#counts.set(agentId, known + added.all)
    if (known === undefined || known + added.all > this.#deps.settings.max_memories_per_agent)
      this.#deps.background(() => this.#cap(agentId))
    const automatic = (this.#automatic.get(agentId) ?? 0) + added.automatic
    this.#automatic.set(agentId, automatic % CONSOLIDATE_EVERY)
    if (automatic >= CONSOLIDATE_EVERY)
      this.#deps.background(async () => {
        await this.consolidate(agentId)
      })
  }

  /** Everything that is due now. */
  async sweep(): Promise<void> {
    const { store, agents, settings, now } = this.#deps
    await this.decay()
    await this.cleanup()
    for (const agentId of await store.agents())
      if (await agents.find(agentId)) await this.#cap(agentId)
      else await store.commit(store.ofAgentKilled(agentId))
    await store.commit([store.dropTombstones(toIso(now() - settings.tombstone_days * DAY_MS))])
  }

  /** Writes down what confidences are worth now. */
  async decay(): Promise<void> {
    const { store, settings, now } = this.#deps
    if (settings.decay_rate === 0) return
    const at = now()
    for (const agentId of await store.agents())
      for (let after = ''; ;) {
        const ids = await store.idsPage(agentId, after, BATCH)
        const last = ids.at(-1)
        if (last === undefined) break
        await store.commit([store.decay(ids, settings.decay_rate, at)])
        after = last
      }
  }

  /** Forgets what has expired. Returns how many. */
  async cleanup(): Promise<number> {
    const { store, memories, settings, now } = this.#deps
    const at = now()
    const unused = (days: number): number => (settings.expiry && days > 0 ? at - days * DAY_MS : 0)
    let deleted = 0
    for (;;) {
      const ids = await store.expired(
        {
          sessionBefore: toIso(at - settings.session_ttl_hours * HOUR_MS),
          agentUnusedBefore: unused(settings.agent_expiry_days),
          userUnusedBefore: unused(settings.user_expiry_days),
        },
        BATCH,
      )
      if (ids.length === 0) break
      const forgotten = await memories.forget(ids, 'cleanup')
      deleted += forgotten.deleted
      if (forgotten.deleted === 0) break
    }
    if (deleted > 0) this.#deps.forgotten('expired', deleted)
    return deleted
  }

  /** Groups of memories that say the same, the newest of each first. */
  async duplicates(agentId: string): Promise<readonly (readonly Memory[])[]> {
    const { store, settings } = this.#deps
    const newest = await store.newest(agentId, settings.max_compared)
    const vectors = await store.vectorsOf(newest.map(({ id }) => id))
    const groups: Memory[][] = []
    for (const memory of newest) {
      const vector = vectors.get(memory.id)
      const group = groups.find(([first]) => {
        if (!first || !isComparable(first, memory)) return false
        if (similarityOfWords(first.content, memory.content) >= settings.duplicate_threshold) return true
        const other = vectors.get(first.id)
        return vector?.model === other?.model && vector && other
          ? cosineOfBytes(vector.vector, other.vector) >= settings.duplicate_threshold
          : false
      })
      if (group) group.push(memory)
      else groups.push([memory])
      await nextTurn()
    }
    return groups.filter(({ length }) => length > 1)
  }
  /** Keeps the newest of each group. Returns how many are gone. */
  async consolidate(agentId: string): Promise<number> {
    const ids = (await this.duplicates(agentId)).flatMap(([, ...older]) => older.map(({ id }) => id))
    if (ids.length === 0) return 0
    const { deleted } = await this.#deps.memories.forget(ids, 'consolidation')
    this.#deps.forgotten('duplicate', deleted)
    return deleted
  }
  /** Deletes all of an agent, or those of a level. Returns how many. */
  async clear(agentId: string, level: MemoryLevel | undefined, by: string): Promise<number> {
    let deleted = 0
    for (;;) {
      const ids = await this.#deps.store.idsOfLevel(agentId, level ?? '', BATCH)
      if (ids.length === 0) return deleted
      deleted += (await this.#deps.memories.forget(ids, by)).deleted
    }
  }

  #cap(agentId: string): Promise<void> {
    let work = this.#capping.get(agentId)
    if (!work) this.#capping.set(agentId, (work = new RepeatedWork(() => this.#makeRoom(agentId))))
    return work.run()
  }
  async #makeRoom(agentId: string): Promise<void> {
    const { store, memories, settings } = this.#deps
    const count = await store.countUnkeyed(agentId)
    this.#counts.set(agentId, count)
    let excess = count - settings.max_memories_per_agent
    while (excess > 0) {
      const ids = await store.weakest(agentId, Math.min(excess, BATCH))
      if (ids.length === 0) return
      const { deleted } = await memories.forget(ids, 'the limit plugins.memory.max_memories_per_agent')
      this.#deps.forgotten('limit', deleted)
      excess -= ids.length
      this.#counts.set(agentId, settings.max_memories_per_agent + Math.max(0, excess))
    }
  }
}

const isComparable = (one: Memory, other: Memory): boolean =>
  one.level === other.level && one.userId === other.userId && one.sessionId === other.sessionId
