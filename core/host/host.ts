import { resolve } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { currentActor } from '../scope/actor.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { ChangeRecord } from './change-record.ts'
import type { PluginChange, PluginStatus } from './daemon.ts'
import type { AnyPlugin, ServiceToken } from './define.ts'
import { DefinitionReader } from './definition-reader.ts'
import { findEntry } from './folders.ts'
import type { HostDeps } from './host-deps.ts'
import { PluginLifecycle } from './lifecycle.ts'
import { ChangeQueue } from './queue.ts'
import type { Replacements } from './replacements.ts'
import type { RetiredCopies } from './retired-copies.ts'
import { providedBy, requiredBy, Slots, statusOf } from './slot.ts'
import type { Slot } from './slot.ts'

/** Loads, replaces and removes plugins, one change at a time. A change affects only the plugin and its dependents. */
export class Host {
  readonly #deps: HostDeps
  readonly #slots = new Slots()
  readonly #queue: ChangeQueue
  readonly #observers = new Set<() => void>()
  #replacements: Promise<Replacements> | undefined
  #retired: RetiredCopies | undefined
  readonly #changes: ChangeRecord
  readonly #reader: DefinitionReader
  readonly #lifecycle: PluginLifecycle
  constructor(deps: HostDeps) {
    this.#deps = deps
    this.#changes = new ChangeRecord(deps)
    this.#reader = new DefinitionReader(deps, this.#slots, this.#changes)
    this.#lifecycle = new PluginLifecycle(deps, this.#slots, this.#changes)
    this.#queue = new ChangeQueue(deps.drainMs)
  }

  /** Registers a service of the core. */
  provide<T>(token: ServiceToken<T>, service: T): void {
    this.#slots.provide(token.id, service)
  }

  /**
   * Loads the first plugins, from absolute paths. One that cannot be loaded is reported, and only the plugins that
   * require it fail too. Throws `ConfigError` where sections are strict, the `StartRefused` of a plugin, and when the
   * server of the database stays away.
   */
  start(folders: readonly string[]): Promise<void> {
    return this.#change(
      () => [],
      async () => {
        const slots = [...new Set(folders)].map((folder) => this.#slots.add(folder))
        await Promise.all(slots.map((slot) => this.#reader.read(slot, false)))
        await this.#reader.readDisabled(slots)
        for (const slot of slots)
          this.#reader.refuseDuplicate(
            slot,
            slots.slice(0, slots.indexOf(slot)).filter(({ state }) => state === 'loading'),
          )
        this.#reader.declareFirst()
        for (const slot of slots) this.#reader.configure(slot, this.#deps.strict)
        const away = await this.#lifecycle.bringUp(slots.filter(({ state }) => state === 'loading'))
        if (away !== undefined) throw away
        // One that lacks a service at every start has not changed.
        const waiting = new Set(slots.filter((slot) => slot.waiting).map(({ name }) => name))
        this.#changes.forget(waiting)
      },
    )
  }

  /** Loads the plugin in a folder, and plugins that waited for one of its services. */
  load(folder: string): Promise<void> {
    const path = resolve(folder)
    return this.#change(
      () => [],
      async () => {
        const known = this.#slots.in(path)
        if (known?.instance) throw new Refusal('conflict', `Plugin "${known.name}" is loaded already`)
        await this.#load(known ?? this.#slots.add(path))
      },
    )
  }

