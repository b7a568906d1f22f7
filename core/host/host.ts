import { basename, resolve } from 'node:path'
import type { ConsolaInstance } from 'consola'
import * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import type { AnyPlugin, Migration, ServiceToken } from './define.ts'
import type { PluginStatus } from './daemon.ts'
import { PluginProblem, providedIds, requiredIds } from './definition.ts'
import { findEntry } from './folders.ts'
import { dependentsOf, plan } from './graph.ts'
import type { Node } from './graph.ts'
import { mount } from './instance.ts'
import type { Instance, Mounting } from './instance.ts'
import type { Loader } from './loader.ts'
import { ChangeQueue } from './queue.ts'

export interface HostParts {
  readonly loader: Loader
  readonly log: ConsolaInstance
  readonly builtIns: ReadonlySet<string>
  readonly disabled: () => readonly string[]
  /** The plugin's section of the configuration, not parsed yet. */
  readonly pluginConfig: (name: string) => unknown
  readonly drainMs: () => number
  readonly setupMs: number
  readonly members: Mounting['members']
  /** Lets new work of these plugins wait until the returned function is called. */
  readonly hold: (plugins: readonly string[]) => () => void
  readonly migrate: (plugin: string, migrations: readonly Migration[]) => Promise<unknown>
  /** Called before migrations are applied. */
  readonly beforeMigrations: (plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[]) => Promise<void>
}

/** A plugin folder and what became of it. */
interface Slot {
  readonly folder: string
  name: string
  state: PluginStatus['state']
  definition: AnyPlugin | undefined
  config: unknown
  instance: Instance | undefined
  error: string | undefined
  reloads: number
}

/** Loads, replaces and removes plugins. Every change touches only the plugin and those that require it. */
export class Host {
  readonly #parts: HostParts
  readonly #slots = new Map<string, Slot>()
  readonly #core = new Map<string, unknown>()
  readonly #queue: ChangeQueue
  readonly #observers = new Set<() => void>()

  constructor(parts: HostParts) {
    this.#parts = parts
    this.#queue = new ChangeQueue(parts.drainMs)
  }

