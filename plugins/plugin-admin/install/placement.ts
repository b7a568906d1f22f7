import { messageOf } from 'svc/internal'
import { join } from 'node:path'
import type { AcceptedPermissions, Daemon, PluginData, PluginDataService } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import { digestOf } from '../store.ts'
import type { Before, Installed, InstallStore } from '../store.ts'
import type { Candidate } from './candidate.ts'
import {
  dropNote,
  exists,
  FolderSwap,
  isNoted,
  ModulesSwap,
  noteChange,
  removeMoved,
  sweep,
  unfinishedModules,
} from './folders.ts'
import { describeSource } from './request.ts'
import { inUse } from './staging.ts'
import { describeStored } from './stored-data.ts'

export interface PlacementDeps {
  /** The folder of installed plugins. */
  readonly plugins: string
  readonly daemon: Daemon
  readonly accepted: AcceptedPermissions
  readonly audit: Audit
  readonly pluginData: PluginDataService
  readonly store: InstallStore
  readonly log: Logger
}

/**
 * Puts plugins and their dependencies in place and takes them away. A row or a hidden folder says what is under way, so
 * that whatever was cut off ends after the next start with the version before or the new one. One call at a time.
 */
export class Placement {
  readonly #deps: PlacementDeps
  constructor(deps: PlacementDeps) {
    this.#deps = deps
  }

  /** Throws `conflict` when it cannot be loaded; then all is as before. */
  async put({ inspection, source, hash, signedBy, isUpdate }: Candidate, staged: string): Promise<void> {
    const { plugins, store, audit, accepted } = this.#deps
    const { name, version, permissions } = inspection
    const now = new Date().toISOString()
    const swap = new FolderSwap(plugins, name)
    const replaces: Before = { folder: await exists(swap.target), permissions: acceptedFor(accepted, swap.target) }
    const entry: Installed = {
      name,
      version,
      source: describeSource(source),
      hash,
      signed_by: signedBy ?? null,
      permissions,
      state: 'installing',
      previous: (await store.find(name)) ?? null,
      replaces,
      installed_at: now,
      updated_at: now,
    }
    const signed = signedBy === undefined ? '' : `, signed by ${signedBy}`
    const asks = permissions.join(', ') || 'nothing'
    const what = `${name}" ${version} from ${entry.source}, ${hash}${signed}; it may use ${asks}`
    const details = `${isUpdate ? 'update' : 'installation'} of plugin "${what}`
    // That of an earlier update is not taken for this one's.
    await swap.drop()
    await noteChange(plugins, name, digestOf(entry))
    await store.commit([store.put(entry), audit.entry({ event: 'plugin_changed', details })])
    try {
      // Both, until it is decided which code runs.
      await accepted.accept(swap.target, [...(replaces.permissions ?? []), ...permissions])
      await swap.replace(staged)
      await this.#deps.daemon.sync(swap.target)
    } catch (error) {
      await this.#takeBack(entry, swap, messageOf(error))
      const undone = isUpdate ? 'was not updated, the version before goes on' : 'was not installed'
      throw new Refusal('conflict', `Plugin "${name}" ${undone}: ${messageOf(error)}`, {
        details: { name, version, rolled_back: isUpdate },
        cause: error,
      })
    }
    await this.#finish(entry, swap)
  }

  /** Unloads the plugin in a file or folder and removes it; with `data`, what it has stored as well. */
  async remove(name: string, version: string, path: string, data: PluginData | undefined): Promise<void> {
    const { plugins, store, audit } = this.#deps
    const entry = await store.find(name)
    const going = entry && { ...entry, state: data ? ('deleting' as const) : ('removing' as const) }
    const from = entry ? `; it came from ${entry.source}, ${entry.hash}` : ''
    const details = `plugin "${name}" ${version} removed from ${path}${from}`
    if (going) await noteChange(plugins, name, digestOf(going))
    await store.commit([...(going ? [store.put(going)] : []), audit.entry({ event: 'plugin_changed', details })])
    await this.#takeAway(name, path)
    if (data) await this.deleteData(name, data)
    else await store.commit([store.remove(name)])
    await dropNote(plugins, name)
  }

  /** Deletes what a plugin that is gone has stored. */
  async deleteData(name: string, data: PluginData): Promise<void> {
    const { store, audit, pluginData } = this.#deps
    const details = `data of plugin "${name}" deleted: ${describeStored(data)}`
    await pluginData.delete(name, [store.remove(name), audit.entry({ event: 'plugin_changed', details })])
  }

  /** Puts dependencies in place of those of a plugin. Throws `conflict` when it cannot be loaded with them. */
  async putModules(name: string, staging: string): Promise<void> {
    const { plugins, daemon, audit } = this.#deps
    const folder = join(plugins, name)
    const swap = new ModulesSwap(plugins, name)
    try {
      await swap.replace(staging)
      await daemon.sync(folder)
      await swap.drop()
    } catch (cause) {
      await swap.restore()
      const undone = `dependencies of plugin "${name}" were not installed, those before are back: ${messageOf(cause)}`
      await audit.write({ event: 'plugin_changed', details: undone })
      await this.#loadBefore(name, folder)
      throw new Refusal('conflict', `The ${undone}`, { details: { name, rolled_back: true }, cause })
    }
  }

