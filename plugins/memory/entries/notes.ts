import { Refusal } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Settings } from '../config.ts'
import type { Memory, MemorySource } from '../contract.ts'
import type { MemoryRemoval } from '../removal/removal.ts'
import { checkNew } from './check.ts'
import type { MemoryService } from './service.ts'
import type { MemoryStore } from './store.ts'

/** How a note is shown to its agent. */
export interface Note {
  readonly key: string
  readonly value: string
  readonly created_at: string
}
/** Two calls may find at once that there is no note of a key yet. */
const TRIES = 3

/** What an agent notes for itself: memories of level `agent` with a key, under the rights of its manifest. */
export class Notes {
  readonly #deps: {
    readonly store: MemoryStore
    readonly memories: MemoryService
    readonly removal: Pick<MemoryRemoval, 'later'>
    readonly agents: Agents
    readonly settings: Settings
  }
  constructor(deps: {
    readonly store: MemoryStore
    readonly memories: MemoryService
    readonly removal: Pick<MemoryRemoval, 'later'>
    readonly agents: Agents
    readonly settings: Settings
  }) {
    this.#deps = deps
  }

  /** Replaces a note of the same key; the time of its creation stays. `source`: what the note was made of. */
  async put(agentId: string, key: string, value: string, source: MemorySource) {
    const { agents, store, memories, removal, settings } = this.#deps
    await agents.checkMemory(agentId, 'write', key)
    const note = {
      agentId,
      key,
      content: value,
      level: 'agent',
      confidence: 1,
      tags: [],
      source,
    } as const
    checkNew(note, settings)
    for (let attempt = 1; ; attempt++) {
      const there = await store.byKey(agentId, key)
      try {
        if (there) await memories.update(there.id, value, 'the agent', source)
        else await memories.add([note])
        break
      } catch (error) {
        const isGone = error instanceof Refusal && ['memory_not_found', 'conflict'].includes(error.code)
        if (error instanceof Refusal && !isGone) throw error
        if ((await store.byKey(agentId, key)) && attempt < TRIES) continue
        await this.#explain(agentId, key, error)
      }
    }
    // Killed during the write: nothing would remove the note later.
    if (!(await agents.find(agentId))) await store.commit(removal.later(agentId))
  }

  /**
   * The note of that key, else those it may read that hold the text in their key or value, newest first. Throws
   * `forbidden`.
   */
  async recall(agentId: string, key: string): Promise<readonly Note[]> {
    const exact = await this.#deps.store.byKey(agentId, key)
    if (exact) {
      await this.#deps.agents.checkMemory(agentId, 'read', key)
      return [toNote(exact)]
    }
    const text = key.toLowerCase()
    const notes = await this.#readable(agentId)
    return notes.filter((note) => note.key.toLowerCase().includes(text) || note.value.toLowerCase().includes(text))
  }

  async list(
    agentId: string,
    limit: number,
    offset: number,
  ): Promise<{ readonly notes: readonly Note[]; readonly total: number }> {
    const notes = await this.#readable(agentId)
    return { notes: notes.slice(offset, offset + limit), total: notes.length }
  }

  async #explain(agentId: string, key: string, error: unknown): Promise<never> {
    const { store, settings } = this.#deps
    const max = settings.max_notes_per_agent
    const others = (await store.notes(agentId)).filter((note) => note.key !== key)
    if (others.length < max) throw error
    throw new Refusal(
      'invalid_request',
      `there are ${max} notes, which is the limit (plugins.memory.max_notes_per_agent); replace an older one`,
      { cause: error },
    )
  }
  async #readable(agentId: string): Promise<Note[]> {
    const notes = (await this.#deps.store.notes(agentId)).map(toNote)
    const readable = await this.#deps.agents.readableMemory(
      agentId,
      notes.map(({ key }) => key),
    )
    const keys = new Set(readable)
    return notes.filter(({ key }) => keys.has(key))
  }
}

const toNote = ({ key = '', content, createdAt }: Memory): Note => ({ key, value: content, created_at: createdAt })
