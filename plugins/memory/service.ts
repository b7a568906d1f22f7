import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Limits, Note } from './schema.ts'
import type { NoteStore } from './store.ts'

/** What an agent noted for itself, under the rights of its manifest. */
export class NoteService {
  readonly #store: NoteStore
  readonly #agents: Agents
  readonly #audit: Audit
  readonly #limits: Limits

  constructor(store: NoteStore, agents: Agents, audit: Audit, limits: Limits) {
    this.#store = store
    this.#agents = agents
    this.#audit = audit
    this.#limits = limits
  }

  /** Replaces a note of the same key; the time of its creation stays. */
  async put(agentId: string, key: string, value: string): Promise<void> {
    await this.#agents.checkMemory(agentId, 'write', key)
    const { max_key_chars: maxKey, max_value_chars: maxValue, max_notes_per_agent: maxNotes } = this.#limits
    if (key.length > maxKey)
      throw new Refusal('invalid_request', `key: at most ${maxKey} characters (plugins.memory.max_key_chars)`)
    if (value.length > maxValue)
      throw new Refusal('payload_too_large', `value: at most ${maxValue} characters (plugins.memory.max_value_chars)`)
    // Not every engine can keep them, and a note must be found again as it was written.
    if (`${key}${value}`.includes('\0') || !key.isWellFormed() || !value.isWellFormed()) {
      throw new Refusal('invalid_request', 'key and value must be well-formed Unicode without NUL')
    }
    try {
      await this.#store.commit(
        this.#store.put(agentId, key, value, new Date().toISOString(), maxNotes),
        this.#audit.entry({ event: 'memory_access', agentId, details: `noted "${key}" (${value.length} characters)` }),
      )
    } catch (error) {
      if (!(await this.#store.full(agentId, key, maxNotes))) throw error
      throw new Refusal(
        'invalid_request',
        `there are ${maxNotes} notes, which is the limit (plugins.memory.max_notes_per_agent); replace an older one`,
        { cause: error },
      )
    }
    // Killed during the write: nothing would remove the note later.
    if (!(await this.#agents.find(agentId))) await this.clear(agentId)
  }

  /**
   * The note of that key, else those it may read that hold the text in their key or value, newest first. Throws
   * `forbidden`.
   */
  async recall(agentId: string, key: string): Promise<readonly Note[]> {
    const exact = await this.#store.find(agentId, key)
    if (exact) {
      await this.#agents.checkMemory(agentId, 'read', key)
      return [exact]
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

  clear(agentId: string): Promise<void> {
    return this.#store.clear(agentId)
  }

  /** Removes notes whose agent was killed just before the process ended. */
  async sweep(): Promise<void> {
    for (const agentId of await this.#store.agents()) {
      if (!(await this.#agents.find(agentId))) await this.clear(agentId)
    }
  }

  async #readable(agentId: string): Promise<Note[]> {
    const notes = await this.#store.list(agentId)
    const keys = new Set(
      await this.#agents.readableMemory(
        agentId,
        notes.map((note) => note.key),
      ),
    )
    return notes.filter((note) => keys.has(note.key))
  }
}
