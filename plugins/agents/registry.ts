import type { Logger } from 'svc/sdk'
import * as v from 'valibot'
import type { Agent, ModelChoice } from './contract.ts'
import { StoredIdentity } from './identity.ts'
import type { Identity } from './identity.ts'
import { parseManifest } from './manifest.ts'
import type { ParsedManifest } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import { Pin, withPin } from './pin.ts'
import type { AgentRow } from './schema.ts'
import type { RowCheck } from './row-check.ts'
import type { AgentStore } from './store.ts'
import { messageOf, readOwnJson } from 'svc/internal'

/** An agent as this plugin holds it: its row, with the manifest parsed when it is asked for. */
export interface LoadedAgent extends Agent {
  readonly row: AgentRow
  readonly identity: Identity
  readonly manifest: ManifestDocument
  readonly warnings: readonly string[]
  /** Why it does not run, whatever its row says. */
  readonly refused: string | undefined
  /** What lists show and search of the manifest; kept, so that they need not parse it. */
  readonly listed: ModelChoice & { readonly description: string }
}
/** A manifest as an agent runs with it, and the text and the pin it was made from. */
interface RunningManifest {
  readonly toml: string
  readonly pin: string | null
  readonly envelope: string | null
  readonly signedBy: string | null
  readonly manifest: ManifestDocument
  readonly warnings: readonly string[]
  readonly refused?: string
}

/** The manifests used last stay parsed: one takes 5 KB, ten times its text. */
const MAX_PARSED = 500

/**
 * The agents by id and by name: a copy of rows that are read when they are first asked for. The table decides. With
 * SQLite this process is the only writer, so a row that was read stays valid until this process changes it; with
 * PostgreSQL others write too, so each lookup reads the row anew and only parsed manifests are kept.
 */
export class AgentRegistry {
  readonly #store: AgentStore
  readonly #log: Logger
  readonly #check: RowCheck | undefined
  /** Other processes write the same rows. */
  readonly #shared: boolean
  readonly #byId = new Map<string, LoadedAgent>()
  readonly #byName = new Map<string, LoadedAgent>()
  readonly #parsed = new Map<string, RunningManifest>()
  /** All agents, oldest first; `undefined` until somebody lists them. */
  #all: readonly LoadedAgent[] | undefined
  /** Whether every row is held. */
  #isComplete = false
  /** Counts changes. */
  #version = 0

  /** `check`: absent where any manifest may run. */
  constructor(store: AgentStore, log: Logger, check?: RowCheck) {
    this.#store = store
    this.#log = log
    this.#check = check
    this.#shared = store.shared
  }

