import type { ConsolaInstance } from 'consola'
import type { AcceptedPermissions } from './accepted-permissions.ts'
import type { PluginChange } from './daemon.ts'
import type { CrashRecord } from './crash-record.ts'
import type { AnyPlugin, Migration } from './define.ts'
import type { Mounting } from './instance.ts'
import type { Loader } from './loader.ts'
import type { WatchSettings } from './reload-watch.ts'
import type { RetirementSettings } from './retired-copies.ts'

export interface MigrationRules {
  readonly strict: boolean
  readonly ownTables: boolean
}

/** Dependencies of the host. */
export interface HostDeps {
  readonly loader: Loader
  readonly log: ConsolaInstance
  readonly builtIns: ReadonlySet<string>
  /** What was accepted for installed plugins. */
  readonly accepted: Pick<AcceptedPermissions, 'of' | 'problem'>
  /** Whether the code of the plugin in this folder runs in a process of its own. */
  readonly isIsolated: (folder: string) => boolean
  /** Plugins that ended the daemon again and again. */
  readonly crashes?: Pick<CrashRecord, 'reasonOf' | 'forget'>
  /** Names of plugins that are not loaded. */
  readonly disabled: () => readonly string[]
  /** Adds the keys these plugins own to the configuration. Throws `ConfigError` for values that do not fit. */
  readonly declare: (definitions: readonly AnyPlugin[]) => void
  /** The plugin's sections of the configuration, parsed. Throws `ConfigError`. */
  readonly pluginConfig: (definition: AnyPlugin) => Readonly<Record<string, unknown>>
  /** An invalid section ends the start instead of only its plugin. */
  readonly strict: boolean
  readonly drainMs: () => number
  readonly setupMs: number
  readonly retirement: () => RetirementSettings
  readonly watch: () => WatchSettings
  /** Announces what has changed. Never rejects. */
  readonly onChange: (change: PluginChange) => Promise<void>
  readonly members: Mounting['members']
  readonly restrict: Mounting['restrict']
  /** Holds new work of these plugins until the returned function is called. */
  readonly hold: (plugins: readonly string[]) => () => void
  /** `strict`: refuse tables that a newer version changed. `ownTables`: refuse SQL on tables of others. */
  readonly migrate: (plugin: string, migrations: readonly Migration[], options: MigrationRules) => Promise<unknown>
  /** Called before migrations are applied. */
  readonly beforeMigrations: (
    plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
  ) => Promise<void>
}