  /** Unloads a plugin, after its dependents. Its tables and stored values stay. */
  unload(name: string): Promise<void> {
    return this.#change(
      () => this.#slots.subtree(name),
      async () => {
        const slot = this.#find(name)
        await this.#takeOut(slot)
        slot.state = 'disabled'
        this.#changes.add(slot, 'unloaded')
      },
    )
  }

  /** Reloads a plugin from its folder. If the new code cannot be used, the old code goes on. */
  reload(name: string): Promise<void> {
    return this.#change(
      () => this.#slots.subtree(name),
      async () => {
        const slot = this.#find(name)
        if (slot.instance) await (await this.#openReplacements()).reload(slot)
        else await this.#load(slot)
      },
    )
  }

  /**
   * Gives a plugin its present configuration: it takes it while it runs, or is set up again with the same code. If it
   * is invalid, the old configuration goes on.
   */
  reconfigure(name: string): Promise<void> {
    return this.#change(
      () => this.#slots.subtree(name),
      async () => {
        const slot = this.#find(name)
        if (slot.instance) await (await this.#openReplacements()).reconfigure(slot)
        else await this.#load(slot)
      },
    )
  }

  /** A plugin and its dependents. */
  subtree(name: string): readonly string[] {
    return this.#slots.subtree(name)
  }

  /**
   * Loads, reloads or forgets the plugin in a folder after a change of the folder. Does nothing when its code was read
   * from the files with the fingerprint `seen`, such as by an installation that the watcher saw.
   */
  sync(folder: string, seen?: string): Promise<void> {
    const path = resolve(folder)
    return this.#change(
      () => this.#slots.subtree(this.#slots.in(path)?.name ?? ''),
      async () => {
        const { log, loader } = this.#deps
        // Looked up here: what was asked for before may still have to read it.
        if (seen !== undefined && (await loader.stamp(path)) === seen) return
        const slot = this.#slots.in(path)
        if (!findEntry(path)) {
          if (!slot) return
          await this.#forget(slot)
          await this.#loadCopy(slot.name)
        } else if (slot?.instance) {
          await (await this.#openReplacements()).reload(slot)
          log.info(`plugin "${slot.name}" reloaded`)
        } else {
          const coming = slot ?? this.#slots.add(path)
          await this.#load(coming)
          log.info(`plugin "${coming.name}" loaded`)
        }
      },
    )
  }

  plugins(): readonly PluginStatus[] {
    return this.#slots
      .all()
      .map((slot) => statusOf(slot, this.#changes.sourceOf(slot), this.#retired?.count(slot.name) ?? 0))
  }

  /** Definitions of the loaded plugins. */
  definitions(): readonly AnyPlugin[] {
    return this.#slots.loaded().flatMap((slot) => slot.definition ?? [])
  }

  /** Definitions of all plugins whose code was read, loaded or not. */
  known(): readonly AnyPlugin[] {
    return this.#slots.all().flatMap(({ definition }) => definition ?? [])
  }

  /** The plugin that owns a section at the top of the file, loaded or failed. */
  ownerOf(section: string): string | undefined {
    return this.#slots.all().find(({ definition }) => Object.hasOwn(definition?.sections ?? {}, section))?.name
  }

  /** The configuration a plugin runs with; `undefined` if it does not run. */
  configOf(name: string): unknown {
    return this.#slots.all().find((slot) => slot.name === name && slot.instance)?.config
  }

  /** Calls the observer after every change, successful or not. Returns a function that removes it. */
  observe(observer: () => void): () => void {
    this.#observers.add(observer)
    return () => {
      this.#observers.delete(observer)
    }
  }

  /** Announces the end to every plugin, so that work that only waits can stop. */
  leave(): void {
    for (const slot of this.#slots.loaded()) slot.instance?.scope.leave()
  }

  /** Unloads every plugin, dependents first. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#change(
      () => [],
      async () => {
        await this.#retired?.close()
        for (const slot of this.#slots.loaded().toReversed()) await this.#lifecycle.takeDown(slot)
      },
    )
  }

  async #change(affected: () => readonly string[], change: () => Promise<void>): Promise<void> {
    const actor = currentActor()
    let changes: readonly PluginChange[] = []
    try {
      await this.#queue.add(affected, async () => {
        try {
          await change()
        } finally {
          changes = this.#changes.take().map((one) => ({ ...one, actor }))
        }
      })
    } finally {
      for (const observer of this.#observers) observer()
      for (const one of changes) await this.#deps.onChange(one)
    }
  }

  #find(name: string): Slot {
    const slot = this.#slots.find(name)
    if (!slot) {
      const nearest = findNearest(
        name,
        this.#slots.all().map((one) => one.name),
      )
      throw new Refusal('plugin_not_found', `No plugin "${name}"${suggest(nearest)}`)
    }
    return slot
  }

  async #forget(slot: Slot): Promise<void> {
    await this.#takeOut(slot)
    this.#slots.forget(slot)
    this.#changes.add(slot, 'unloaded')
    this.#deps.log.info(`plugin "${slot.name}" unloaded: its folder is gone`)
  }

  /** A plugin that was moved is loaded from its new folder before the watcher notices that the old one is gone. */
  async #forgetMoved({ name, folder }: Slot): Promise<void> {
    const moved = this.#slots.all().find((other) => other.name === name && other.folder !== folder && other.instance)
    if (moved && !this.#deps.builtIns.has(moved.folder) && !findEntry(moved.folder)) await this.#forget(moved)
  }

  /** Loads a plugin that was refused because another one had its name. */
  async #loadCopy(name: string): Promise<void> {
    const copy = this.#slots.all().find((other) => other.name === name && other.state === 'failed')
    if (copy) await this.#load(copy)
  }

  async #load(slot: Slot): Promise<void> {
    await this.#reader.read(slot, true)
    await this.#forgetMoved(slot)
    if (slot.state === 'disabled')
      throw new Refusal('conflict', `Plugin "${slot.name}" is disabled by the configuration`)
    this.#reader.refuseDuplicate(
      slot,
      this.#slots.all().filter(({ instance }) => instance),
    )
    this.#reader.declareLater(slot)
    this.#reader.configure(slot, false)
    if (slot.state === 'loading') await this.#lifecycle.bringUp([slot])
    if (slot.state !== 'loaded')
      throw new Refusal('conflict', `Plugin "${slot.name}" was not loaded: ${slot.error ?? 'unknown reason'}`)
    this.#changes.add(slot, 'loaded')
    await this.#lifecycle.bringUpWaiting(slot)
  }

  async #takeOut(slot: Slot): Promise<void> {
    const dependents = this.#slots.dependents(slot.name)
    const release = this.#deps.hold(this.#slots.subtree(slot.name))
    try {
      for (const dependent of dependents.toReversed()) await this.#lifecycle.takeDown(dependent)
      slot.error = await this.#lifecycle.takeDown(slot)
      await this.#retired?.close(slot.name)
      const gone = [slot, ...dependents]
      for (const dependent of dependents) {
        const id = requiredBy(dependent).find((needed) => gone.some((other) => providedBy(other).includes(needed)))
        this.#changes.fail(dependent, `needs service "${id}": plugin "${slot.name}" was unloaded`, true)
      }
    } finally {
      release()
    }
  }

  /** The code for reloads is loaded with the first one. */
  #openReplacements(): Promise<Replacements> {
    return (this.#replacements ??= this.#createReplacements())
  }

  async #createReplacements(): Promise<Replacements> {
    const { Replacements } = await import('./replacements.ts')
    const replacements = new Replacements(this.#deps, this.#slots, {
      changes: this.#changes,
      reader: this.#reader,
      lifecycle: this.#lifecycle,
      change: (affected, change) => this.#change(affected, change),
    })
    this.#retired = replacements.retired
    return replacements
  }
}
