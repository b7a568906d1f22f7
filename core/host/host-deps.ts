import type { ConsolaInstance } from 'consola'
import type { AnyPlugin, Migration } from './define.ts'
import type { Mounting } from './instance.ts'
import type { Loader } from './loader.ts'

/** What the host works with; the composition root makes it. */
export interface HostDeps {
  readonly loader: Loader
  readonly log: ConsolaInstance
  readonly builtIns: ReadonlySet<string>
  /** Names of plugins that are not loaded. */
  readonly disabled: () => readonly string[]
  /**
   * The code of these plugins was read: the configuration takes the keys they own. Throws `ConfigError` for values
   * that do not fit.
   */
  readonly declare: (definitions: readonly AnyPlugin[]) => void
  /** The plugin's sections of the configuration, parsed. Throws `ConfigError`. */
  readonly pluginConfig: (definition: AnyPlugin) => unknown
  /** A section somebody wrote wrong ends the start instead of the plugin. */
  readonly strict: boolean
  readonly drainMs: () => number
  readonly setupMs: number
  readonly members: Mounting['members']
  /** Lets new work of these plugins wait until the returned function is called. */
  readonly hold: (plugins: readonly string[]) => () => void
  /** `strict` refuses tables that a newer version changed. */
  readonly migrate: (
    plugin: string,
    migrations: readonly Migration[],
    options?: { readonly strict: boolean },
  ) => Promise<unknown>
  /** Called before migrations are applied. */
  readonly beforeMigrations: (
    plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
  ) => Promise<void>
}
