import { setImmediate as nextTurn } from 'node:timers/promises'
import { RepeatedWork, toIso } from 'svc/internal'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Settings } from '../config.ts'
import type { Memory, MemoryLevel } from '../contract.ts'
import { isOutside, saysOther } from '../extraction/compare.ts'
import { similarityOfWords } from '../retrieval/retrieval.ts'
import { cosineOfBytes } from '../vectors/vector.ts'
import type { MemoryService } from '../entries/service.ts'
import type { MemoryStore } from '../entries/store.ts'
import type { MemoryRemoval } from '../removal/removal.ts'
import type { UpkeepStore } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Rows of one statement: what one write keeps others waiting. */
const BATCH = 500
/** Automatic writes of an agent after which its newest memories are compared. API facts 2.6. */
const CONSOLIDATE_EVERY = 10

export interface UpkeepDeps {
  readonly store: MemoryStore
  readonly rows: UpkeepStore
  readonly memories: MemoryService
  readonly removal: Pick<MemoryRemoval, 'later'>
  readonly agents: Agents
  readonly audit: Pick<Audit, 'entry'>
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
    const { store, rows, removal, agents, settings, now } = this.#deps
    await this.decay()
    await this.cleanup()
    for (const agentId of await store.agents())
      if (await agents.find(agentId)) await this.#cap(agentId)
      else await store.commit(removal.later(agentId))
    const before = (days: number): string => toIso(now() - days * DAY_MS)
    await rows.commit([rows.dropTombstones(before(settings.tombstone_days)), rows.dropUses(before(settings.use_days))])
  }

  /** Writes down what confidences are worth now. */
  async decay(): Promise<void> {
    const { store, rows, settings, now } = this.#deps
    if (settings.decay_rate === 0) return
    const at = now()
    for (const agentId of await store.agents())
      for (let after = ''; ;) {
        const ids = await rows.idsPage(agentId, after, BATCH)
        const last = ids.at(-1)
        if (last === undefined) break
        await rows.commit([rows.decay(ids, settings.decay_rate, at)])
        after = last
      }
  }

  /** Forgets what has expired. Returns how many. */
  async cleanup(): Promise<number> {
    const { rows, memories, settings, now } = this.#deps
    const at = now()
    const unused = (days: number): number => (settings.expiry && days > 0 ? at - days * DAY_MS : 0)
    let deleted = 0
    for (;;) {
      const ids = await rows.expired(
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

  /** Groups of memories that say the same, first the one to keep: the newest of what somebody said, else the newest. */
  async duplicates(agentId: string): Promise<readonly (readonly Memory[])[]> {
    const { store, rows, settings } = this.#deps
    const newest = await rows.newest(agentId, settings.max_compared)
    const vectors = await store.vectorsOf(newest.map(({ id }) => id))
    const groups: Memory[][] = []
    for (const memory of newest) {
      const vector = vectors.get(memory.id)
      const group = groups.find(([first]) => {
        if (!first || !isComparable(first, memory) || saysOther(first.content, memory.content)) return false
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
    // Text from outside never takes the place of somebody's own word, however new it is.
    return groups.filter(({ length }) => length > 1).map((group) => group.toSorted(ownWordFirst))
  }
  /** Keeps the first of each group. Returns how many are gone. */
  async consolidate(agentId: string): Promise<number> {
    const ids = (await this.duplicates(agentId)).flatMap(([, ...others]) => others.map(({ id }) => id))
    if (ids.length === 0) return 0
    const { deleted } = await this.#deps.memories.forget(ids, 'consolidation')
    this.#deps.forgotten('duplicate', deleted)
    return deleted
  }
  /** Deletes all of an agent with its graph, or those of a level. Returns how many memories that were. */
  async clear(agentId: string, level: MemoryLevel | undefined, by: string): Promise<number> {
    const { rows, memories, audit } = this.#deps
    let deleted = 0
    for (let after: string | undefined = ''; after !== undefined;) {
      const ids: readonly string[] = await rows.idsOfLevel(agentId, level ?? '', after, BATCH)
      deleted += (await memories.forget(ids, by)).deleted
      after = ids.at(-1)
    }
    if (level === undefined)
      await rows.commit([
        ...rows.dropGraph(agentId),
        audit.entry({ event: 'memory_access', agentId, details: `the graph of the agent deleted by ${by}` }),
      ])
    return deleted
  }

  /** Deletes everything that is kept for a person, in all agents. Returns how many memories that were. */
  async clearUser(userId: string, by: string): Promise<number> {
    let deleted = 0
    for (;;) {
      const ids = await this.#deps.rows.idsOfUser(userId, BATCH)
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
    const { rows, memories, settings } = this.#deps
    const count = await rows.countUnkeyed(agentId)
    this.#counts.set(agentId, count)
    let excess = count - settings.max_memories_per_agent
    while (excess > 0) {
      const ids = await rows.weakest(agentId, Math.min(excess, BATCH))
      if (ids.length === 0) return
      const { deleted } = await memories.forget(ids, 'the limit plugins.memory.max_memories_per_agent')
      this.#deps.forgotten('limit', deleted)
      excess -= ids.length
      this.#counts.set(agentId, settings.max_memories_per_agent + Math.max(0, excess))
    }
  }
}

const ownWordFirst = (one: Memory, other: Memory): number =>
  Number(isOutside(one.source.labels)) - Number(isOutside(other.source.labels))
const isComparable = (one: Memory, other: Memory): boolean =>
  one.level === other.level && one.userId === other.userId && one.sessionId === other.sessionId
