import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import type { Audit, AuditRecord } from '../audit/contract.ts'
import { AgentChanged, AgentKilled, AgentSpawned } from './contract.ts'
import type { Agents, AgentSummary } from './contract.ts'
import { editManifest, parseManifest } from './manifest.ts'
import type { ManifestEdits } from './manifest.ts'
import type { NameModel } from './model-names.ts'
import type { HeldAgent, Roster } from './roster.ts'
import type { AgentRow } from './schema.ts'
import { grants } from './rights.ts'
import { createSerial } from './serial.ts'
import type { AgentStore } from './store.ts'

export interface AgentParts {
  readonly store: AgentStore
  readonly roster: Roster
  readonly audit: Audit
  readonly hooks: Hooks
  readonly maxManifestBytes: number
  names(): Promise<NameModel>
}

/** What is registered, and every change to it. A change and its audit entry are on disk before it is told to anyone. */
export class AgentService implements Agents {
  readonly #parts: AgentParts
  /** Changes of one agent follow each other, so that none is lost between its read and its write. */
  readonly #serial = createSerial()

  constructor(parts: AgentParts) { this.#parts = parts }

  find(id: string): Promise<HeldAgent | undefined> { return this.#parts.roster.find(id) }
  findByName(name: string): Promise<HeldAgent | undefined> { return this.#parts.roster.findByName(name) }
  list(): Promise<readonly HeldAgent[]> { return this.#parts.roster.list() }
  async require(id: string): Promise<HeldAgent> {
    const agent = await this.find(id)
    if (!agent) throw new Refusal('agent_not_found', `No agent ${id}`)
    return agent
  }
  async summaries(): Promise<readonly AgentSummary[]> {
    return this.summarise(await this.list())
  }
  async summarise(agents: readonly HeldAgent[]): Promise<AgentSummary[]> {
    const name = await this.#parts.names()
    return agents.map((agent) => {
      const { provider, model } = name(agent.manifest.model)
      return { id: agent.id, name: agent.name, state: agent.state, created_at: agent.createdAt, model_provider: provider, model_name: model }
    })
  }

  /** `name` replaces the one in the manifest. */
  async spawn(manifestToml: string, name?: string): Promise<HeldAgent> {
    this.#checkSize(manifestToml)
    const toml = name === undefined ? manifestToml : editManifest(manifestToml, { name })
    const parsed = parseManifest(toml)
    const now = new Date().toISOString()
    const row: AgentRow = {
      id: randomUUID(),
      name: parsed.document.name,
      manifest_toml: toml,
      // Decision: created and initialised in one step; a disabled agent is registered and does not start.
      state: parsed.document.enabled ? 'Running' : 'Stopped',
      mode: 'Normal',
      session_id: randomUUID(),
      created_at: now,
      updated_at: now,
    }
    await this.#commit(row, this.#parts.store.insert(row), { event: 'agent_spawned', agentId: row.id, details: `agent "${row.name}" spawned` })
    const agent = this.#parts.roster.put(row, parsed)
    await this.#parts.hooks.emit(AgentSpawned, { agent })
    return agent
  }

  kill(id: string): Promise<HeldAgent | undefined> {
    return this.#serial(id.toLowerCase(), async () => {
      const agent = await this.find(id)
      if (!agent) return undefined
      const { store, audit, roster, hooks } = this.#parts
      await store.commit(store.remove(agent.id), audit.entry({ event: 'agent_killed', agentId: agent.id, details: `agent "${agent.name}" killed` }))
      roster.drop(agent.id)
      await hooks.emit(AgentKilled, { agent })
      return agent
    })
  }

  async checkMemory(id: string, access: 'read' | 'write', key: string): Promise<void> {
    const agent = await this.require(id)
    const { memory_read: readable, memory_write: writable } = agent.manifest.capabilities
    if (grants(access === 'read' ? readable : writable, key, true)) return
    await this.#parts.audit.write({ event: 'capability_check', agentId: agent.id, details: `denied: memory_${access} of "${key}"` })
    throw new Refusal('forbidden', `agent "${agent.name}" may not ${access} memory key "${key}" (capabilities.memory_${access})`)
  }

  async readableMemory(id: string, keys: readonly string[]): Promise<readonly string[]> {
    const { manifest: { capabilities } } = await this.require(id)
    return keys.filter((key) => grants(capabilities.memory_read, key, true))
  }

  async activate(id: string, sessionId: string): Promise<void> {
    await this.#change(id, (agent) => (agent.sessionId === sessionId ? undefined : { session_id: sessionId }))
  }

  /** Replaces the whole manifest. Throws like `spawn`, and `agent_not_found`. */
  replace(id: string, manifestToml: string): Promise<HeldAgent> {
    this.#checkSize(manifestToml)
    return this.#change(id, () => ({ manifest_toml: manifestToml }), 'manifest replaced')
  }

  /** Changes values inside the manifest. Throws `invalid_request` when the result is not a manifest, `conflict` for a name that is taken. */
  edit(id: string, edits: ManifestEdits): Promise<HeldAgent> {
    return this.#change(id, (agent) => ({ manifest_toml: editManifest(agent.manifestToml, edits) }), `changed ${Object.keys(edits).join(', ')}`)
  }

  #change(id: string, change: (agent: HeldAgent) => Partial<AgentRow> | undefined, what?: string): Promise<HeldAgent> {
    return this.#serial(id.toLowerCase(), async () => {
      const agent = await this.require(id)
      const changed = change(agent)
      if (!changed) return agent
      const row: AgentRow = {
        id: agent.id, name: agent.name, manifest_toml: agent.manifestToml, state: agent.state, mode: agent.mode, session_id: agent.sessionId,
        created_at: agent.createdAt, updated_at: new Date().toISOString(), ...changed,
      }
      const parsed = changed.manifest_toml === undefined ? undefined : parseManifest(row.manifest_toml)
      if (parsed) row.name = parsed.document.name
      if (parsed && parsed.document.enabled !== agent.manifest.enabled) row.state = parsed.document.enabled ? 'Running' : 'Stopped'
      // A move between sessions is recorded by whoever owns the sessions.
      await this.#commit(row, this.#parts.store.update(row), what === undefined ? undefined : { event: 'agent_updated', agentId: row.id, details: `agent "${row.name}": ${what}` })
      const held = this.#parts.roster.put(row, parsed)
      await this.#parts.hooks.emit(AgentChanged, { agent: held })
      return held
    })
  }

  async #commit(row: AgentRow, statement: Statement, record: AuditRecord | undefined): Promise<void> {
    const { store, audit } = this.#parts
    try {
      await store.commit(statement, ...(record ? [audit.entry(record)] : []))
    } catch (error) {
      // The unique name decides, not a look before the write: two spawns at once, or another process, may want the same one.
      const holder = await store.findByName(row.name)
      if (!holder || holder.id === row.id) throw error
      throw new Refusal('conflict', `an agent named "${row.name}" exists already`, { details: { name: row.name, agent_id: holder.id }, cause: error })
    }
  }

  #checkSize(manifestToml: string): void {
    const limit = this.#parts.maxManifestBytes
    if (Buffer.byteLength(manifestToml) <= limit) return
    throw new Refusal('payload_too_large', `manifest_toml: at most ${limit} bytes`, { details: { limit_bytes: limit } })
  }
}
