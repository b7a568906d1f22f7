import { basename, resolve } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { checkAccess } from './access.ts'
import type { Access } from './access.ts'
import type { PluginStatus } from './daemon.ts'
import type { AnyPlugin, ServiceToken } from './define.ts'
import { PluginProblem, providedIds, requiredIds } from './definition.ts'
import { findEntry } from './folders.ts'
import { plan } from './graph.ts'
import { mount } from './instance.ts'
import { commandLine } from '../process/command-name.ts'
import { NewerDatabase } from '../storage/migrate.ts'
import type { HostDeps } from './host-deps.ts'
import { ChangeQueue } from './queue.ts'
import { isWritten } from './section.ts'
import { providedBy, requiredBy, Slots, statusOf, toNode } from './slot.ts'
import type { Slot } from './slot.ts'

/** Validated code and configuration, ready for setup. */
interface Ready {
  readonly definition: AnyPlugin
  readonly config: Readonly<Record<string, unknown>>
  readonly access: Access
}

/** Loads, replaces and removes plugins, one change at a time. A change affects only the plugin and its dependents. */
export class Host {
  readonly #deps: HostDeps
  readonly #slots = new Slots()
  readonly #queue: ChangeQueue
  readonly #observers = new Set<() => void>()
  constructor(deps: HostDeps) {
    this.#deps = deps
    this.#queue = new ChangeQueue(deps.drainMs)
  }

  /** Registers a service of the core. */
  provide<T>(token: ServiceToken<T>, service: T): void {
    this.#slots.provide(token.id, service)
  }