  /** A service of the core itself. */
  provide<T>(token: ServiceToken<T>, service: T): void { this.#core.set(token.id, service) }

  /** Loads the first plugins. One that cannot be loaded is reported and stops nobody but those that require it. */
  start(folders: readonly string[]): Promise<void> {
    return this.#change(() => [], async () => {
      await Promise.all([...new Set(folders.map((folder) => resolve(folder)))].map((folder) => this.#read(this.#slot(folder), false)))
      this.#refuseDuplicates()
      await this.#bringUp([...this.#slots.values()].filter((slot) => slot.state === 'loading'))
    })
  }

  /** Loads the plugin in a folder, and those that have waited for a service of it. */
  load(folder: string): Promise<void> {
    const path = resolve(folder)
    return this.#change(() => [], async () => {
      const known = this.#slots.get(path)
      if (known?.instance) throw new Refusal('conflict', `Plugin "${known.name}" is loaded already`)
      await this.#load(known ?? this.#slot(path))
    })
  }

  /** Takes a plugin down, after those that require it. Its tables and stored values stay. */
  unload(name: string): Promise<void> {
    return this.#change(() => this.#affected(name), async () => {
      const slot = this.#find(name)
      await this.#takeOut(slot)
      slot.state = 'disabled'
    })
  }

  /** Replaces a plugin by what its folder holds now. The old code goes on when the new cannot be used. */
  reload(name: string): Promise<void> {
    return this.#change(() => this.#affected(name), async () => {
      const slot = this.#find(name)
      if (slot.instance) await this.#replace(slot)
      else await this.#load(slot)
    })
  }

  /** Makes the plugin in a folder what the folder says: loads, replaces or forgets it. For the watcher. */
  sync(folder: string): Promise<void> {
    const path = resolve(folder)
    const affected = (): readonly string[] => this.#affected(this.#slots.get(path)?.name ?? '')
    return this.#change(affected, async () => {
      const slot = this.#slots.get(path)
      if (!findEntry(path)) {
        if (!slot) return
        await this.#takeOut(slot)
        this.#slots.delete(path)
        this.#parts.log.info(`plugin "${slot.name}" unloaded: its folder is gone`)
      } else if (slot?.instance) {
        await this.#replace(slot)
        this.#parts.log.info(`plugin "${slot.name}" reloaded`)
      } else {
        const fresh = slot ?? this.#slot(path)
        await this.#load(fresh)
        this.#parts.log.info(`plugin "${fresh.name}" loaded`)
      }
    })
  }

  plugins(): readonly PluginStatus[] {
    return [...this.#slots.values()].map((slot) => ({
      name: slot.name,
      version: slot.definition?.version ?? '',
      state: slot.state,
      source: this.#parts.builtIns.has(slot.folder) ? 'built-in' : slot.folder,
      requires: slot.definition ? requiredIds(slot.definition) : [],
      provides: slot.definition ? providedIds(slot.definition) : [],
      ledger: slot.instance?.scope.ledger() ?? [],
      reloads: slot.reloads,
      error: slot.error,
    }))
  }

  /** Definitions of the loaded plugins, for documents made of their schemas. */
  definitions(): readonly AnyPlugin[] { return this.#loaded().flatMap((slot) => slot.definition ?? []) }

  /** Calls back after every change, whether it worked or not. */
  observe(observer: () => void): () => void {
    this.#observers.add(observer)
    return () => { this.#observers.delete(observer) }
  }

  /** Takes every plugin down, dependents first. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#change(() => [], async () => {
      for (const slot of this.#loaded().toReversed()) await this.#takeDown(slot)
    })
  }

  async #change(affected: () => readonly string[], change: () => Promise<void>): Promise<void> {
    try { await this.#queue.add(affected, change) } finally { for (const observer of this.#observers) observer() }
  }

  #slot(folder: string): Slot {
    const slot: Slot = { folder, name: basename(folder), state: 'loading', definition: undefined, config: undefined, instance: undefined, error: undefined, reloads: 0 }
    this.#slots.set(folder, slot)
    return slot
  }

  #find(name: string): Slot {
    const named = [...this.#slots.values()].filter((slot) => slot.name === name)
    const slot = named.find(({ instance }) => instance) ?? named[0]
    if (!slot) throw new Refusal('plugin_not_found', `No plugin "${name}"`)
    return slot
  }

  /** The slots of loaded plugins, each after everything it requires. */
  #loaded(): readonly Slot[] {
    const running = new Map([...this.#slots.values()].filter(({ instance }) => instance).map((slot) => [slot.name, slot]))
    return plan([...running.values()].flatMap(toNode), new Set(this.#core.keys())).order.flatMap((name) => running.get(name) ?? [])
  }

  #affected(name: string): readonly string[] { return [name, ...this.#dependents(name).map((slot) => slot.name)] }

  #dependents(name: string): readonly Slot[] {
    const loaded = this.#loaded()
    const names = new Set(dependentsOf(name, loaded.flatMap(toNode)))
    return loaded.filter((slot) => names.has(slot.name))
  }

  #service(id: string): unknown {
    if (this.#core.has(id)) return this.#core.get(id)
    for (const slot of this.#slots.values()) if (slot.state === 'loaded' && slot.instance?.services.has(id)) return slot.instance.services.get(id)
    return undefined
  }

  #present(): Set<string> {
    return new Set([...this.#core.keys(), ...[...this.#slots.values()].flatMap(({ instance }) => (instance ? [...instance.services.keys()] : []))])
  }

  #fail(slot: Slot, reason: string): void {
    slot.state = 'failed'
    slot.error = reason
    this.#parts.log.error(`plugin "${slot.name}" is not loaded: ${reason}`)
  }

  /** Reads definition and config into the slot. What is wrong with them ends in its status. */
  async #read(slot: Slot, fresh: boolean): Promise<void> {
    try {
      const definition = await this.#parts.loader.load(slot.folder, fresh)
      slot.name = definition.name
      slot.definition = definition
      slot.error = undefined
      if (this.#parts.disabled().includes(definition.name)) {
        slot.state = 'disabled'
        return
      }
      slot.config = this.#parseConfig(definition)
      slot.state = 'loading'
    } catch (error) { this.#fail(slot, reasonOf(error)) }
  }

  #parseConfig(definition: AnyPlugin): unknown {
    const result = v.safeParse(definition.config, this.#parts.pluginConfig(definition.name) ?? {})
    if (result.success) return result.output
    const problems = result.issues.slice(0, 5).map((issue) => `plugins.${definition.name}.${v.getDotPath(issue) ?? ''}: ${issue.message}`)
    throw new PluginProblem(`its configuration is wrong: ${problems.join('; ')}`)
  }

  #refuseDuplicates(): void {
    const first = new Map<string, Slot>()
    for (const slot of this.#slots.values()) {
      if (slot.state !== 'loading') continue
      const other = first.get(slot.name)
      if (other) this.#fail(slot, `a plugin of this name is loaded from ${other.folder}`)
      else first.set(slot.name, slot)
    }
  }

  async #load(slot: Slot): Promise<void> {
    await this.#read(slot, true)
    if (slot.state === 'disabled') throw new Refusal('conflict', `Plugin "${slot.name}" is disabled by the configuration`)
    const other = [...this.#slots.values()].find((candidate) => candidate !== slot && candidate.name === slot.name && candidate.instance)
    if (slot.state === 'loading' && other) this.#fail(slot, `a plugin of this name is loaded from ${other.folder}`)
    if (slot.state === 'loading') await this.#bringUp([slot])
    if (slot.state !== 'loaded') throw new Refusal('conflict', `Plugin "${slot.name}" was not loaded: ${slot.error ?? 'unknown reason'}`)
    await this.#bringUpWaiting()
  }

  /** Plugins that could not be loaded for want of a service get another chance. */
  async #bringUpWaiting(): Promise<void> {
    const present = this.#present()
    const waiting = [...this.#slots.values()].filter((slot) => slot.state === 'failed' && slot.definition && slot.config !== undefined && !slot.instance)
    const ready = plan(waiting.flatMap(toNode), present).order
    const chosen = waiting.filter((slot) => ready.includes(slot.name) && slot.error?.startsWith('needs service'))
    if (chosen.length > 0) await this.#bringUp(chosen)
  }

  /** Sets these up in the order of the graph. A failure ends in the status of the plugin and of those that require it. */
  async #bringUp(slots: readonly Slot[]): Promise<void> {
    const byName = new Map(slots.map((slot) => [slot.name, slot]))
    const { order, refused } = plan(slots.flatMap(toNode), this.#present(), this.#unavailable(slots))
    for (const [name, reason] of refused) {
      const slot = byName.get(name)
      if (slot) this.#fail(slot, reason)
    }
    const ready = order.flatMap((name) => byName.get(name) ?? [])
    await this.#migrate(ready)
    for (const slot of ready) {
      if (slot.state === 'failed' || !slot.definition) continue
      const lacking = requiredIds(slot.definition).find((id) => !this.#present().has(id))
      if (lacking !== undefined) {
        this.#fail(slot, `needs service "${lacking}": ${this.#unavailable([slot]).get(lacking) ?? 'no plugin provides it'}`)
        continue
      }
      try { await this.#setUp(slot, slot.definition, slot.config) } catch (error) { this.#fail(slot, `setup failed: ${reasonOf(error)}`) }
    }
  }

  async #migrate(slots: readonly Slot[]): Promise<void> {
    const pending = slots.flatMap(({ name, definition }) => (definition?.migrations ? [{ name, migrations: definition.migrations }] : []))
    if (pending.length === 0) return
    await this.#parts.beforeMigrations(pending)
    for (const { name, migrations } of pending) {
      const slot = slots.find((candidate) => candidate.name === name)
      try { await this.#parts.migrate(name, migrations) } catch (error) { if (slot) this.#fail(slot, `its tables could not be prepared: ${reasonOf(error)}`) }
    }
  }

  /** Why the services of plugins that are not loaded are not there, by id. */
  #unavailable(coming: readonly Slot[]): ReadonlyMap<string, string> {
    const missing = [...this.#slots.values()].filter((slot) => !slot.instance && !coming.includes(slot))
    return new Map(missing.flatMap((slot) => (slot.definition ? providedIds(slot.definition) : [])
      .map((id) => [id, `plugin "${slot.name}" provides it but is not loaded${slot.error ? `: ${slot.error}` : ''}`] as const)))
  }

  async #setUp(slot: Slot, definition: AnyPlugin, config: unknown): Promise<void> {
    slot.state = 'loading'
    slot.instance = await mount(definition, config, {
      log: this.#parts.log, members: this.#parts.members, find: (id) => this.#service(id), setupMs: this.#parts.setupMs, drainMs: this.#parts.drainMs(),
    })
    Object.assign(slot, { definition, config, state: 'loaded', error: undefined } satisfies Partial<Slot>)
  }

  /** Closes the running copy. What it left undone is reported; the plugin is gone all the same. */
  async #takeDown(slot: Slot): Promise<string | undefined> {
    const { instance } = slot
    if (!instance) return undefined
    slot.state = 'unloading'
    try {
      await instance.scope.close(this.#parts.drainMs())
      return undefined
    } catch (error) {
      const reason = `did not unload cleanly: ${(error instanceof AggregateError ? error.errors.map(reasonOf) : [reasonOf(error)]).join('; ')}`
      this.#parts.log.error(`plugin "${slot.name}" ${reason}`)
      return reason
    } finally { slot.instance = undefined }
  }

  async #takeOut(slot: Slot): Promise<void> {
    const dependents = this.#dependents(slot.name)
    const release = this.#parts.hold(this.#affected(slot.name))
    try {
      for (const dependent of dependents.toReversed()) await this.#takeDown(dependent)
      slot.error = await this.#takeDown(slot)
      for (const dependent of dependents) this.#fail(dependent, `needs service "${neededOf(slot, dependent)}": plugin "${slot.name}" was unloaded`)
    } finally { release() }
  }

  async #replace(slot: Slot): Promise<void> {
    const old = slot.definition
    if (!old) throw new Error(`plugin "${slot.name}" runs without a definition`)
    const { definition, config } = await this.#readReplacement(slot)
    await this.#parts.beforeMigrations([{ name: slot.name, migrations: definition.migrations ?? [] }])
    const dependents = this.#dependents(slot.name)
    const release = this.#parts.hold(this.#affected(slot.name))
    try {
      for (const dependent of dependents.toReversed()) await this.#takeDown(dependent)
      const unclean = await this.#takeDown(slot)
      await this.#swap(slot, { definition, config }, { definition: old, config: slot.config })
      if (unclean) slot.error = `the copy before ${unclean}`
    } finally {
      await this.#bringUp(dependents)
      release()
    }
    await this.#bringUpWaiting()
  }

  /** The new code, checked against everything that runs. Nothing has been touched when this throws. */
  async #readReplacement(slot: Slot): Promise<{ definition: AnyPlugin; config: unknown }> {
    try {
      const definition = await this.#parts.loader.load(slot.folder, true)
      if (definition.name !== slot.name) throw new PluginProblem(`the folder now holds a plugin named "${definition.name}": unload "${slot.name}" first`)
      const config = this.#parseConfig(definition)
      const nodes = this.#loaded().flatMap((other) => (other === slot ? [nodeOf(definition)] : toNode(other)))
      const [refused] = plan(nodes, new Set(this.#core.keys())).refused
      if (refused) throw new PluginProblem(refused[0] === slot.name ? refused[1] : `plugin "${refused[0]}" ${refused[1]}`)
      return { definition, config }
    } catch (error) {
      slot.error = `not reloaded, the code before goes on: ${reasonOf(error)}`
      this.#parts.log.error(`plugin "${slot.name}" ${slot.error}`)
      throw new Refusal('conflict', `Plugin "${slot.name}" was ${slot.error}`, { cause: error })
    }
  }

  async #swap(slot: Slot, next: Pick<Slot, 'definition' | 'config'> & { definition: AnyPlugin }, old: Pick<Slot, 'definition' | 'config'> & { definition: AnyPlugin }): Promise<void> {
    try {
      if (next.definition.migrations) await this.#parts.migrate(slot.name, next.definition.migrations)
      await this.#setUp(slot, next.definition, next.config)
      slot.reloads++
    } catch (error) {
      const reason = reasonOf(error)
      try { await this.#setUp(slot, old.definition, old.config) } catch (again) {
        this.#fail(slot, `setup of the new code failed: ${reason}; setup of the old code failed too: ${reasonOf(again)}`)
        throw new Refusal('conflict', `Plugin "${slot.name}" is not loaded: ${slot.error ?? ''}`, { cause: error })
      }
      slot.error = `not reloaded, the code before goes on: setup failed: ${reason}`
      this.#parts.log.error(`plugin "${slot.name}" ${slot.error}`, error)
      throw new Refusal('conflict', `Plugin "${slot.name}" was ${slot.error}`, { cause: error })
    }
  }
}

function nodeOf(definition: AnyPlugin): Node {
  return { name: definition.name, requires: requiredIds(definition), provides: providedIds(definition) }
}
function toNode(slot: Slot): readonly Node[] { return slot.definition ? [{ ...nodeOf(slot.definition), name: slot.name }] : [] }
function neededOf(provider: Slot, dependent: Slot): string {
  const provided = provider.definition ? providedIds(provider.definition) : []
  const required = dependent.definition ? requiredIds(dependent.definition) : []
  return required.find((id) => provided.includes(id)) ?? required[0] ?? ''
}
function reasonOf(error: unknown): string { return error instanceof Error ? error.message : String(error) }
