import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Statement } from 'svc/sdk'
import type { MemoryStore } from '../entries/store.ts'
import { AgentIndex } from './agent-index.ts'

/** Rows that are read at once: what one read keeps others waiting. */
const PAGE = 200
/** With more changes than this an index is built anew. */
const MAX_CHANGED = 20_000
/** Ids that one message to the other daemons names. */
const MAX_TOLD = 50

interface Entry {
  index: AgentIndex
  /** Rows that changed since they were read. */
  readonly changed: Set<string>
  isWhole: boolean
  /** What brings it up to date now. */
  working: Promise<void> | undefined
}
export interface IndexesDeps {
  readonly store: MemoryStore
  /** Memories of all agents that are held at most; the agent that was used last always is. */
  readonly maxMemories: number
  /** For the batch: tells the other daemons. */
  readonly tell: (key: string) => readonly Statement[]
}

/** The indexes of the agents that were searched last: a copy of rows, read with the first search and after a change. */
export class Indexes {
  readonly #deps: IndexesDeps
  /** The one that was used last comes last. */
  readonly #entries = new Map<string, Entry>()
  constructor(deps: IndexesDeps) {
    this.#deps = deps
  }

  get size(): number {
    return [...this.#entries.values()].reduce((sum, { index }) => sum + index.size, 0)
  }

  tell(agentId: string, ids: readonly string[]): readonly Statement[] {
    return this.#deps.tell((ids.length > MAX_TOLD ? [agentId] : [agentId, ...ids]).join(' '))
  }
  changed(agentId: string, ids: readonly string[]): void {
    const entry = this.#entries.get(agentId)
    if (!entry) return
    if (entry.changed.size + ids.length > MAX_CHANGED) this.#entries.delete(agentId)
    else for (const id of ids) entry.changed.add(id)
  }
  /** What another daemon told. */
  heard(key: string): void {
    const [agentId = '', ...ids] = key.split(' ')
    if (ids.length === 0) this.drop(agentId)
    else this.changed(agentId, ids)
  }
  drop(agentId: string): void {
    this.#entries.delete(agentId)
  }
  clear(): void {
    this.#entries.clear()
  }

  /** As the rows were at some moment after the call. */
  async of(agentId: string): Promise<AgentIndex> {
    for (let waited = 0; ; waited++) {
      let entry = this.#entries.get(agentId)
      if (entry?.index.isWorn) entry = undefined
      entry ??= { index: new AgentIndex(), changed: new Set(), isWhole: false, working: undefined }
      this.#entries.delete(agentId)
      this.#entries.set(agentId, entry)
      // What is written meanwhile, again and again, keeps nobody waiting: the second reading began after the call.
      if (entry.isWhole && (entry.changed.size === 0 || waited > 1)) return entry.index
      entry.working ??= this.#bringUpToDate(agentId, entry)
      await entry.working
    }
  }

  async #bringUpToDate(agentId: string, entry: Entry): Promise<void> {
    try {
      if (!entry.isWhole) await this.#readAll(agentId, entry)
      else await this.#readChanged(entry)
      entry.working = undefined
      this.#dropOldest()
    } catch (error) {
      if (this.#entries.get(agentId) === entry) this.#entries.delete(agentId)
      throw error
    }
  }
  async #readAll(agentId: string, entry: Entry): Promise<void> {
    // A change that is told from now on is read again, whether its page was read before or after it.
    entry.changed.clear()
    for (let after = ''; ;) {
      const rows = await this.#deps.store.indexPage(agentId, after, PAGE)
      for (const row of rows) entry.index.set(row)
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) break
      after = last.id
      await nextTurn()
    }
    entry.isWhole = true
  }
  async #readChanged(entry: Entry): Promise<void> {
    const all = [...entry.changed]
    entry.changed.clear()
    for (let from = 0; from < all.length; from += PAGE) {
      if (from > 0) await nextTurn()
      const ids = all.slice(from, from + PAGE)
      const rows = await this.#deps.store.indexRows(ids)
      for (const id of ids) entry.index.remove(id)
      for (const row of rows) entry.index.set(row)
    }
  }
  #dropOldest(): void {
    let held = this.size
    for (const [agentId, { index, working }] of this.#entries) {
      if (held <= this.#deps.maxMemories || this.#entries.size === 1) return
      if (working) continue
      held -= index.size
      this.#entries.delete(agentId)
    }
  }
}