  /**
   * Loads the first plugins, from absolute paths. One that cannot be loaded is reported, and only the plugins that
   * require it fail too. Throws `ConfigError` where sections are strict.
   */
  start(folders: readonly string[]): Promise<void> {
    return this.#change(
      () => [],
      async () => {
        const slots = [...new Set(folders)].map((folder) => this.#slots.add(folder))
        await Promise.all(slots.map((slot) => this.#read(slot, false)))
        await this.#readDisabled(slots)
        for (const slot of slots)
          this.#refuseDuplicate(
            slot,
            slots.slice(0, slots.indexOf(slot)).filter(({ state }) => state === 'loading'),
          )
        this.#declareFirst()
        for (const slot of slots) this.#configure(slot, this.#deps.strict)
        await this.#bringUp(slots.filter(({ state }) => state === 'loading'))
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
      },
    )
  }

  /** Reloads a plugin from its folder. If the new code cannot be used, the old code goes on. */
  reload(name: string): Promise<void> {
    return this.#change(
      () => this.#slots.subtree(name),
      async () => {
        const slot = this.#find(name)
        await (slot.instance ? this.#replace(slot) : this.#load(slot))
      },
    )
  }

  /**
   * Sets a plugin up again with its present configuration and the same code. If that is invalid, the old configuration
   * goes on.
   */
  reconfigure(name: string): Promise<void> {
    return this.#change(
      () => this.#slots.subtree(name),
      async () => {
        const slot = this.#find(name)
        await (slot.instance ? this.#replace(slot, slot.definition) : this.#load(slot))
      },
    )
  }

  /** A plugin and its dependents. */
  subtree(name: string): readonly string[] {
    return this.#slots.subtree(name)
  }

  /** Loads, reloads or forgets the plugin in a folder after a change of the folder. For the watcher. */
  sync(folder: string): Promise<void> {
    const path = resolve(folder)
    return this.#change(
      () => this.#slots.subtree(this.#slots.in(path)?.name ?? ''),
      async () => {
        const { log } = this.#deps
        const slot = this.#slots.in(path)
        if (!findEntry(path)) {
          if (!slot) return
          await this.#takeOut(slot)
          this.#slots.forget(slot)
          log.info(`plugin "${slot.name}" unloaded: its folder is gone`)
        } else if (slot?.instance) {
          await this.#replace(slot)
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
      .map((slot) => statusOf(slot, this.#deps.builtIns.has(slot.folder) ? 'built-in' : slot.folder))
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
        for (const slot of this.#slots.loaded().toReversed()) await this.#takeDown(slot)
      },
    )
  }

  async #change(affected: () => readonly string[], change: () => Promise<void>): Promise<void> {
    try {
      await this.#queue.add(affected, change)
    } finally {
      for (const observer of this.#observers) observer()
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

  #fail(slot: Slot, reason: string, waiting = false): void {
    Object.assign(slot, { state: 'failed', error: reason, waiting } satisfies Partial<Slot>)
    this.#deps.log.error(`plugin "${slot.name}" is not loaded: ${reason}`)
  }

  /** Reads the definition into the slot. An error is stored in its status. */
  async #read(slot: Slot, fresh: boolean): Promise<void> {
    // A disabled plugin is not imported if the name of its folder tells that it is disabled.
    if (this.#deps.disabled().includes(basename(slot.folder))) {
      slot.state = 'disabled'
      return
    }
    try {
      const definition = await this.#deps.loader.load(slot.folder, fresh)
      const state = this.#deps.disabled().includes(definition.name) ? 'disabled' : 'loading'
      Object.assign(slot, {
        name: definition.name,
        definition,
        access: checkAccess(definition, slot.folder, this.#deps),
        state,
        error: undefined,
        waiting: false,
      } satisfies Partial<Slot>)
    } catch (error) {
      this.#fail(slot, reasonOf(error))
    }
  }

  /** The code of built-in plugins is loaded in any case, so their configuration keys are known even when disabled. */
  async #readDisabled(slots: readonly Slot[]): Promise<void> {
    const { builtIns, loader, log } = this.#deps
    const off = slots.filter(({ state, folder }) => state === 'disabled' && builtIns.has(folder))
    await Promise.all(
      off.map(async (slot) => {
        try {
          slot.definition ??= await loader.load(slot.folder, false)
        } catch (error) {
          log.debug(`plugin "${slot.name}" is disabled, and its code cannot be read: ${reasonOf(error)}`)
        }
      }),
    )
  }

  /** Adds the keys of the first plugins. On a restart an invalid section disables its plugin and not the daemon. */
  #declareFirst(): void {
    try {
      this.#deps.declare(this.known())
    } catch (error) {
      if (this.#deps.strict) throw error
      this.#deps.log.error(`the configuration of plugins cannot be used as a whole: ${reasonOf(error)}`)
    }
  }

  /** Reads the configuration of a plugin into the slot. An error is stored in its status. */
  #configure(slot: Slot, strict: boolean): void {
    if (slot.state !== 'loading' || !slot.definition) return
    try {
      slot.config = this.#deps.pluginConfig(slot.definition)
    } catch (error) {
      if (strict && isWritten(error)) throw error
      this.#fail(slot, reasonOf(error))
    }
  }

  #declareLater(slot: Slot): void {
    if (slot.state !== 'loading' || !slot.definition) return
    try {
      this.#declareWith(slot, slot.definition)
    } catch (error) {
      this.#fail(slot, reasonOf(error))
    }
  }

  /** All definitions, with the new one in place of that of the slot. */
  #declareWith(slot: Slot, definition: AnyPlugin): void {
    const others = this.#slots.all().filter((other) => other !== slot)
    this.#deps.declare([...others.flatMap((other) => other.definition ?? []), definition])
  }

  #refuseDuplicate(slot: Slot, others: readonly Slot[]): void {
    const other = others.find((candidate) => candidate !== slot && candidate.name === slot.name)
    if (slot.state !== 'loading') return
    if (other) return this.#fail(slot, `a plugin of this name is loaded from ${other.folder}`)
    if (slot.access === 'declared' && this.#isBuiltIn(slot.name))
      return this.#fail(slot, 'a plugin of this name is built in, and its data would be shared')
    const taken = slot.definition && findTaken(slot.definition, slot, others)
    if (taken !== undefined) this.#fail(slot, taken)
  }

  #isBuiltIn(name: string): boolean {
    return this.#slots.all().some((slot) => slot.name === name && this.#deps.builtIns.has(slot.folder))
  }

