import type { Logger } from '../log/logger.ts'
import type { KeyValueStorage } from '../storage/key-value.ts'
import type { PluginCredentials } from '../auth/credentials.ts'
import type { Hooks } from '../hooks/hook.ts'
import type { Routes } from '../http/route.ts'
import type { Jobs } from '../jobs/job.ts'
import type { Metrics } from '../metrics/metric.ts'
import type { Fetch } from '../net/fetch.ts'
import type { Spawn } from '../process/child.ts'
import type { Dispose } from '../scope/scope.ts'
import type { PluginDatabase } from '../storage/database.ts'
import type { Vault } from '../storage/vault.ts'
import type { Tools } from '../tools/tool.ts'
import type { Services, Tokens } from './define.ts'

/** Every member registers through the plugin's scope, so nothing here hands back an "unregister". */
export interface PluginContext<C, R extends Tokens, O extends Tokens> {
  /** The section of the plugin, checked against its schema. A changed section sets the plugin up again. */
  readonly config: C
  /** The services of `requires`, by name. They are there for the whole life of the plugin. */
  readonly services: Services<R>
  /** The service while its plugin is loaded. Ask each time; never keep the answer. */
  optional<K extends keyof O>(name: K): Services<O>[K] | undefined
  /** HTTP routes and WebSockets. */
  readonly routes: Routes
  /** Bearer credentials beside the API key, and the count of wrong ones. */
  readonly credentials: PluginCredentials
  /** Listens to hooks of others and calls the plugin's own. */
  readonly hooks: Hooks
  /** Registers tools, and calls those of every plugin. */
  readonly tools: Tools
  /** Key-value storage under the plugin's own prefix. */
  readonly storage: KeyValueStorage
  /** SQL on the tables that `migrations` makes. */
  readonly db: PluginDatabase
  /** Secrets under the plugin's own prefix, encrypted at rest. */
  readonly vault: Vault
  /** Recurring work, at intervals or by a cron expression. */
  readonly jobs: Jobs
  /** Counters, gauges and histograms for `GET /api/metrics`. */
  readonly metrics: Metrics
  /** Requests to other systems. Addresses that a plugin must not reach are refused. */
  readonly fetch: Fetch
  /** Throws `forbidden`, naming what permits it, when a request to this address would be refused. Sends nothing. */
  readonly admit: (url: string | URL) => Promise<void>
  /** The only door to other programs. */
  readonly spawn: Spawn
  /** The log, with the name of the plugin in each line. */
  readonly log: Logger
  /**
   * Aborts when unloading begins, or the end of the daemon, before running work is waited for: for work that is
   * durable and only waits
   * for somebody.
   */
  readonly leaving: AbortSignal
  /** Aborts when this plugin unloads and its running work had its time to end. */
  readonly signal: AbortSignal
  /** Ties anything the members above do not cover to this plugin's life. */
  own(label: string, dispose: Dispose): void
  /** Runs work that unloading must wait for, such as a turn that outlives its request. */
  run<T>(work: () => Promise<T> | T): Promise<T>
}
