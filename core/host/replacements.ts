import { Refusal } from '../errors/error.ts'
import type { Scope } from '../scope/scope.ts'
import { checkAccess } from './access.ts'
import type { ChangeRecord } from './change-record.ts'
import type { AnyPlugin } from './define.ts'
import { PluginProblem, providedIds, requiredIds } from './definition.ts'
import { plan } from './graph.ts'
import type { DefinitionReader } from './definition-reader.ts'
import type { HostDeps } from './host-deps.ts'
import type { PluginLifecycle } from './lifecycle.ts'
import { watchReload } from './reload-watch.ts'
import { RetiredCopies } from './retired-copies.ts'
import { findTaken, reasonOf, setupReason, toNode } from './slot.ts'
import type { Ready, Slot, Slots } from './slot.ts'

/** The parts of the host that a replacement goes through. */
export interface HostParts {
  readonly changes: ChangeRecord
  readonly reader: DefinitionReader
  readonly lifecycle: PluginLifecycle
  /** Runs a change after those that were asked for before; `affected` returns the plugins that it unloads. */
  change(affected: () => readonly string[], change: () => Promise<void>): Promise<void>
}

/** How long a reload waits for calls that end at once before the new code is set up beside them. */
const RETIRE_GRACE_MS = 50

/** Replaces running plugins by new code or configuration. */
export class Replacements {
  readonly retired: RetiredCopies
  readonly #deps: HostDeps
  readonly #slots: Slots
  readonly #host: HostParts

  constructor(deps: HostDeps, slots: Slots, host: HostParts) {
    this.#deps = deps
    this.#slots = slots
    this.#host = host
    this.retired = new RetiredCopies(deps.retirement, deps.log)
  }

  /** Replaces the code with that in the folder, and watches it. */
  async reload(slot: Slot): Promise<void> {
    const before = slot.instance?.scope.counts ?? { calls: 0, failures: 0 }
    const old = runningOf(slot)
    await this.#exchange(slot, await this.#readReplacement(slot))
    this.#host.changes.add(slot, 'reloaded')
    const scope = slot.instance?.scope
    if (!scope) return
    slot.previous = old
    watchReload(scope, before, this.#deps.watch(), (reason) => this.#revert(slot, scope, reason))
  }

  /** Gives the running copy its present configuration; one that cannot take it is set up again with the same code. */
  async reconfigure(slot: Slot): Promise<void> {
    const next = await this.#readReplacement(slot, slot.definition)
    if (next.access === slot.access && (await this.#takesConfig(slot, next))) {
      Object.assign(slot, { config: next.config, error: undefined } satisfies Partial<Slot>)
      this.#host.changes.add(slot, 'reconfigured')
      return
    }
    await this.#exchange(slot, next)
    this.#host.changes.add(slot, 'reloaded')
  }

  async #takesConfig({ name, instance }: Slot, { config }: Ready): Promise<boolean> {
    try {
      return (await instance?.takeConfig(config)) === true
    } catch (error) {
      this.#deps.log.error(`plugin "${name}" failed to take its new configuration and is set up again`, error)
      return false
    }
  }

  /** Goes back to the code before, because calls of the new one fail. */
  #revert(slot: Slot, failing: Scope, reason: string): void {
    const change = this.#host.change(
      () => this.#slots.subtree(slot.name),
      async () => {
        const { previous } = slot
        // It was changed meanwhile.
        if (!previous || slot.instance?.scope !== failing) return
        slot.previous = undefined
        const { config } = await this.#readReplacement(slot, previous.definition)
        await this.#exchange(slot, { ...previous, config })
        slot.error = `went back to the code before: ${reason}`
        this.#deps.log.error(`plugin "${slot.name}" ${slot.error}`)
        this.#host.changes.add(slot, 'reverted', reason)
      },
    )
    change.catch((error: unknown) => this.#deps.log.error(`plugin "${slot.name}" keeps its new code`, error))
  }

  /** Replaces the running copy and sets its dependents up again. If anything fails, all of them are as before. */
  async #exchange(slot: Slot, next: Ready): Promise<void> {
    const old = runningOf(slot)
    await this.#deps.beforeMigrations([{ name: slot.name, migrations: next.definition.migrations ?? [] }])
    const dependents = this.#slots.dependents(slot.name)
    const release = this.#deps.hold(this.#slots.subtree(slot.name))
    const since = performance.now()
    try {
      for (const dependent of dependents.toReversed()) await this.#setAside(dependent)
      const unclean = await this.#setAside(slot)
      await this.#swap(slot, dependents, next, old)
      if (unclean) slot.error = `the copy before ${unclean}`
    } finally {
      release()
      this.#deps.log.debug(`plugin "${slot.name}" was away for ${(performance.now() - since).toFixed(1)} ms`)
    }
    slot.previous = undefined
    await this.#host.lifecycle.bringUpWaiting(slot)
  }

  /** Takes a running copy away for its replacement; calls that run may go on where the plugin permits it. */
  async #setAside(slot: Slot): Promise<string | undefined> {
    const { instance, access, definition } = slot
    const overlaps = definition?.reload === undefined ? access !== 'built-in' : definition.reload === 'overlap'
    if (!instance || !overlaps) return this.#host.lifecycle.takeDown(slot)
    const graceMs = Math.min(RETIRE_GRACE_MS, this.#deps.drainMs())
    const retired = await instance.scope.retire(graceMs).catch((error: unknown) => {
      this.#deps.log.error(`plugin "${slot.name}" did not retire cleanly`, error)
      return false
    })
    if (retired) return this.#host.lifecycle.takeDown(slot)
    slot.instance = undefined
    this.retired.add(instance.scope)
    return undefined
  }

  /** The new code, checked against everything that runs. Nothing has changed if this throws. */
  async #readReplacement(slot: Slot, kept?: AnyPlugin): Promise<Ready> {
    try {
      const definition = kept ?? (await this.#deps.loader.load(slot.folder, true))
      if (definition.name !== slot.name)
        throw new PluginProblem(`the folder now holds a plugin named "${definition.name}": unload "${slot.name}" first`)
      const access = checkAccess(definition, slot.folder, this.#deps)
      const taken = findTaken(definition, slot, this.#slots.loaded())
      if (taken !== undefined) throw new PluginProblem(taken)
      this.#host.reader.declareWith(slot, definition)
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

  async #swap(slot: Slot, dependents: readonly Slot[], next: Ready, old: Ready): Promise<void> {
    const reason = await this.#attempt(slot, dependents, next)
    if (reason === undefined) {
      slot.reloads++
      return
    }
    try {
      await this.#host.lifecycle.setUp(slot, old)
    } catch (again) {
      const older = await setupReason(again, old, slot)
      this.#host.changes.fail(
        slot,
        `the new code cannot be used: ${reason}; setup of the old code failed too: ${older}`,
      )
      await this.#host.lifecycle.bringUp(dependents)
      throw new Refusal('conflict', `Plugin "${slot.name}" is not loaded: ${slot.error}`)
    }
    await this.#host.lifecycle.bringUp(dependents)
    // Those that failed with the new code run again.
    const running = new Set(dependents.filter(({ state }) => state === 'loaded').map(({ name }) => name))
    this.#host.changes.forget(running)
    throw this.#goesOn(slot, reason)
  }

  /** Sets up new code and the dependents of the plugin. Returns why that failed; then none of them runs. */
  async #attempt(slot: Slot, dependents: readonly Slot[], next: Ready): Promise<string | undefined> {
    try {
      const { definition, access } = next
      if (definition.migrations)
        await this.#deps.migrate(slot.name, definition.migrations, { strict: false, ownTables: access === 'declared' })
      await this.#host.lifecycle.setUp(slot, next)
    } catch (error) {
      return `setup failed: ${await setupReason(error, next, slot)}`
    }
    await this.#host.lifecycle.bringUp(dependents)
    const failed = dependents.find(({ state }) => state !== 'loaded')
    if (!failed) return undefined
    const reason = `plugin "${failed.name}" fails with the new code: ${failed.error ?? failed.state}`
    for (const running of [slot, ...dependents].toReversed()) await this.#host.lifecycle.takeDown(running)
    return reason
  }

  /** The keys of the new code may have been declared. */
  #declareAgain(slot: Slot): void {
    try {
      if (slot.definition) this.#host.reader.declareWith(slot, slot.definition)
    } catch (error) {
      this.#deps.log.warn(`the configuration does not fit plugin "${slot.name}", which goes on`, error)
    }
  }

  #goesOn(slot: Slot, reason: string, cause?: unknown): Refusal {
    this.#declareAgain(slot)
    slot.error = `not reloaded, the code before goes on: ${reason}`
    this.#deps.log.error(`plugin "${slot.name}" ${slot.error}`)
    this.#host.changes.add(slot, 'failed', slot.error)
    return new Refusal('conflict', `Plugin "${slot.name}" was ${slot.error}`, { cause })
  }
}

/** What a loaded plugin runs with. */
function runningOf({ name, definition, config, access }: Slot): Ready {
  if (!definition || !config) throw new Error(`plugin "${name}" runs without a definition`)
  return { definition, config, access }
}