  async find(id: string): Promise<LoadedAgent | undefined> {
    const key = id.toLowerCase()
    if (!this.#shared) return this.#byId.get(key) ?? this.#firstRead(() => this.#store.find(key))
    const row = await this.#store.find(key)
    if (row) return this.put(row)
    this.drop(key)
    return undefined
  }
  async findByName(name: string): Promise<LoadedAgent | undefined> {
    if (!this.#shared) return this.#byName.get(name) ?? this.#firstRead(() => this.#store.findByName(name))
    const row = await this.#store.findByName(name)
    return row && this.put(row)
  }
  /** Oldest first. */
  async list(): Promise<readonly LoadedAgent[]> {
    if (this.#shared) return (await this.#store.all()).map((row) => this.put(row))
    while (!this.#isComplete) await this.#readAll()
    return (this.#all ??= [...this.#byId.values()].sort(
      (a, b) => compare(a.createdAt, b.createdAt) || compare(a.id, b.id),
    ))
  }

  /** Adds a stored row, or replaces the one of its id. The manifest is parsed later unless the caller has done that. */
  put(row: AgentRow, parsed?: ParsedManifest): LoadedAgent {
    const agent = this.read(row, parsed)
    this.#remove(row.id)
    this.#byId.set(agent.id, agent)
    this.#byName.set(agent.name, agent)
    return agent
  }
  /** After the row was deleted. */
  drop(id: string): void {
    this.#remove(id)
    this.#parsed.delete(id)
  }

  /** The agent of a row, which need not be stored yet. */
  read(row: AgentRow, parsed?: ParsedManifest): LoadedAgent {
    if (parsed) this.#keep(row, this.#withPin(row, parsed))
    const running = (): RunningManifest => this.#running(row)
    const refused = (): string | undefined => this.#check && running().refused
    let listed: LoadedAgent['listed'] | undefined
    return {
      row,
      id: row.id,
      name: row.name,
      get state() {
        return refused() === undefined ? row.state : 'Stopped'
      },
      mode: row.mode,
      permission: row.permission,
      createdAt: row.created_at,
      sessionId: row.session_id,
      manifestToml: row.manifest_toml,
      clonedFrom: row.cloned_from ?? undefined,
      identity: readIdentity(row.identity),
      get manifest() {
        return running().manifest
      },
      get warnings() {
        return running().warnings
      },
      get refused() {
        return refused()
      },
      get listed() {
        if (listed) return listed
        const { model, description } = running().manifest
        return (listed = { provider: model.provider, model: model.model, description })
      },
    }
  }

  async #readAll(): Promise<void> {
    const version = this.#version
    const rows = await this.#store.all()
    // What was changed meanwhile is newer than what was read.
    if (version !== this.#version) return
    for (const row of rows) if (!this.#byId.has(row.id)) this.put(row)
    this.#isComplete = true
  }
  /** Of an agent that is not held. */
  async #firstRead(read: () => Promise<AgentRow | undefined>): Promise<LoadedAgent | undefined> {
    while (!this.#isComplete) {
      const version = this.#version
      const row = await read()
      if (!row) return undefined
      const held = this.#byId.get(row.id)
      if (held?.name === row.name) return held
      if (version === this.#version) return this.put(row)
    }
    return undefined
  }
  #remove(id: string): void {
    this.#version++
    this.#all = undefined
    const held = this.#byId.get(id)
    if (!held) return
    this.#byId.delete(id)
    if (this.#byName.get(held.name) === held) this.#byName.delete(held.name)
  }

  #running(row: AgentRow): RunningManifest {
    const found = this.#parsed.get(row.id)
    const { manifest_toml: toml, pin, envelope, signed_by: signedBy } = row
    const isSame = found?.toml === toml && found.pin === pin
    if (!found || !isSame || found.envelope !== envelope || found.signedBy !== signedBy)
      return this.#keep(row, this.#parse(row))
    // Only when room is short the order counts.
    if (this.#parsed.size > MAX_PARSED / 2) {
      this.#parsed.delete(row.id)
      this.#parsed.set(row.id, found)
    }
    return found
  }
  #keep(row: AgentRow, running: RunningManifest): RunningManifest {
    this.#parsed.delete(row.id)
    this.#parsed.set(row.id, running)
    for (const oldest of this.#parsed.keys()) {
      if (this.#parsed.size <= MAX_PARSED) break
      this.#parsed.delete(oldest)
    }
    return running
  }
  #withPin(row: AgentRow, { document, warnings }: ParsedManifest): RunningManifest {
    const { pin, manifest_toml: toml, envelope, signed_by: signedBy } = row
    const manifest = pin === null ? document : withPin(document, v.parse(Pin, readOwnJson(pin)))
    return { toml, pin, envelope, signedBy, manifest, warnings }
  }
  #parse(row: AgentRow): RunningManifest {
    try {
      const parsed = parseManifest(row.manifest_toml)
      const refused = this.#check?.(row, parsed.document)
      if (refused === undefined) return this.#withPin(row, parsed)
      this.#log.error(`agent "${row.name}" does not run: ${refused}`)
      return { ...this.#without(row, refused), refused }
    } catch (error) {
      // Accepted by an earlier version or edited by hand. The agent stays visible, without rights, until its manifest
      // is replaced.
      this.#log.error(`the stored manifest of agent "${row.name}" cannot be read`, error)
      const reason = messageOf(error)
      return this.#without(row, `the stored manifest cannot be read: ${reason}`)
    }
  }
  /** The agent stays visible, without rights. */
  #without(row: AgentRow, warning: string): RunningManifest {
    const { manifest_toml: toml, pin, envelope, signed_by: signedBy } = row
    return { toml, pin, envelope, signedBy, manifest: parseManifest('').document, warnings: [warning] }
  }
}

/** Shared by the many agents that have none. */
const nobody: Identity = Object.freeze({})
/** One that cannot be read is nobody's; the store has named its row. */
function readIdentity(text: string): Identity {
  if (text === '{}') return nobody
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredIdentity), text)
  return read.success ? read.output : nobody
}
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
