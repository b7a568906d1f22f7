import { basename, join } from 'node:path'
import type { LiveConfig } from '../config/live.ts'
import { PluginChanged } from '../host/daemon.ts'
import { builtInFolders, findEntry, fingerprints, namedFolders } from '../host/folders.ts'
import type { AnyPlugin } from '../host/define.ts'
import { DeprecationWarnings } from '../host/deprecation.ts'
import { Host } from '../host/host.ts'
import { createLoader } from '../host/loader.ts'
import type { Loader } from '../host/loader.ts'
import { parseSections } from '../host/section.ts'
import { PluginWatch } from '../host/plugin-watch.ts'
import { AcceptedPermissionsFile } from '../host/accepted-permissions.ts'
import type { IsolationDeps } from '../host/isolation/isolated-plugin.ts'
import { copyBeforeMigration } from '../host/upgrade.ts'
import type { Home } from './home.ts'
import type { Kernel } from './kernel.ts'
import { createMembers } from './members.ts'
import type { AppOptions } from './options.ts'
import type { PartStack } from './part-stack.ts'
import type { Restrictions } from './restrictions.ts'
import { isolationSettings } from './settings.ts'

/** A plugin whose setup takes longer has failed: the others must not wait for it. */
const SETUP_MS = 30_000

/** The code of the built-in plugins, on its way into memory. */
export interface BuiltInCode {
  readonly loader: Loader
  readonly folders: readonly string[]
  readonly isIsolated: (folder: string) => boolean
  readonly accepted: AcceptedPermissionsFile
  /** Set with the host. */
  known?: IsolationDeps['known']
}

/** The sidecar files of the database that built-in plugins declare. */
export async function builtInSidecars({ loader, folders }: BuiltInCode): Promise<readonly string[]> {
  return listSidecars(await Promise.all(folders.map((folder) => loader.load(folder, false))))
}

function listSidecars(definitions: readonly AnyPlugin[]): readonly string[] {
  return definitions.flatMap(({ databaseSidecars = [] }) => databaseSidecars)
}

/** Starts to import the built-in plugins. Importing takes longest, so it runs while the database opens. */
export async function preloadBuiltIns(
  { loaded: { config }, builtIns }: AppOptions,
  live: LiveConfig,
): Promise<BuiltInCode> {
  const folders = builtIns ?? (await builtInFolders())
  const cacheDir = join(config.home_dir, 'cache', 'plugins')
  const accepted = new AcceptedPermissionsFile(config.home_dir)
  const isIsolated = (folder: string): boolean => {
    const { isolation, isolated } = config.plugins
    const name = basename(folder).replace(/\.m?[jt]s$/, '')
    return isolated.includes(name) || (isolation === 'worker' && accepted.isInstalled(folder))
  }
  const code: Pick<BuiltInCode, 'known'> = {}
  const isolation: IsolationDeps = {
    settings: () => isolationSettings(live.current),
    workFolder: join(config.data_dir, 'plugin-processes'),
    known: () => code.known?.() ?? [],
  }
  const loader = createLoader({
    builtIns: new Set(folders),
    cacheDir,
    isolation: (folder) => (isIsolated(folder) ? isolation : undefined),
  })
  loader.preload(folders.filter((folder) => !config.plugins.disabled.includes(basename(folder))))
  return Object.assign(code, { loader, folders, isIsolated, accepted })
}

export function createHost(options: AppOptions, live: LiveConfig, code: BuiltInCode, home: Home, kernel: Kernel): Host {
  const { log } = options
  const { config } = options.loaded
  const { http, hooks, tools } = kernel
  const { database } = home
  // Loaded with the first plugin that is restricted.
  let restrictions: Promise<Restrictions> | undefined
  const names = (): readonly string[] => host.known().map(({ name }) => name)
  const openRestrictions = (): Promise<Restrictions> =>
    (restrictions ??= import('./restrictions.ts').then(
      ({ Restrictions }) => new Restrictions(log, database.sql, names),
    ))
  const known = (): ReturnType<Host['known']> => host.known()
  code.known = known
  const configOf = (definition: AnyPlugin): Readonly<Record<string, unknown>> =>
    parseSections(definition, live.current, live.sources)
  const deprecated = new DeprecationWarnings(log)
  const host: Host = new Host({
    loader: code.loader,
    log,
    builtIns: new Set(code.folders),
    accepted: home.accepted,
    isIsolated: code.isIsolated,
    drainMs: () => live.current.plugins.drain_ms,
    setupMs: SETUP_MS,
    retirement: () => kernel.settings().retirement,
    watch: () => kernel.settings().watch,
    onChange: (change) => hooks.forPlugin(kernel.scope).emit(PluginChanged, change),
    crashes: home.crashes,
    disabled: () => live.current.plugins.disabled,
    strict: options.strict ?? false,
    declare(definitions) {
      live.declare(definitions)
      kernel.reconfigure(live.current)
    },
    pluginConfig: configOf,
    members: (scope, definition) => {
      deprecated.check(definition)
      return createMembers(
        { kernel, home, log, fetch: options.fetch, jobTimer: options.jobTimer, configOf, known },
        scope,
        definition,
      )
    },
    hold(plugins) {
      const releases = [http.hold(plugins), hooks.hold(plugins), tools.hold(plugins)]
      return () => {
        for (const release of releases) release()
      }
    },
    restrict: async (members, definition) => (await openRestrictions()).restrict(members, definition),
    migrate: async (plugin, migrations, { strict, ownTables }) => {
      if (ownTables) await (await openRestrictions()).checkMigrations(plugin, migrations)
      await database.migrate(plugin, migrations, { strict })
      ;(await restrictions)?.renewTables()
    },
    beforeMigrations: (plugins) =>
      copyBeforeMigration({ database, config, log, sidecars: () => listSidecars(host.known()) }, plugins),
  })
  return host
}

/**
 * Loads the built-in plugins and those of the configuration. Returns the watcher of their folders, which development
 * starts at once.
 */
export async function startPlugins(
  { loaded: { config }, log }: AppOptions,
  host: Host,
  builtIns: readonly string[],
  parts: PartStack,
): Promise<PluginWatch> {
  const roots = [...config.plugins.paths, join(config.home_dir, 'plugins')]
  const outside = await namedFolders(roots)
  // Built code changes only with an installation, which ends in a restart; its sources change during development.
  const sources = config.development ? builtIns.filter((folder) => findEntry(folder)?.endsWith('.ts')) : []
  const known = config.plugins.watch ? await fingerprints([...sources, ...outside]) : new Map<string, string>()
  await host.start([...builtIns, ...outside])
  const watcher = parts.own(
    'plugin watcher',
    new PluginWatch(config.plugins.watch, {
      host,
      log,
      roots,
      folders: sources,
      known,
    }),
  )
  if (config.development) await watcher.start()
  return watcher
}
