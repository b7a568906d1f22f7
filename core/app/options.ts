import type { ConsolaInstance } from 'consola'
import type { Connector } from 'db0'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { OnDefect } from '../errors/defect.ts'
import type { LogFeed } from '../log/feed.ts'
import type { Fetch } from '../net/fetch.ts'

export interface AppOptions {
  readonly config: Config
  /** Reads the sources of the configuration again. Absent: it cannot be changed while the daemon runs. */
  readonly reread?: () => Promise<LoadedConfig>
  /** Dotted key to the source of its value, from loading. */
  readonly sources?: ReadonlyMap<string, string>
  /** The lines of `log`, for those who follow them. */
  readonly logs?: LogFeed
  /** Called with every configuration that takes effect while running, for instance to change the level of the log. */
  readonly onConfig?: (config: Config) => void
  readonly log: ConsolaInstance
  /** Folders of built-in plugins. Default: those that ship with the daemon. */
  readonly builtIns?: readonly string[]
  /** Throws `ConfigError` for a section of a plugin that is written wrong. Without it that plugin is not loaded. */
  readonly strict?: boolean
  /** Warnings of loading the configuration, for the health detail. */
  readonly warnings?: readonly string[]
  /** The files the configuration was read from. */
  readonly files?: readonly string[]
  /** Secrets beside those of the configuration and the vault: tools that send data away do not get them. */
  readonly secrets?: readonly string[]
  /** A db0 connector instead of the one of `database_url`, for tests. */
  readonly connector?: Connector
  /** Replaces outbound requests, for tests. */
  readonly fetch?: Fetch
  /** Called for every defect, beside the log. */
  readonly onDefect?: OnDefect
}
