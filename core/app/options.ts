import type { Log } from '../log/log.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { OnDefect } from '../errors/defect.ts'
import type { JobTimer } from '../jobs/timer.ts'
import type { LogFeed } from '../log/feed.ts'
import type { Fetch } from '../net/fetch.ts'

export interface AppOptions {
  /** The configuration of its sources. The keys that plugins own are completed when their code is read. */
  readonly loaded: LoadedConfig
  /** Reads the sources of the configuration again. Absent: it cannot be changed while the daemon runs. */
  readonly reread?: () => Promise<LoadedConfig>
  /** The lines of `log`, for those who follow them. */
  readonly logs?: LogFeed
  /**
   * Called with every configuration that takes effect and the secrets in it, for instance to change the level and the
   * mask of the log.
   */
  readonly onConfig?: (config: Config, secrets: readonly string[]) => void
  readonly log: Log
  /** Folders of built-in plugins. Default: those that ship with the daemon. */
  readonly builtIns?: readonly string[]
  /** Throws `ConfigError` for a section of a plugin that is written wrong. Without it that plugin is not loaded. */
  readonly strict?: boolean
  /** Secrets beside those of the configuration and the vault: tools that send data away do not get them. */
  readonly secrets?: readonly string[]
  /** Replaces outbound requests, for tests. */
  readonly fetch?: Fetch
  /** Says when the jobs of a plugin run instead of the clock, for tests. */
  readonly jobTimer?: (plugin: string) => JobTimer
  /** Called for every defect, beside the log. */
  readonly onDefect?: OnDefect
}
