import type { Logger } from 'svc/sdk'
import * as v from 'valibot'
import type { Agent } from './contract.ts'
import { StoredIdentity } from './identity.ts'
import type { Identity } from './identity.ts'
import { parseManifest } from './manifest.ts'
import type { ParsedManifest } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import { Pin, withPin } from './pin.ts'
import type { AgentRow } from './schema.ts'
import type { AgentStore } from './store.ts'
import { messageOf, readOwnJson } from 'svc/internal'

/** An agent as this plugin holds it: its row, with the manifest parsed. */
export interface LoadedAgent extends Agent {
  readonly row: AgentRow
  readonly identity: Identity
  readonly manifest: ManifestDocument
  readonly warnings: readonly string[]
}

/**
 * The agents by id and by name. The table decides. With SQLite this process is the only writer, so this copy is always
 * current; with PostgreSQL others write too, so each lookup reads the row and only the parsed manifests are cached.
 */
export class AgentRegistry {
  readonly #store: AgentStore
  readonly #log: Logger
  /** Other processes write the same rows. */
  readonly #shared: boolean
  #byId = new Map<string, LoadedAgent>()
  #byName = new Map<string, LoadedAgent>()
  #sorted: readonly LoadedAgent[] | undefined

  constructor(store: AgentStore, log: Logger) {
    this.#store = store
    this.#log = log
    this.#shared = store.shared
  }

  /** Reads every row. Called once, before anything else. */
  async load(): Promise<void> {
    for (const row of await this.#store.all()) this.#hold(row)
  }

  async find(id: string): Promise<LoadedAgent | undefined> {
    const key = id.toLowerCase()
    return this.#shared ? this.#answer(key, await this.#store.find(key)) : this.#byId.get(key)
  }
  async findByName(name: string): Promise<LoadedAgent | undefined> {
    if (!this.#shared) return this.#byName.get(name)
    const row = await this.#store.findByName(name)
    return row && this.#answer(row.id, row)
  }
  /** Oldest first. */
  async list(): Promise<readonly LoadedAgent[]> {
    if (this.#shared) return (await this.#store.all()).map((row) => this.#hold(row))
    return (this.#sorted ??= [...this.#byId.values()].sort(
      (a, b) => compare(a.createdAt, b.createdAt) || compare(a.id, b.id),
    ))
  }

  /** Adds a stored row. The manifest is parsed unless the caller has done that. */
  put(row: AgentRow, parsed?: ParsedManifest): LoadedAgent {
    return this.#hold(row, parsed)
  }
  drop(id: string): void {
    const held = this.#byId.get(id)
    if (!held) return
    this.#byId.delete(id)
    if (this.#byName.get(held.name) === held) this.#byName.delete(held.name)
    this.#sorted = undefined
  }

  #answer(id: string, row: AgentRow | undefined): LoadedAgent | undefined {
    if (row) return this.#hold(row)
    this.drop(id)
    return undefined
  }

  /** The agent of a row, which need not be stored yet. */
  read(row: AgentRow, parsed?: ParsedManifest): LoadedAgent {
    const held = this.#byId.get(row.id)
    const known = held?.manifestToml === row.manifest_toml && held.row.pin === row.pin && !parsed
    return {
      row,
      id: row.id,
      name: row.name,
      state: row.state,
      mode: row.mode,
      permission: row.permission,
      createdAt: row.created_at,
      sessionId: row.session_id,
      manifestToml: row.manifest_toml,
      clonedFrom: row.cloned_from ?? undefined,
      identity: row.identity === '{}' ? nobody : v.parse(StoredIdentity, readOwnJson(row.identity)),
      ...(known ? { manifest: held.manifest, warnings: held.warnings } : this.#read(row, parsed)),
    }
  }

  #hold(row: AgentRow, parsed?: ParsedManifest): LoadedAgent {
    const agent = this.read(row, parsed)
    this.drop(row.id)
    this.#byId.set(agent.id, agent)
    this.#byName.set(agent.name, agent)
    this.#sorted = undefined
    return agent
  }

  #read(row: AgentRow, parsed?: ParsedManifest): { manifest: ManifestDocument; warnings: readonly string[] } {
    try {
      const { document, warnings } = parsed ?? parseManifest(row.manifest_toml)
      return { manifest: row.pin === null ? document : withPin(document, v.parse(Pin, readOwnJson(row.pin))), warnings }
    } catch (error) {
      // Accepted by an earlier version or edited by hand. The agent stays visible, without rights, until its manifest
      // is replaced.
      this.#log.error(`the stored manifest of agent "${row.name}" cannot be read`, error)
      const reason = messageOf(error)
      return { manifest: parseManifest('').document, warnings: [`the stored manifest cannot be read: ${reason}`] }
    }
  }
}

/** Shared by the many agents that have none. */
const nobody: Identity = Object.freeze({})
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
