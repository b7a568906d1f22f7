import { basename, resolve } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { currentActor } from '../scope/actor.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import type { Access } from './access.ts'
import type { PluginChange, PluginStatus } from './daemon.ts'
import type { AnyPlugin, ServiceToken } from './define.ts'
import { requiredIds } from './definition.ts'
import { findEntry } from './folders.ts'
import { plan } from './graph.ts'
import { mount } from './instance.ts'
import type { Instance } from './instance.ts'
import { commandLine } from '../process/command-name.ts'
import { omitUndefined } from '../schema/object.ts'
import { isServerAway } from '../storage/failure.ts'
import { StartRefused } from '../errors/start-refused.ts'
import { NewerDatabase } from '../storage/migrate.ts'
import { untilAnswered } from '../storage/until-answered.ts'
import type { HostDeps } from './host-deps.ts'
import { ChangeQueue } from './queue.ts'
import { isWritten } from './section.ts'
import type { Replacements } from './replacements.ts'
import type { RetiredCopies } from './retired-copies.ts'
import { findTaken, providedBy, reasonOf, requiredBy, setupReason, Slots, statusOf, toNode } from './slot.ts'
import type { Ready, Slot } from './slot.ts'

/** How long a plugin that is being set up waits for the server of the database. */
const AWAY_MS = 30_000

