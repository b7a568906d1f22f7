import { statSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { findNearest, newPermissions, suggest, launcher, typesConfig } from 'svc/internal'
import type { PluginData, PluginStatus } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Fetch, Principal } from 'svc/sdk'
import type { Settings } from '../settings.ts'
import { installDependencies } from './dependencies.ts'
import { refuseNeeded, refuseUnaccepted, toAnswer } from './candidate.ts'
import type { Candidate, Inspected } from './candidate.ts'
import { checkProof, exists, moveFolder, sizeOf, sizeWithoutModules, syncFiles } from './folders.ts'
import { inspectPlugin } from '../inspect/inspect.ts'
import { Placement } from './placement.ts'
import type { PlacementDeps } from './placement.ts'
import { Registry } from './registry.ts'
import { parseSource, toSource } from './request.ts'
import type * as v from 'valibot'
import { displayName } from '../plugin-view.ts'
import type { InstallAnswer, InstallRequest, Registries, Scaffolded, ScaffoldRequest } from '../schema.ts'
import { isEmpty } from './stored-data.ts'
import type { Source } from './request.ts'
import { Staging } from './staging.ts'
import { packFolder } from '../sharing/archive.ts'
import type { PluginSharing } from '../sharing/sharing.ts'
import type { PluginChange } from '../sharing/store.ts'

export interface InstallerDeps extends PlacementDeps {
  readonly settings: Settings
  readonly fetch: Fetch
  /** Where other daemons on the database do the same. */
  readonly sharing: () => Promise<PluginSharing | undefined>
}

export interface UninstallOptions {
  /** Also when other plugins need it. */
  readonly force: boolean
  readonly deletesData?: boolean
  /** Only says what would be deleted. */
  readonly isDryRun?: boolean
}

/** Installs, updates and removes the plugins of the home, one at a time. */
export class Installer {
  readonly #deps: InstallerDeps
  readonly #queue = new SerialQueue()
  readonly #placement: Placement
  constructor(deps: InstallerDeps) {
    this.#deps = deps
    this.#placement = new Placement(deps)
  }

