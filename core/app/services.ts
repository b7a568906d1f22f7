import { omitUndefined } from '../schema/object.ts'
import { AcceptedPermissions } from '../host/accepted-permissions.ts'
import { Broadcast } from '../host/broadcast-service.ts'
import { Configuration } from '../host/configuration-service.ts'
import type { LiveConfig } from '../config/live.ts'
import { createConfiguration } from '../host/configuration.ts'
import { Daemon, DaemonStopping, DatabaseCopying } from '../host/daemon.ts'
import { createDatabaseSnapshots, DatabaseSnapshots } from '../host/database-snapshots.ts'
import { DatabaseServer } from '../host/database-server.ts'
import { HealthMonitor } from '../host/health.ts'
import type { Host } from '../host/host.ts'
import { Logs } from '../host/logs.ts'
import { createPluginData, PluginDataService } from '../host/plugin-data-service.ts'
import { sectionWarnings } from '../host/section.ts'
import type { Stop, StopRequest } from '../host/stop-request.ts'
import { LogFeed } from '../log/feed.ts'
import { runningCalls } from '../scope/call.ts'
import { describeUnreadable, forgetUnreadable } from '../storage/row-reader.ts'
import type { Home } from './home.ts'
import type { Kernel } from './kernel.ts'
import type { AppOptions } from './options.ts'

export interface ServiceDeps {
  readonly options: AppOptions
  readonly live: LiveConfig
  readonly home: Home
  readonly kernel: Kernel
  readonly host: Host
  readonly health: HealthMonitor
  readonly stopRequest: StopRequest
}

/** Gives the core's own services to the plugins. */
export function provideServices(deps: ServiceDeps): Daemon {
  const { options, live, home, kernel, host } = deps
  const daemon = createDaemon(deps)
  host.provide(Daemon, daemon)
  host.provide(Broadcast, home.database.broadcast)
  host.provide(DatabaseServer, home.database.server)
  host.provide(AcceptedPermissions, home.accepted)
  host.provide(
    PluginDataService,
    createPluginData(home.database, () => host.known().map(({ name }) => name)),
  )
  host.provide(Logs, options.logs ?? new LogFeed())
  host.provide(
    DatabaseSnapshots,
    createDatabaseSnapshots(options.loaded.config, async (file) => {
      await kernel.hooks.forPlugin(kernel.scope).emit(DatabaseCopying, {})
      await home.database.snapshot(file)
    }),
  )
  host.provide(
    Configuration,
    createConfiguration({
      live,
      host,
      reread: options.reread,
      onChange: (config) => kernel.reconfigure(config),
    }),
  )
  return daemon
}

function createDaemon({ options, live, home, kernel, host, health, stopRequest }: ServiceDeps): Daemon {
  const { config } = options.loaded
  const announceStop = ({ reason }: Stop): Promise<void> =>
    kernel.hooks.forPlugin(kernel.scope).emit(DaemonStopping, { reason })
  return {
    build: kernel.build,
    startedAt: new Date().toISOString(),
    get stopping() {
      return stopRequest.reason
    },
    config: () => ({
      dataDir: config.data_dir,
      homeDir: config.home_dir,
      listenAddr: config.listen_addr,
      apiKeySet: live.current.api_key !== undefined,
      logLevel: live.current.log_level,
    }),
    health: () => health.health(),
    warnings: () => health.warnings(),
    plugins: () => host.plugins(),
    reload: (name) => host.reload(name),
    unload: (name) => host.unload(name),
    load: (folder) => host.load(folder),
    sync: (folder) => host.sync(folder),
    setImpaired: (part, reason) => health.setImpaired(part, reason),
    setUnready: (part, reason) => health.setUnready(part, reason),
    setWarnings: (part, warnings) => health.setWarnings(part, warnings),
    setOwnAddresses: (part, addresses) => kernel.ownAddresses.set(part, addresses),
    setLiveness: (liveness) => kernel.setLiveness(liveness),
    remember: (principal) => kernel.http.remember(principal),
    isHeld: (remembered) => kernel.http.isHeld(remembered),
    keyGeneration: () => kernel.http.keyGeneration(),
    keyMark: (salt) => kernel.http.keyMark(salt),
    isReplacedKey: (mark, salt) => kernel.http.isReplacedKey(mark, salt),
    ownPort: kernel.http.ownPort,
    followReads: (listener) =>
      kernel.http.followReads((read) => {
        if (!kernel.scanner.containsSecret([read.path, decoded(read.path)])) listener(read)
      }),
    get isListening() {
      return kernel.listening.isAnnounced
    },
    trackWork: (work) => kernel.listening.trackWork(work),
    openapi: () => kernel.http.openapi(),
    metrics: () => kernel.metrics.render(),
    shutdown: (reason, drainMs) =>
      stopRequest.send({ kind: 'shutdown', reason, ...omitUndefined({ drainMs }) }, runningCalls(), [announceStop]),
    restart: (reason) =>
      stopRequest.send({ kind: 'restart', reason }, runningCalls(), [announceStop, () => home.restarts.increment()]),
  }
}

/** A secret in a query may be encoded; a path that cannot be decoded answered with an error. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path.replaceAll('+', ' '))
  } catch {
    return path
  }
}

/** Sections and keys of the configuration that no plugin reads. */
export function unknownSections(live: LiveConfig, host: Host): readonly string[] {
  return sectionWarnings(live.current, host.plugins(), host.definitions(), live.sources)
}

export function createHealth({ options, live, home, kernel, host }: Omit<ServiceDeps, 'health' | 'stopRequest'>) {
  forgetUnreadable()
  const monitor = new HealthMonitor({
    check: () => home.database.check(),
    panicCount: () => kernel.defects.count,
    restartCount: home.restarts.count,
    log: options.log,
    warnings: () => [
      ...live.warnings,
      ...unknownSections(live, host),
      ...pluginWarnings(host),
      ...kernel.http.warnings(),
      ...describeUnreadable(),
    ],
  })
  options.log.setKnown((part) => monitor.isKnown(part))
  return monitor
}

function pluginWarnings(host: Host): readonly string[] {
  return host.plugins().flatMap(({ name, state, error }) => {
    if (error === undefined) return []
    return state === 'failed' ? `plugin "${name}" is not loaded: ${error}` : `plugin "${name}" ${error}`
  })
}