/** Loads, replaces and removes plugins, one change at a time. A change affects only the plugin and its dependents. */
export class Host {
  readonly #deps: HostDeps
  readonly #slots = new Slots()
  readonly #queue: ChangeQueue
  readonly #observers = new Set<() => void>()
  #replacements: Promise<Replacements> | undefined
  #retired: RetiredCopies | undefined
  /** What the running change has done so far. */
  #changes: PluginChange[] = []
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
   * require it fail too. Throws `ConfigError` where sections are strict, the `StartRefused` of a plugin, and when the
   * server of the database stays away.
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
        const away = await this.#bringUp(slots.filter(({ state }) => state === 'loading'))
        if (away !== undefined) throw away
        // One that lacks a service at every start has not changed.
        const waiting = new Set(slots.filter((slot) => slot.waiting).map(({ name }) => name))
        this.#forgetChanges(waiting)
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
        this.#note(slot, 'unloaded')
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
    return this.#slots.all().map((slot) => statusOf(slot, this.#sourceOf(slot), this.#retired?.count(slot.name) ?? 0))
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
        for (const slot of this.#slots.loaded().toReversed()) await this.#takeDown(slot)
      },
    )
  }

  async #change(affected: () => readonly string[], change: () => Promise<void>): Promise<void> {
    const actor = currentActor()
    let changes: readonly PluginChange[] = []
    try {
      await this.#queue.add(affected, async () => {
        this.#changes = []
        try {
          await change()
        } finally {
          changes = this.#changes.map((one) => ({ ...one, actor }))
        }
      })
    } finally {
      for (const observer of this.#observers) observer()
      for (const one of changes) await this.#deps.onChange(one)
    }
  }

  #note(slot: Slot, change: PluginChange['change'], reason?: string): void {
    // What failed in between and goes on now is no change.
    this.#forgetChanges(new Set([slot.name]))
    this.#changes.push({
      plugin: slot.name,
      change,
      version: slot.definition?.version ?? '',
      source: this.#sourceOf(slot),
      ...omitUndefined({ reason }),
    })
  }

  #sourceOf({ folder }: Slot): string {
    return this.#deps.builtIns.has(folder) ? 'built-in' : folder
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
    this.#note(slot, 'failed', reason)
  }

  /** Reads the definition into the slot. An error is stored in its status. */
  async #read(slot: Slot, fresh: boolean): Promise<void> {
    // A disabled plugin is not imported if the name of its folder tells that it is disabled.
    if (this.#deps.disabled().includes(basename(slot.folder))) {
      slot.state = 'disabled'
      return
    }
    if (this.#isSetAside(slot, fresh)) return
    try {
      const definition = await this.#deps.loader.load(slot.folder, fresh)
      const state = this.#deps.disabled().includes(definition.name) ? 'disabled' : 'loading'
      Object.assign(slot, {
        name: definition.name,
        definition,
        access: await this.#readAccess(definition, slot.folder),
        state,
        error: undefined,
        waiting: false,
      } satisfies Partial<Slot>)
    } catch (error) {
      this.#fail(slot, reasonOf(error))
    }
  }

  async #readAccess(definition: AnyPlugin, folder: string): Promise<Access> {
    if (this.#deps.builtIns.has(folder)) return 'built-in'
    const { checkAccess } = await import('./access.ts')
    return checkAccess(definition, folder, this.#deps)
  }

  /** A start does not load a plugin that ended the daemon again and again; whoever asks for it tries it again. */
  #isSetAside(slot: Slot, fresh: boolean): boolean {
    const { crashes, log } = this.#deps
    if (fresh) crashes?.forget(slot.folder)
    const reason = crashes?.reasonOf(slot.folder)
    if (reason === undefined) return false
    Object.assign(slot, { state: 'disabled', error: reason } satisfies Partial<Slot>)
    log.error(`plugin "${slot.name}" ${reason}`)
    return true
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

  async #forget(slot: Slot): Promise<void> {
    await this.#takeOut(slot)
    this.#slots.forget(slot)
    this.#note(slot, 'unloaded')
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

  #isBuiltIn(name: string): boolean {
    return this.#slots.all().some((slot) => slot.name === name && this.#deps.builtIns.has(slot.folder))
  }

  async #load(slot: Slot): Promise<void> {
    await this.#read(slot, true)
    await this.#forgetMoved(slot)
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
    this.#note(slot, 'loaded')
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

  /**
   * Sets plugins up in dependency order. A failure is stored in the status of the plugin and its dependents. Returns the
   * error of one that waited in vain for the server of the database.
   */
  async #bringUp(slots: readonly Slot[]): Promise<unknown> {
    const byName = new Map(slots.map((slot) => [slot.name, slot]))
    const { order, refused } = plan(slots.map(toNode), this.#slots.present(), this.#slots.unavailable(slots))
    for (const [name, reason] of refused) {
      const slot = byName.get(name)
      if (slot) this.#fail(slot, reason, true)
    }
    const coming = order.flatMap((name) => byName.get(name) ?? [])
    for (const slot of coming) slot.state = 'loading'
    let away = await this.#migrate(coming)
    for (const slot of coming) {
      if (slot.state !== 'loading' || !slot.definition || !slot.config) continue
      const lacking = requiredIds(slot.definition).find((id) => !this.#slots.present().has(id))
      if (lacking !== undefined)
        this.#fail(
          slot,
          `needs service "${lacking}": ${this.#slots.unavailable([slot]).get(lacking) ?? 'no plugin provides it'}`,
          true,
        )
      else
        away ??= await this.#trySetUp(slot, {
          definition: slot.definition,
          config: slot.config,
          access: slot.access,
        })
    }
    return away
  }

  async #trySetUp(slot: Slot, ready: Ready): Promise<unknown> {
    try {
      await this.#whenAnswered(slot, () => this.#setUp(slot, ready))
      return undefined
    } catch (error) {
      this.#fail(slot, `setup failed: ${await setupReason(error, ready, slot)}`)
      return isServerAway(error) || error instanceof StartRefused ? error : undefined
    }
  }
  /** A server of the database that is away for a moment fails no plugin: nobody would load it when it is back. */
  async #whenAnswered(slot: Slot, work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work()
    } catch (error) {
      if (!isServerAway(error)) throw error
      this.#deps.log.warn(`plugin "${slot.name}" waits for the database: ${reasonOf(error)}`)
    }
    return untilAnswered(work, AbortSignal.timeout(AWAY_MS))
  }

  async #migrate(slots: readonly Slot[]): Promise<unknown> {
    const pending = slots.flatMap((slot) =>
      slot.definition?.migrations ? [{ slot, name: slot.name, migrations: slot.definition.migrations }] : [],
    )
    if (pending.length === 0) return undefined
    let away: unknown
    await this.#deps.beforeMigrations(pending)
    // In parallel, so that the tables of all plugins need few syncs on a first start.
    await Promise.all(
      pending.map(async ({ slot, name, migrations }) => {
        try {
          await this.#whenAnswered(slot, () =>
            this.#deps.migrate(name, migrations, { strict: true, ownTables: slot.access === 'declared' }),
          )
        } catch (error) {
          if (isServerAway(error)) away = error
          const way = error instanceof NewerDatabase ? ` with ${commandLine('restore')}` : ''
          this.#fail(slot, `its tables could not be prepared: ${reasonOf(error)}${way}`)
        }
      }),
    )
    return away
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
      return this.#reportLeftovers(slot, instance)
    } catch (error) {
      const reasons = error instanceof AggregateError ? error.errors.map(reasonOf) : [reasonOf(error)]
      const reason = `did not unload cleanly: ${reasons.join('; ')}`
      this.#deps.log.error(`plugin "${slot.name}" ${reason}`)
      return reason
    } finally {
      slot.instance = undefined
    }
  }

  /** What a plugin made without its context stays in the process until it ends by itself. */
  #reportLeftovers({ name }: Slot, { leftovers }: Instance): string | undefined {
    const left = leftovers?.list() ?? []
    if (left.length === 0) return undefined
    const reason = `left behind ${left.join(', ')}: pass what ends it to ctx.own`
    this.#deps.log.warn(`plugin "${name}" ${reason}`)
    return reason
  }

  async #takeOut(slot: Slot): Promise<void> {
    const dependents = this.#slots.dependents(slot.name)
    const release = this.#deps.hold(this.#slots.subtree(slot.name))
    try {
      for (const dependent of dependents.toReversed()) await this.#takeDown(dependent)
      slot.error = await this.#takeDown(slot)
      await this.#retired?.close(slot.name)
      const gone = [slot, ...dependents]
      for (const dependent of dependents) {
        const id = requiredBy(dependent).find((needed) => gone.some((other) => providedBy(other).includes(needed)))
        this.#fail(dependent, `needs service "${id}": plugin "${slot.name}" was unloaded`, true)
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
      change: (affected, change) => this.#change(affected, change),
      note: (slot, change, reason) => this.#note(slot, change, reason),
      forgetChanges: (plugins) => this.#forgetChanges(plugins),
      fail: (slot, reason) => this.#fail(slot, reason),
      declareWith: (slot, definition) => this.#declareWith(slot, definition),
      setUp: (slot, ready) => this.#setUp(slot, ready),
      takeDown: (slot) => this.#takeDown(slot),
      bringUp: (slots) => this.#bringUp(slots),
      bringUpWaiting: (slot) => this.#bringUpWaiting(slot),
    })
    this.#retired = replacements.retired
    return replacements
  }

  /** What is as before is no change. */
  #forgetChanges(plugins: ReadonlySet<string>): void {
    this.#changes = this.#changes.filter(({ plugin }) => !plugins.has(plugin))
  }
}
