import type { DaemonLiveness } from '../http/key-owners.ts'
import type { OwnPort } from '../http/own-port.ts'
import type { ReadAnswer } from '../http/read-answer.ts'
import type { OwnAddress } from '../net/own-addresses.ts'
import type { Principal } from '../auth/principal.ts'
import type { Build } from '../process/installation.ts'
import type { Actor } from '../scope/actor.ts'
import type { Entry } from '../scope/scope.ts'
import { gate, notify } from '../hooks/hook.ts'
import type { Access } from './access.ts'
import { defineService } from './define.ts'
import type { PageDeclaration } from './define.ts'

export interface PluginStatus {
  readonly name: string
  readonly version: string
  readonly state: 'loaded' | 'loading' | 'unloading' | 'failed' | 'disabled'
  /** Folder it was loaded from, or `built-in`. */
  readonly source: string
  readonly requires: readonly string[]
  readonly provides: readonly string[]
  readonly ledger: readonly Entry[]
  /** The pages of a loaded plugin, and the folder their files are relative to. */
  readonly pages: readonly PageDeclaration[]
  readonly folder: string
  readonly reloads: number
  /** Old copies whose calls still run. */
  readonly retired: number
  /** Why it is not loaded, or why the last change to it failed while the old code goes on. */
  readonly error: string | undefined
  /** `worker`: its code runs in a process of its own. */
  readonly isolation: 'none' | 'worker'
  /** What it may use: everything, or what it declares. */
  readonly access: Access
  /** What it declares, such as `host:api.example.org`. */
  readonly permissions: readonly string[]
}

export interface Health {
  readonly status: 'ok' | 'degraded'
  readonly uptimeSecs: number
  /** Defects since the daemon was started. */
  readonly panicCount: number
  /** Restarts requested since the home was created. */
  readonly restartCount: number
  readonly database: 'connected' | 'error'
  /** Parts because of which no requests are to be sent here. */
  readonly unready: readonly string[]
}

/** The part of the configuration a plugin may see. No secrets. */
export interface DaemonConfig {
  readonly dataDir: string
  readonly homeDir: string
  readonly listenAddr: string
  readonly apiKeySet: boolean
  readonly logLevel: string
}

/** The daemon itself, provided by the core to every plugin that requires it. */
export interface Daemon {
  readonly build: Build
  /** ISO 8601 UTC. The same for the whole life of this daemon, whatever is reloaded meanwhile. */
  readonly startedAt: string
  /** Why the daemon is going down, from the moment this was asked for; `undefined` while it stays up. */
  readonly stopping: string | undefined
  config(): DaemonConfig
  health(): Health
  /** What is wrong with the configuration and with plugins, a line each. */
  warnings(): readonly string[]
  plugins(): readonly PluginStatus[]
  /** Queued; starts when the request that asked for it has been answered. Rejects when the change failed. */
  reload(plugin: string): Promise<void>
  unload(plugin: string): Promise<void>
  /** Loads the plugin in a folder. */
  load(folder: string): Promise<void>
  /** Loads, reloads or forgets the plugin in a folder, as it is on disk. */
  sync(folder: string): Promise<void>
  /** Reports the daemon as degraded because of this part; a reason of `undefined` takes it back. */
  setImpaired(part: string, reason: string | undefined): void
  /** The same, and `GET /api/ready` fails meanwhile: what is asked of this daemon goes better elsewhere. */
  setUnready(part: string, reason: string | undefined): void
  /** Shows these warnings of a part beside the others; an empty list takes them back. */
  setWarnings(part: string, warnings: readonly string[]): void
  /** Refuses requests that go out to these addresses, whatever the configuration permits; an empty list takes it back. */
  setOwnAddresses(part: string, addresses: readonly OwnAddress[]): void
  /**
   * Which daemons on the database are alive, from whoever knows: what a dead one began under an Idempotency-Key is taken
   * over, and a shared rate limit is divided by their number. `undefined` takes it back.
   */
  setLiveness(liveness: DaemonLiveness | undefined): void
  /**
   * What a principal presented beside the API key, as text to store that opens nothing; `undefined` of one who presented
   * no such credential.
   */
  remember(principal: Principal): string | undefined
  /** Whether what was remembered, here or at another daemon on the database, is still accepted. */
  isHeld(remembered: string): boolean
  /** Differs once the API key is another one. */
  keyGeneration(): number
  /** Tells the API key in force from others, to whoever knows the salt: the same at every daemon with the same key. */
  keyMark(salt: string): string
  /** Whether this mark is that of a key which was in force at this daemon, since its start, and no longer is. */
  isReplacedKey(mark: string, salt: string): boolean
  readonly ownPort: OwnPort
  /**
   * Tells the listener of each read-only request of the operator that was answered with JSON, and holds no secret that
   * is known or named as one, until the returned function is called. There is one listener: a later one replaces it.
   */
  followReads(listener: (read: ReadAnswer) => void): () => void
  /** Whether `DaemonListening` was emitted: plugins that are set up later are not told. */
  readonly isListening: boolean
  /** Tests wait for this work of a plugin before they go on. Whoever starts it handles its failure. */
  trackWork(work: Promise<unknown>): void
  /** OpenAPI 3.0 of the routes that are live now. */
  openapi(): Promise<object>
  /** Prometheus text format 0.0.4. */
  metrics(): string
  /**
   * Stops after the current request has been answered. `drainMs`: how long other requests may take to end, instead of
   * `plugins.drain_ms`.
   */
  shutdown(reason: string, drainMs?: number): void
  restart(reason: string): void
}
export const Daemon = defineService<Daemon>()('daemon')

/**
 * A client used a wrong key. Emitted a limited number of times per address and minute: beyond that, requests are
 * refused before the key is compared.
 */
export const AuthenticationFailed = notify<{
  readonly clientAddress: string
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly what?: string
}>('daemon:authentication-failed')

/** A request with a lasting effect left no record. It is answered when the listeners have ended. */
export const UnrecordedChange = notify<{ readonly method: string; readonly path: string }>('daemon:unrecorded-change')

/**
 * A plugin was changed while the daemon runs, by a request, a file or by itself. `reconfigured`: it took a changed
 * configuration and was not set up again. `failed`: it is not loaded, or the code before goes on. `reverted`: the code
 * before is used again, because calls of the new code failed.
 */
export const PluginChanged = notify<PluginChange>('daemon:plugin-changed')
export interface PluginChange {
  readonly plugin: string
  readonly change: 'loaded' | 'reloaded' | 'reconfigured' | 'unloaded' | 'reverted' | 'failed'
  readonly version: string
  /** Folder it was loaded from, or `built-in`. */
  readonly source: string
  /** Why it failed or was reverted. */
  readonly reason?: string
  /** Who asked for it; `undefined` for a changed file and for the daemon itself. */
  readonly actor?: Actor | undefined
}

/**
 * The daemon is going to stop, and still answers. It goes on answering until the listeners have ended, at most for
 * `plugins.drain_ms`: so a load balancer has time to look elsewhere.
 */
export const DaemonStopping = notify<{ readonly reason: string }>('daemon:stopping')

/**
 * The daemon is going to copy its database, for a backup or beside it. It waits for the listeners: what they are about to
 * delete is not to be in the copy.
 */
export const DatabaseCopying = notify<object>('daemon:database-copying')

/** The plugins are loaded, and the port opens when the listeners have ended. A veto ends the start. */
export const ListeningStarting = gate<object>('daemon:listening-starting')
/** The port is open. Log lines of fast listeners appear before the last line of the greeting. */
export const DaemonListening = notify<{ readonly url: string }>('daemon:listening')