  /** Throws `forbidden` for a caller who may not change the code of this daemon. */
  async authorize({ kind }: Principal, proof: string | undefined, command = 'plugin add'): Promise<void> {
    if (kind !== 'operator') await checkProof(this.#deps.plugins, proof, command)
  }

  /**
   * Installs a plugin and loads it. When it cannot be loaded, the folder and the permissions before are put back, and
   * the code before goes on.
   */
  async install(request: InstallRequest): Promise<v.InferOutput<typeof InstallAnswer>> {
    const { plugins, sharing } = this.#deps
    await using staging = await Staging.make(plugins)
    const found = await this.#stage(staging, toSource(request, isFolder), request)
    const shared = request.dry_run ? undefined : await sharing()
    const archive = shared && (staging.archive ?? (await packFolder(staging.folder)))
    return await this.#queue.run(async () => {
      const candidate = this.#check(found, request)
      if (request.dry_run) return toAnswer(candidate, plugins, false)
      await this.#put(candidate, staging, request)
      const answer = toAnswer(candidate, plugins, true)
      if (shared && archive) {
        const { name, version, permissions } = candidate.inspection
        const signature = request.signature ?? null
        const plugin = { name, version, source: answer.source, signature, permissions: [...permissions] }
        await shared.installed(plugin, archive)
      }
      return answer
    })
  }

  /** Installs what another daemon has installed, by the rules of this one; `false` when it is not current any more. */
  async adopt(
    change: PluginChange,
    readArchive: () => Promise<Uint8Array>,
    isCurrent: () => Promise<boolean>,
  ): Promise<boolean> {
    const { plugins, settings } = this.#deps
    // Where archives are not permitted it comes from where the other daemon had it, if that is permitted here.
    const source: Source = settings.sources.includes('archive')
      ? { kind: 'archive', bytes: await readArchive(), from: change.source }
      : parseSource(change.source)
    const signature = change.signature === null ? {} : { signature: change.signature }
    const request: InstallRequest = {
      ...signature,
      hash: `sha256:${change.sha256}`,
      accept: change.permissions,
      accept_permissions: false,
      update: true,
      dry_run: false,
    }
    await using staging = await Staging.make(plugins)
    const found = await this.#stage(staging, source, request)
    return await this.#queue.run(async () => {
      if (!(await isCurrent())) return false
      await this.#put(this.#check(found, request), staging, request)
      return true
    })
  }

  async #stage(staging: Staging, source: Source, request: InstallRequest): Promise<Inspected> {
    this.#checkPolicy(source)
    await staging.fill(source, request, this.#deps)
    return { ...(await this.#inspect(staging)), source }
  }
  async #put(candidate: Candidate, staging: Staging, request: InstallRequest): Promise<void> {
    refuseUnaccepted(candidate, request)
    await syncFiles(staging.folder)
    await this.#placement.put(candidate, staging.folder)
  }

  /**
   * Unloads a plugin and removes its files; with `deletesData`, what it has stored as well. Resolves to what that is or
   * was; `undefined` without `deletesData`.
   */
  async uninstall(name: string, options: UninstallOptions): Promise<PluginData | undefined> {
    const sharing = await this.#deps.sharing()
    if (options.deletesData) await sharing?.refuseInUse(name)
    return await this.#queue.run(async () => {
      const { data, removed } = await this.#uninstall(name, options)
      // Before the next one in the queue: a daemon that looks meanwhile would install again what the others still have.
      if (removed) await sharing?.removed({ name, version: removed.version, force: options.force })
      return data
    })
  }
  /** Removes what another daemon has removed; `false` when that is not current any more. */
  adoptRemoval({ name, force }: PluginChange, isCurrent: () => Promise<boolean>): Promise<boolean> {
    return this.#queue.run(async () => {
      if (!(await isCurrent())) return false
      if (this.#deps.daemon.plugins().some((one) => one.name === name)) await this.#uninstall(name, { force })
      return true
    })
  }
  async #uninstall(name: string, options: UninstallOptions) {
    const { force, deletesData = false, isDryRun = false } = options
    const { daemon, pluginData } = this.#deps
    const isGone = deletesData && !daemon.plugins().some((one) => one.name === name)
    const data = deletesData ? await pluginData.describe(name) : undefined
    const status = isGone && !isEmpty(data) ? undefined : this.#findOwn(name)
    if (status) refuseNeeded(status, daemon.plugins(), force)
    if (!isDryRun && status) await this.#placement.remove(name, status.version, status.source, data)
    if (!isDryRun && !status && data) await this.#placement.deleteData(name, data)
    return { data, removed: isDryRun ? undefined : status }
  }

  /** Puts the dependencies of an installed plugin in place again, and reloads it. */
  installDependencies(name: string): Promise<readonly string[]> {
    return this.#queue.run(async () => {
      const { plugins, settings, audit } = this.#deps
      const { source } = this.#findOwn(name)
      await using staging = await Staging.make(plugins)
      if (!(await exists(join(source, 'package.json'))))
        throw new Refusal('invalid_request', `Plugin "${name}" has no package.json, which names the dependencies`)
      await copyFile(join(source, 'package.json'), join(staging.folder, 'package.json'))
      const found = await installDependencies(
        staging.folder,
        this.#registry(),
        settings,
        await sizeWithoutModules(source),
      )
      await syncFiles(staging.folder)
      const details = `dependencies of plugin "${name}" installed: ${found.join(', ') || 'none'}`
      await audit.write({ event: 'plugin_changed', details })
      await this.#placement.putModules(basename(source), staging.folder)
      return found
    })
  }

  /** Makes a new plugin and loads it. Throws `conflict` when there is one of this name. */
  scaffold(request: v.InferOutput<typeof ScaffoldRequest>): Promise<v.InferOutput<typeof Scaffolded>> {
    if (request.runtime !== 'node')
      throw new Refusal('invalid_request', `runtime: "${request.runtime}" is not supported; plugins run in "node"`)
    return this.#queue.run(async () => {
      const { plugins, daemon, audit } = this.#deps
      const { LAUNCHER, pluginName, templateFiles } = await import('../scaffold/template.ts')
      const { writeFiles } = await import('../scaffold/write.ts')
      const name = pluginName(request)
      this.#refuseTaken(name, false)
      const files = templateFiles({ ...request, types: typesConfig(), launcher: launcher() })
      await using staging = await Staging.make(plugins)
      await writeFiles(staging.folder, files)
      const target = join(plugins, name)
      await audit.write({ event: 'plugin_changed', details: `plugin "${name}" made from a template` })
      await moveFolder(staging.folder, target)
      await daemon.sync(target)
      return { scaffolded: true, name, path: target, files: [...files.keys()].filter((file) => file !== LAUNCHER) }
    })
  }

  /** The plugins that the registry has; with the reason when it cannot be asked. */
  async searchRegistry(): Promise<v.InferOutput<typeof Registries>['registries'][number]> {
    const { settings, daemon } = this.#deps
    const about = { name: 'npm', url: settings.registry_url, github_repo: null }
    try {
      const installed = new Set(daemon.plugins().map(({ name }) => name))
      const plugins = (await this.#registry().search()).map((found) => {
        const name = found.name.replace(/^.*\//, '').replace(/^svc-/, '')
        return { ...found, display_name: displayName(name), installed: installed.has(name), hooks: [] }
      })
      return { ...about, plugins }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { ...about, plugins: [], error: error.message }
    }
  }

  /** Ends what a crash cut off. */
  recover(): Promise<void> {
    return this.#queue.run(() => this.#placement.recover())
  }

  #checkPolicy({ kind }: Source): void {
    const { sources } = this.#deps.settings
    if (sources.includes(kind)) return
    const permitted = sources.join(', ') || 'nothing'
    throw new Refusal(
      'forbidden',
      `Plugins are not installed from "${kind}": plugins.plugin-admin.sources permits ${permitted}`,
    )
  }

  async #inspect({ folder, hash, signedBy, deprecated }: Staging): Promise<Omit<Inspected, 'source'>> {
    const { settings } = this.#deps
    const dependencies = await installDependencies(folder, this.#registry(), settings, await sizeOf(folder))
    const inspection = await inspectPlugin(folder, settings)
    return { inspection, hash, signedBy, dependencies, deprecated }
  }

  #check(inspected: Inspected, { update }: InstallRequest): Candidate {
    const { plugins, accepted } = this.#deps
    const { name, permissions } = inspected.inspection
    const isUpdate = this.#refuseTaken(name, update)
    const before = isUpdate ? (accepted.of(join(plugins, name)) ?? []) : []
    return { ...inspected, isUpdate, added: newPermissions(before, permissions) }
  }

  /** Whether it is an update. Throws `conflict` when the name is taken. */
  #refuseTaken(name: string, update: boolean): boolean {
    const target = join(this.#deps.plugins, name)
    const other = this.#deps.daemon.plugins().find((one) => one.name === name && one.source !== target)
    if (other?.source === 'built-in')
      throw new Refusal('conflict', `"${name}" is the name of a built-in plugin`, { details: { name } })
    if (other)
      throw new Refusal('conflict', `Plugin "${name}" is loaded from elsewhere: remove that one first`, {
        details: { name },
      })
    if (!isThere(target)) return false
    if (update) return true
    throw new Refusal('conflict', `Plugin "${name}" is installed already: send update to replace it`, {
      details: { name, reason: 'installed_already' },
    })
  }

  #findOwn(name: string): PluginStatus {
    const { daemon, plugins } = this.#deps
    const all = daemon.plugins()
    const status = all.find((one) => one.name === name)
    const nearest = findNearest(
      name,
      all.map((one) => one.name),
    )
    if (!status) throw new Refusal('plugin_not_found', `No plugin "${name}"${suggest(nearest)}`)
    if (status.source !== 'built-in' && join(status.source, '..') === plugins) return status
    const where = status.source === 'built-in' ? 'is built in' : 'lies in a folder of plugins.paths'
    throw new Refusal('conflict', `Plugin "${name}" ${where}: name it in plugins.disabled to switch it off`)
  }

  #registry(): Registry {
    return new Registry(this.#deps.fetch, this.#deps.settings)
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined
