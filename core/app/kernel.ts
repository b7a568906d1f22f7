import type { LiveConfig } from '../config/live.ts'
import {
  crashLimits,
  daemonFolders,
  httpSettings,
  outboundSettings,
  proxySettings,
  toolLimits,
  isolationSettings,
  reloadWatchSettings,
  retirementSettings,
} from './settings.ts'
import { listSecrets, listVariables } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { HookBus } from '../hooks/bus.ts'
import { readBuild } from '../process/installation.ts'
import type { Build } from '../process/installation.ts'
import { AuthenticationFailed, UnrecordedChange } from '../host/daemon.ts'
import type { CrashLimits } from '../host/crash-record.ts'

import { Defects } from '../host/defects.ts'
import type { IsolationSettings } from '../host/isolation/isolated-plugin.ts'
import { Listening } from '../host/listening.ts'
import type { WatchSettings } from '../host/reload-watch.ts'
import type { RetirementSettings } from '../host/retired-copies.ts'
import { Idempotency } from '../http/idempotency.ts'
import type { DaemonLiveness } from '../http/key-owners.ts'
import { createHttp } from '../http/server.ts'
import type { HttpServer, HttpSettings } from '../http/server.ts'
import { MetricRegistry } from '../metrics/registry.ts'
import { OwnAddresses } from '../net/own-addresses.ts'
import { createOutbound } from '../net/outbound.ts'
import type { Outbound, OutboundSettings } from '../net/outbound.ts'
import type { ProxySettings } from '../net/proxy.ts'
import { ProgramNetwork } from '../net/program-network.ts'
import type { DaemonFolders } from '../process/folders.ts'
import { readVariable } from '../process/inherited.ts'
import { limitNesting } from '../schema/nesting.ts'
import { Scope } from '../scope/scope.ts'
import type { Home } from './home.ts'
import type { Database } from '../storage/database.ts'
import { openReservations } from '../storage/reservations.ts'
import { serverAddress } from '../storage/server-address.ts'
import { ToolRegistry } from '../tools/registry.ts'
import type { ToolLimits } from '../tools/registry.ts'
import { SecretScanner } from '../tools/secret-scanner.ts'
import type { AppOptions } from './options.ts'
import type { PartStack } from './part-stack.ts'

/** What plugins register with, and what acts for them. */
export interface Kernel {
  readonly build: Build
  /** The core's own registrations. */
  readonly scope: Scope
  readonly defects: Defects
  readonly metrics: MetricRegistry
  readonly hooks: HookBus
  readonly scanner: SecretScanner
  readonly tools: ToolRegistry
  readonly idempotency: Idempotency
  readonly http: HttpServer
  /** Absent where a test replaces it. */
  readonly outbound: Outbound | undefined
  readonly programNetwork: ProgramNetwork | undefined
  /** Folders that untrusted programs may not read or change. */
  readonly folders: DaemonFolders
  /** Ports the daemon listens on: outbound requests to them are refused. */
  readonly ownPorts: Set<number>
  /** And these. */
  readonly ownAddresses: OwnAddresses
  readonly listening: Listening
  /** What the parts of the core read of the configuration at this moment, each by the function it was given. */
  settings(): KernelSettings
  setLiveness(liveness: DaemonLiveness | undefined): void
  /** Applies a new configuration to everything that keeps a copy of a value. */
  reconfigure(config: Config): void
}

export interface KernelSettings {
  readonly http: HttpSettings
  readonly outbound: OutboundSettings
  readonly programs: ProxySettings
  readonly tools: ToolLimits
  readonly drainMs: number
  readonly crashes: CrashLimits
  readonly retirement: RetirementSettings
  readonly watch: WatchSettings
  readonly isolation: IsolationSettings
}

type KernelHome = Pick<Home, 'database' | 'lock'>
export function createKernel(options: AppOptions, live: LiveConfig, home: KernelHome, parts: PartStack): Kernel {
  const { log, loaded } = options
  const { config } = loaded
  const build = readBuild()
  const scope = new Scope('core')
  const defects = new Defects(log, options.onDefect)
  const metrics = new MetricRegistry()
  const hooks = new HookBus(defects.report)
  const scanner = new SecretScanner()
  for (const secret of options.secrets ?? []) scanner.add(secret)
  const own = { ownPorts: new Set<number>(), ownAddresses: openOwnAddresses(config) }
  const outbound = options.fetch ? undefined : parts.own('outbound', openOutbound(options, live, own))
  const programNetwork = outbound && new ProgramNetwork(outbound, () => proxySettings(live.current), metrics)
  const idempotency = parts.own('idempotency keys', openIdempotency(home.database, defects))
  const shares = new RateShares(live)
  limitNesting(shares.settings.maxJsonDepth)
  const http = createHttp({
    settings: () => shares.settings,
    log: log.withTag('http'),
    metrics,
    build,
    idempotency,
    ...(home.database.broadcast.isShared ? { shared: home.database.sql } : {}),
    isHomePass: home.lock.isPass,
    onDefect: defects.note,
    onAuthFailure: (failure) => void hooks.forPlugin(scope).emit(AuthenticationFailed, failure),
    onUnrecorded: (request) => hooks.forPlugin(scope).emit(UnrecordedChange, request),
  })
  return {
    build,
    scope,
    defects,
    metrics,
    hooks,
    scanner,
    tools: createTools(options, live, defects, scanner),
    idempotency,
    http,
    outbound,
    programNetwork,
    folders: daemonFolders(config, loaded.files, () => live.schema),
    ...own,
    listening: new Listening(),
    settings: () => kernelSettings(shares.settings, live.current),
    setLiveness(liveness) {
      shares.liveness = liveness
      idempotency.setLiveness(liveness)
    },
    reconfigure(next) {
      shares.configure(next)
      limitNesting(shares.settings.maxJsonDepth)
      const secrets = secretsOf(next, live)
      for (const secret of secrets) scanner.add(secret)
      options.onConfig?.(next, secrets)
      http.renewed()
      outbound?.recheck()
      void programNetwork?.recheck().catch((error) => defects.report(error, 'connections of programs under new rules'))
    },
  }
}

/** The settings of HTTP, with the part of a shared rate limit that this daemon allows now. */
class RateShares {
  liveness: DaemonLiveness | undefined
  #daemons = 1
  #config: Config
  #settings: HttpSettings
  constructor({ current }: LiveConfig) {
    this.#config = current
    this.#settings = httpSettings(current)
  }
  get settings(): HttpSettings {
    const daemons = this.liveness?.count() ?? 1
    if (daemons !== this.#daemons) {
      this.#daemons = daemons
      this.configure(this.#config)
    }
    return this.#settings
  }
  configure(config: Config): void {
    this.#config = config
    this.#settings = httpSettings(config, this.#daemons)
  }
}

function kernelSettings(http: HttpSettings, config: Config): KernelSettings {
  return {
    http,
    outbound: outboundSettings(config),
    programs: proxySettings(config),
    tools: toolLimits(config),
    drainMs: config.plugins.drain_ms,
    crashes: crashLimits(config),
    retirement: retirementSettings(config),
    watch: reloadWatchSettings(config),
    isolation: isolationSettings(config),
  }
}

/** Secrets of a configuration, those in the variables that its keys name included. */
function secretsOf(config: Config, live: LiveConfig): readonly string[] {
  const variables = listVariables(config).flatMap((name) => readVariable(name) ?? [])
  return [...listSecrets(config, live.schema), ...variables]
}

function openIdempotency(database: Database, defects: Defects): Idempotency {
  return new Idempotency({
    reservations: openReservations(database.sql, () => new Date().toISOString()),
    broadcast: database.broadcast,
    onDefect: defects.report,
  })
}

function openOwnAddresses({ database_url: url }: Config): OwnAddresses {
  const addresses = new OwnAddresses()
  const server = serverAddress(url)
  if (server) addresses.set('database', [{ ...server, what: 'the database of the daemon is there' }])
  return addresses
}

function openOutbound(
  { log }: AppOptions,
  live: LiveConfig,
  { ownPorts, ownAddresses }: Pick<Kernel, 'ownPorts' | 'ownAddresses'>,
): Outbound {
  return createOutbound({
    settings: () => outboundSettings(live.current),
    log: log.withTag('outbound'),
    own: {
      ports: () => ownPorts,
      names: () => live.current.http.allowed_hosts,
      addresses: () => ownAddresses.all(),
    },
  })
}

function createTools({ log }: AppOptions, live: LiveConfig, defects: Defects, scanner: SecretScanner): ToolRegistry {
  return new ToolRegistry({
    limits: () => toolLimits(live.current),
    onDefect: defects.report,
    secrets: scanner,
    onSecret: (tool, { agentId }) => log.warn(`a call of ${tool} by agent ${agentId} held a secret and was refused`),
  })
}