  /** Ends what was cut off. What cannot be ended now stays for the next start. */
  async recover(): Promise<void> {
    const { plugins, store, daemon, log } = this.#deps
    const open = new Set<string>()
    const attempt = async (name: string, end: () => Promise<void>): Promise<void> => {
      try {
        await end()
        log.info(`plugin "${name}": a change that was cut off is complete`)
      } catch (error) {
        open.add(name)
        log.error(`plugin "${name}": a change that was cut off cannot be ended`, error)
      }
    }
    for (const entry of await store.unfinished()) {
      if (await isNoted(plugins, entry.name, digestOf(entry))) {
        await attempt(entry.name, () => this.#end(entry))
        continue
      }
      open.add(entry.name)
      const remedy = `${commandLine(`plugin remove ${entry.name}`)} or install it again`
      log.error(`plugin "${entry.name}": its row says "${entry.state}", which this home has not begun: ${remedy}`)
    }
    for (const name of await unfinishedModules(plugins))
      await attempt(name, async () => {
        if (!(await exists(join(plugins, name)))) return
        await new ModulesSwap(plugins, name).restore()
        await daemon.sync(join(plugins, name))
      })
    await sweep(plugins, inUse, open)
  }

  /** An update is kept when its code runs, and taken back when it does not; a removal is completed. */
  async #end(entry: Installed): Promise<void> {
    const swap = new FolderSwap(this.#deps.plugins, entry.name)
    if (entry.state === 'removing' || entry.state === 'deleting') return await this.#endRemoval(entry, swap.target)
    const status = this.#deps.daemon.plugins().find(({ source }) => source === swap.target)
    const runs = status?.state === 'loaded' && status.version === entry.version
    if (runs && (await swap.isPlaced(beforeOf(entry).folder))) await this.#finish(entry, swap)
    else await this.#takeBack(entry, swap, 'the daemon ended while it was installed')
  }

  async #finish(entry: Installed, swap: FolderSwap): Promise<void> {
    const { store, audit, accepted } = this.#deps
    const { name, version, previous, source, hash } = entry
    await accepted.accept(swap.target, entry.permissions)
    const done = previous ? `updated from ${previous.version} to ${version}` : `${version} installed`
    const details = `plugin "${name}" ${done}, ${source}, ${hash}`
    await store.commit([
      store.put({ ...entry, state: 'installed', previous: null, replaces: null }),
      audit.entry({ event: 'plugin_changed', details }),
    ])
    await swap.drop()
    await dropNote(this.#deps.plugins, name)
  }

  /** Puts folder, permissions and row back to what they were, and loads the code before. */
  async #takeBack(entry: Installed, swap: FolderSwap, reason: string): Promise<void> {
    const { store, audit, accepted } = this.#deps
    const { name, version, previous } = entry
    const { folder, permissions } = beforeOf(entry)
    await swap.restore(folder)
    if (permissions === null) await accepted.forget(swap.target)
    else await accepted.accept(swap.target, permissions)
    const details = `plugin "${name}" ${version} was not installed, the state before is back: ${reason}`
    await store.commit([
      previous ? store.put(previous) : store.remove(name),
      audit.entry({ event: 'plugin_changed', details }),
    ])
    await dropNote(this.#deps.plugins, name)
    await this.#loadBefore(name, swap.target)
  }

  async #endRemoval({ name, state }: Installed, path: string): Promise<void> {
    const { store, pluginData } = this.#deps
    await this.#takeAway(name, path)
    if (state === 'deleting') await this.deleteData(name, await pluginData.describe(name))
    else await store.commit([store.remove(name)])
  }

  async #takeAway(name: string, path: string): Promise<void> {
    const { daemon, accepted } = this.#deps
    const isLoaded = daemon.plugins().some(({ source, state }) => source === path && state === 'loaded')
    if (isLoaded) await daemon.unload(name)
    if (await exists(path)) await removeMoved(path)
    await daemon.sync(path)
    await accepted.forget(path)
  }

  /** Loads what is in the folder again, unless the code before never stopped. */
  async #loadBefore(name: string, folder: string): Promise<void> {
    const { daemon, log } = this.#deps
    const isRunning = daemon.plugins().some(({ source, state }) => source === folder && state === 'loaded')
    if (isRunning && (await exists(folder))) return
    await daemon.sync(folder).catch((error: unknown) => log.warn(`plugin "${name}" is not loaded`, error))
  }
}

/** `null` for a plugin that a person wrote. Of an installed one whose permissions are lost, none is known. */
function acceptedFor(accepted: AcceptedPermissions, folder: string): string[] | null {
  const permissions = accepted.of(folder) ?? (accepted.isInstalled(folder) ? [] : undefined)
  return permissions ? [...permissions] : null
}

function beforeOf({ replaces, previous }: Installed): Before {
  return replaces ?? { folder: previous !== null, permissions: previous?.permissions ?? null }
}