  async #load(slot: Slot): Promise<void> {
    await this.#read(slot, true)
    if (slot.state === 'disabled')
      throw new Refusal('conflict', `Plugin "${slot.name}" is disabled by the configuration`)
    this.#refuseDuplicate(
      slot,
      this.#slots.all().filter(({ instance }) => instance),
    )
    this.#declareLater(slot)
    this.#configure(slot, false)
    if (slot.state === 'loading') await this.#bringUp([slot])
    if (slot.state !== 'loaded')
      throw new Refusal('conflict', `Plugin "${slot.name}" was not loaded: ${slot.error ?? 'unknown reason'}`)
    await this.#bringUpWaiting(slot)
  }

  /** Retries plugins that waited for a service, or failed with one, of the changed plugin. */
  async #bringUpWaiting(changed: Slot): Promise<void> {
    const concerned = this.#slots
      .all()
      .filter(
        (slot) =>
          slot.state === 'failed' &&
          slot.definition &&
          slot.config !== undefined &&
          (slot.waiting || requiredBy(slot).some((id) => providedBy(changed).includes(id))),
      )
    const ready = new Set(plan(concerned.map(toNode), this.#slots.present()).order)
    const coming = concerned.filter((slot) => ready.has(slot.name))
    if (coming.length > 0) await this.#bringUp(coming)
  }

  /** Sets plugins up in dependency order. A failure is stored in the status of the plugin and its dependents. */
  async #bringUp(slots: readonly Slot[]): Promise<void> {
    const byName = new Map(slots.map((slot) => [slot.name, slot]))
    const { order, refused } = plan(slots.map(toNode), this.#slots.present(), this.#slots.unavailable(slots))
    for (const [name, reason] of refused) {
      const slot = byName.get(name)
      if (slot) this.#fail(slot, reason, true)
    }
    const coming = order.flatMap((name) => byName.get(name) ?? [])
    for (const slot of coming) slot.state = 'loading'
    await this.#migrate(coming)
    for (const slot of coming) {
      if (slot.state !== 'loading' || !slot.definition || !slot.config) continue
      const lacking = requiredIds(slot.definition).find((id) => !this.#slots.present().has(id))
      if (lacking !== undefined)
        this.#fail(
          slot,
          `needs service "${lacking}": ${this.#slots.unavailable([slot]).get(lacking) ?? 'no plugin provides it'}`,
          true,
        )
      else await this.#trySetUp(slot, { definition: slot.definition, config: slot.config, access: slot.access })
    }
  }

  async #trySetUp(slot: Slot, ready: Ready): Promise<void> {
    try {
      await this.#setUp(slot, ready)
    } catch (error) {
      this.#fail(slot, `setup failed: ${reasonOf(error)}`)
    }
  }

  async #migrate(slots: readonly Slot[]): Promise<void> {
    const pending = slots.flatMap((slot) =>
      slot.definition?.migrations ? [{ slot, name: slot.name, migrations: slot.definition.migrations }] : [],
    )
    if (pending.length === 0) return
    await this.#deps.beforeMigrations(pending)
    // In parallel, so that the tables of all plugins need few syncs on a first start.
    await Promise.all(
      pending.map(async ({ slot, name, migrations }) => {
        try {
          await this.#deps.migrate(name, migrations, { strict: true, ownTables: slot.access === 'declared' })
        } catch (error) {
          const way = error instanceof NewerDatabase ? ` with ${commandLine('restore')}` : ''
          this.#fail(slot, `its tables could not be prepared: ${reasonOf(error)}${way}`)
        }
      }),
    )
  }

  async #setUp(slot: Slot, { definition, config, access }: Ready): Promise<void> {
    const { log, members, restrict, setupMs, drainMs } = this.#deps
    slot.state = 'loading'
    const instance = await mount(definition, config, {
      log,
      members,
      access,
      restrict,
      find: (id) => this.#slots.service(id),
      setupMs,
      drainMs: drainMs(),
    })
    Object.assign(slot, {
      definition,
      config,
      access,
      instance,
      state: 'loaded',
      error: undefined,
      waiting: false,
    } satisfies Partial<Slot>)
  }

  /** Closes the running copy. Returns, and logs, what could not be closed; the plugin is unloaded in any case. */
  async #takeDown(slot: Slot): Promise<string | undefined> {
    const { instance } = slot
    if (!instance) return undefined
    slot.state = 'unloading'
    try {
      await instance.scope.close(this.#deps.drainMs())
      return undefined
    } catch (error) {
      const reasons = error instanceof AggregateError ? error.errors.map(reasonOf) : [reasonOf(error)]
      const reason = `did not unload cleanly: ${reasons.join('; ')}`
      this.#deps.log.error(`plugin "${slot.name}" ${reason}`)
      return reason
    } finally {
      slot.instance = undefined
    }
  }

  async #takeOut(slot: Slot): Promise<void> {
    const dependents = this.#slots.dependents(slot.name)
    const release = this.#deps.hold(this.#slots.subtree(slot.name))
    try {
      for (const dependent of dependents.toReversed()) await this.#takeDown(dependent)
      slot.error = await this.#takeDown(slot)
      const gone = [slot, ...dependents]
      for (const dependent of dependents) {
        const id = requiredBy(dependent).find((needed) => gone.some((other) => providedBy(other).includes(needed)))
        this.#fail(dependent, `needs service "${id}": plugin "${slot.name}" was unloaded`, true)
      }
    } finally {
      release()
    }
  }

  /** `kept` is the code to use; without it the folder is read again. */
  async #replace(slot: Slot, kept?: AnyPlugin): Promise<void> {
    if (!slot.definition || !slot.config) throw new Error(`plugin "${slot.name}" runs without a definition`)
    const old: Ready = { definition: slot.definition, config: slot.config, access: slot.access }
    const next = await this.#readReplacement(slot, kept)
    await this.#deps.beforeMigrations([{ name: slot.name, migrations: next.definition.migrations ?? [] }])
    const dependents = this.#slots.dependents(slot.name)
    const release = this.#deps.hold(this.#slots.subtree(slot.name))
    const since = performance.now()
    try {
      for (const dependent of dependents.toReversed()) await this.#takeDown(dependent)
      const unclean = await this.#takeDown(slot)
      await this.#swap(slot, next, old)
      if (unclean) slot.error = `the copy before ${unclean}`
    } finally {
      await this.#bringUp(dependents)
      release()
      this.#deps.log.debug(`plugin "${slot.name}" was away for ${(performance.now() - since).toFixed(1)} ms`)
    }
    await this.#bringUpWaiting(slot)
  }

  /** The new code, checked against everything that runs. Nothing has changed if this throws. */
  async #readReplacement(slot: Slot, kept: AnyPlugin | undefined): Promise<Ready> {
    try {
      const definition = kept ?? (await this.#deps.loader.load(slot.folder, true))
      if (definition.name !== slot.name)
        throw new PluginProblem(`the folder now holds a plugin named "${definition.name}": unload "${slot.name}" first`)
      const access = checkAccess(definition, slot.folder, this.#deps)
      const taken = findTaken(definition, slot, this.#slots.loaded())
      if (taken !== undefined) throw new PluginProblem(taken)
      this.#declareWith(slot, definition)
      const config = this.#deps.pluginConfig(definition)
      const nodes = this.#slots
        .loaded()
        .map((other) =>
          other === slot
            ? { name: slot.name, requires: requiredIds(definition), provides: providedIds(definition) }
            : toNode(other),
        )
      const [refused] = plan(nodes, this.#slots.coreIds()).refused
      if (refused)
        throw new PluginProblem(refused[0] === slot.name ? refused[1] : `plugin "${refused[0]}" ${refused[1]}`)
      return { definition, config, access }
    } catch (error) {
      throw this.#goesOn(slot, reasonOf(error), error)
    }
  }

  async #swap(slot: Slot, next: Ready, old: Ready): Promise<void> {
    try {
      await this.#migrateReplacement(slot.name, next)
      await this.#setUp(slot, next)
      slot.reloads++
    } catch (error) {
      try {
        await this.#setUp(slot, old)
      } catch (again) {
        this.#fail(
          slot,
          `setup of the new code failed: ${reasonOf(error)}; setup of the old code failed too: ${reasonOf(again)}`,
        )
        throw new Refusal('conflict', `Plugin "${slot.name}" is not loaded: ${slot.error}`, { cause: error })
      }
      throw this.#goesOn(slot, `setup failed: ${reasonOf(error)}`, error)
    }
  }

  async #migrateReplacement(name: string, { definition: { migrations }, access }: Ready): Promise<void> {
    if (migrations) await this.#deps.migrate(name, migrations, { strict: false, ownTables: access === 'declared' })
  }

  #goesOn(slot: Slot, reason: string, cause: unknown): Refusal {
    slot.error = `not reloaded, the code before goes on: ${reason}`
    this.#deps.log.error(`plugin "${slot.name}" ${slot.error}`)
    return new Refusal('conflict', `Plugin "${slot.name}" was ${slot.error}`, { cause })
  }
}

/** The error if another plugin already owns a section of the configuration. */
function findTaken({ sections = {} }: AnyPlugin, slot: Slot, others: readonly Slot[]): string | undefined {
  for (const section of Object.keys(sections)) {
    const owner = others.find((other) => other !== slot && Object.hasOwn(other.definition?.sections ?? {}, section))
    if (owner) return `section [${section}] of the configuration belongs to plugin "${owner.name}"`
  }
  return undefined
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
