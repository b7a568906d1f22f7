import type { Logger } from '../log/logger.ts'
import type { KeyValueStorage } from '../storage/key-value.ts'
import type { PluginCredentials } from '../auth/credentials.ts'
import type { Hooks } from '../hooks/hook.ts'
import type { Routes } from '../http/route.ts'
import type { Jobs } from '../jobs/job.ts'
import type { Metrics } from '../metrics/metric.ts'
import type { Connect, Listen, OpenWebSocket, PluginNetwork, StartTls } from '../net/connection.ts'
import type { Fetch } from '../net/fetch.ts'
import type { Spawn } from '../process/child.ts'
import type { Dispose } from '../scope/scope.ts'
import type { PluginDatabase } from '../storage/database.ts'
import type { Vault } from '../storage/vault.ts'
import type { Tools } from '../tools/tool.ts'
import type { Services, Tokens } from './define.ts'

/**
 * Every member registers through the scope of the plugin, which undoes it on unload: nothing here returns an
 * "unregister".
 */
export interface PluginContext<C, R extends Tokens, O extends Tokens> {
  /** The validated configuration of the plugin. A change sets the plugin up again, unless `onConfigChange` takes it. */
  readonly config: C
  /**
   * Takes a changed configuration while everything the plugin does goes on. Resolves to whether it could: with `false`
   * or an error the plugin is set up again, as without this. Call it once, in `setup`. `ctx.config` keeps its values.
   * With `isolation = "worker"` it is never asked.
   */
  onConfigChange(take: (config: C) => boolean | Promise<boolean>): void
  /** The services of `requires`, by name. They exist as long as the plugin runs. */
  readonly services: Services<R>
  /** The service, while its plugin is loaded. Call it each time; never keep the result. */
  optional<K extends keyof O>(name: K): Services<O>[K] | undefined
  /** HTTP routes and WebSockets. */
  readonly routes: Routes
  /** Bearer credentials besides the API key, and the count of wrong ones. */
  readonly credentials: PluginCredentials
  /** Listens to hooks of other plugins, and calls its own. */
  readonly hooks: Hooks
  /** Registers tools, and calls those of every plugin. */
  readonly tools: Tools
  /** Key-value storage under the plugin's own prefix. */
  readonly storage: KeyValueStorage
  /** SQL on the tables that `migrations` creates. */
  readonly db: PluginDatabase
  /** Secrets under the plugin's own prefix, encrypted at rest. */
  readonly vault: Vault
  /** Recurring work, at intervals or by a cron expression. */
  readonly jobs: Jobs
  /** Counters, gauges and histograms for `GET /api/metrics`. */
  readonly metrics: Metrics
  /** Requests to other systems. Addresses that are not permitted are refused. */
  readonly fetch: Fetch
  /**
   * Throws `forbidden`, with the setting that would permit it, if a request to this address would be refused. Sends
   * nothing.
   */
  readonly admit: (url: string | URL) => Promise<void>
  /** Connections for protocols other than HTTP, under the rules of `fetch`. They close when the plugin unloads. */
  readonly connect: Connect
  /** Upgrades one of them to TLS, for protocols that begin without it. */
  readonly startTls: StartTls
  /** WebSockets, under the rules of `fetch`. They close when the plugin unloads. */
  readonly webSocket: OpenWebSocket
  /**
   * With `outbound: 'both'` in the definition: the network for addresses that only the configuration file can name,
   * which may be private or on this machine.
   */
  readonly operator?: PluginNetwork
  /** Opens a TCP port at an address of the configuration file. It closes when the plugin unloads. */
  readonly listen: Listen
  /** Starts other programs. */
  readonly spawn: Spawn
  /** The log, with the name of the plugin in each line. */
  readonly log: Logger
  /**
   * Aborts when the plugin begins to unload or the daemon begins to stop, before running work is awaited: for durable
   * work that only waits.
   */
  readonly leaving: AbortSignal
  /** Aborts when this plugin unloads, after its running work had time to end. */
  readonly signal: AbortSignal
  /** Disposes anything the other members do not cover when the plugin unloads. */
  own(label: string, dispose: Dispose): void
  /** Runs work that unloading waits for, such as a turn that outlives its request. */
  run<T>(work: () => Promise<T> | T): Promise<T>
}
