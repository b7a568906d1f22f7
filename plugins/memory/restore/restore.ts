import { Refusal } from 'svc/sdk'
import type { Memory } from '../contract.ts'
import { checkNew } from '../entries/check.ts'
import type { MemoryDeps } from '../entries/service.ts'
import type { RestoreStore, Version } from './store.ts'

/** A memory of a backup. */
export interface BackedUp {
  readonly memory: Memory
  /** Oldest first. */
  readonly versions: readonly Version[]
}
export interface Conflict {
  readonly id: string
  readonly reason: string
}
export interface Restored {
  readonly restored: number
  /** Those that are there as the backup has them. */
  readonly unchanged: number
  /** Those that are left out, with why. */
  readonly conflicts: readonly Conflict[]
}
interface Plan {
  readonly restored: readonly BackedUp[]
  readonly unchanged: number
  readonly conflicts: readonly Conflict[]
}

/** Brings back what a backup of one agent holds, in one commit, over nothing that is there. */
export class Restore {
  readonly #deps: MemoryDeps
  readonly #rows: RestoreStore
  constructor(deps: MemoryDeps, rows: RestoreStore) {
    this.#deps = deps
    this.#rows = rows
  }

  async run(agentId: string, backup: readonly BackedUp[], by: string, isDryRun: boolean): Promise<Restored> {
    this.#check(backup)
    if (!isDryRun) await this.#deps.removal.release(backup.map(({ memory }) => memory.id))
    const plan = await this.#plan(agentId, backup)
    if (!isDryRun && plan.restored.length > 0) await this.#write(agentId, backup, plan, by)
    return { restored: plan.restored.length, unchanged: plan.unchanged, conflicts: plan.conflicts }
  }

  #check(backup: readonly BackedUp[]): void {
    const ids = new Set<string>()
    for (const { memory, versions } of backup) {
      if (ids.has(memory.id)) throw new Refusal('invalid_request', `memory ${memory.id} is in the backup twice`)
      ids.add(memory.id)
      checkNew(memory, this.#deps.settings)
      for (const { content } of versions) checkNew({ ...memory, content }, this.#deps.settings)
    }
  }

  async #plan(agentId: string, backup: readonly BackedUp[]): Promise<Plan> {
    const { store, settings } = this.#deps
    const there = new Map((await store.byIds(backup.map(({ memory }) => memory.id))).map((found) => [found.id, found]))
    const notes = new Set((await store.notes(agentId)).map(({ key }) => key))
    const conflicts: Conflict[] = []
    const unchanged: Memory[] = []
    const free: BackedUp[] = []
    for (const entry of backup) {
      const { id, key, content, supersededBy } = entry.memory
      const found = there.get(id)
      if (found?.agentId === agentId && found.content === content) unchanged.push(found)
      else if (found)
        conflicts.push({
          id,
          reason: found.agentId === agentId ? 'it has another content now' : `it is of agent ${found.agentId}`,
        })
      else if (key !== undefined && supersededBy === undefined && notes.has(key))
        conflicts.push({ id, reason: `the agent has another note "${key}"` })
      else {
        if (key !== undefined && supersededBy === undefined) notes.add(key)
        free.push(entry)
      }
    }
    const kept = inChains(free, unchanged)
    for (const { memory } of free)
      if (!kept.has(memory.id)) conflicts.push({ id: memory.id, reason: 'what superseded it is not there' })
    if (notes.size > settings.max_notes_per_agent)
      throw new Refusal(
        'invalid_request',
        `the agent would have ${notes.size} notes: at most ${settings.max_notes_per_agent} ` +
          '(plugins.memory.max_notes_per_agent)',
      )
    const known = new Set([...kept, ...there.keys()])
    return {
      restored: free
        .filter(({ memory }) => kept.has(memory.id))
        .map(({ memory, versions }) => ({
          // Of a former one that is not there it would be the last trace.
          memory: known.has(memory.supersedes ?? '') ? memory : { ...memory, supersedes: undefined },
          versions: versions.slice(-settings.max_versions),
        })),
      unchanged: unchanged.length,
      conflicts,
    }
  }

  async #write(agentId: string, backup: readonly BackedUp[], plan: Plan, by: string): Promise<void> {
    const { store, audit, wordIndex, embedLater, settings, changed, grown } = this.#deps
    const memories = plan.restored.map(({ memory }) => memory)
    const many = memories.length === 1 ? 'a memory' : `${memories.length} memories`
    try {
      await store.commit([
        ...plan.restored.flatMap(({ memory, versions }) => [
          this.#rows.insert(memory, settings.max_notes_per_agent),
          ...(memory.supersededBy === undefined ? [wordIndex.add(memory)] : []),
          ...versions.map((version, place) => this.#rows.version(memory.id, place + 1, version)),
        ]),
        audit.entry({ event: 'memory_access', agentId, details: `${many} restored from a backup by ${by}` }),
        ...embedLater(agentId),
      ])
    } catch (error) {
      // Somebody may have written one of them since it was looked for.
      const now = await this.#plan(agentId, backup)
      if (now.restored.length === plan.restored.length) throw error
      throw new Refusal(
        'conflict',
        'memories of this backup were written meanwhile, and nothing is restored: try again',
      )
    }
    const live = memories.filter(({ supersededBy }) => supersededBy === undefined)
    grown(agentId, {
      all: live.length,
      automatic: live.filter(({ source }) => source.kind === 'message' || source.kind === 'tool').length,
    })
    changed(
      'added',
      agentId,
      memories.map(({ id }) => id),
    )
  }
}

/** Those that are found, and of the superseded ones those that are forgotten with what superseded them. */
function inChains(free: readonly BackedUp[], there: readonly Memory[]): ReadonlySet<string> {
  const byId = new Map(free.map(({ memory }) => [memory.id, memory]))
  const live = free.filter(({ memory }) => memory.supersededBy === undefined).map(({ memory }) => memory)
  const kept = new Set(live.map(({ id }) => id))
  for (const newest of [...live, ...there])
    for (let next = newest; ;) {
      const former = byId.get(next.supersedes ?? '')
      if (former?.supersededBy !== next.id || kept.has(former.id)) break
      kept.add(former.id)
      next = former
    }
  return kept
}
