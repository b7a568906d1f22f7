import { randomUUID } from 'node:crypto'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConsolaInstance } from 'consola'
import type { Connector } from 'db0'
import { readBuild } from './build/info.ts'
import { Configuration } from './config/configuration.ts'
import { toListenAddr } from './config/listen.ts'
import { daemonFolders, httpSettings, outboundSettings, PROVIDERS, proxySettings, section } from './config/parts.ts'
import { listSecrets } from './config/redact.ts'
import { LiveConfig } from './config/live.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { OnDefect } from './errors/defect.ts'
import { HookBus } from './hooks/bus.ts'
import { createConfiguration } from './host/configuration.ts'
import { AuthenticationFailed, Daemon, DaemonListening, UnrecordedChange } from './host/daemon.ts'
import { Logs } from './host/logs.ts'
import { copyBeforeMigration } from './host/upgrade.ts'
import { builtInFolders, findEntry, fingerprints, namedFolders } from './host/folders.ts'
import { endWithin } from './host/ending.ts'
import { HealthMonitor } from './host/health.ts'
import { checkedHooks } from './host/declared-hooks.ts'
import { Host } from './host/host.ts'
import { createLoader } from './host/loader.ts'
import { createDatabaseSnapshots, DatabaseSnapshots } from './host/database-snapshots.ts'
import { Stopping } from './host/stopping.ts'
import type { Stop } from './host/stopping.ts'
import { Guards } from './host/guards.ts'
import { Guests, lazyGuests } from './host/guests.ts'
import { installedGuards } from './host/installed.ts'
import { parseSection, sectionWarnings } from './host/section.ts'
import { PluginWatch } from './host/watch.ts'
import { Idempotency } from './http/idempotency.ts'
import type { AnyRoute, AnySocketRoute } from './http/route.ts'
import { createHttp } from './http/server.ts'
import { createJobs } from './jobs/jobs.ts'
import { LogFeed } from './log/feed.ts'
import { MetricRegistry } from './metrics/registry.ts'
import { ProgramNetwork } from './net/program-network.ts'
import type { Fetch } from './net/fetch.ts'
import { createOutbound } from './net/outbound.ts'
import { readVariable } from './process/inherited.ts'
import { createSpawn } from './process/spawn.ts'
import { runningCalls } from './scope/call.ts'
import { Scope } from './scope/scope.ts'
import { lockHome } from './storage/lock.ts'
import { openDatabase } from './storage/open.ts'
import { openReservations } from './storage/reservations.ts'
import { DiskReserve } from './storage/disk-reserve.ts'
import { refuseLost } from './storage/sqlite-file.ts'
import { openStorage } from './storage/storage.ts'
import { completeSwap } from './storage/swap.ts'
import { openVault } from './storage/vault-file.ts'
import { ToolRegistry } from './tools/registry.ts'
import { scannedVault, SecretScanner } from './tools/secret-scanner.ts'
import { limitNesting } from './schema/nesting.ts'

export interface AppOptions {
  readonly config: Config
  /** Reads the sources of the configuration again. Absent: it cannot be changed while the daemon runs. */
  readonly reread?: () => Promise<LoadedConfig>
  /** Dotted key to where its value came from, as loading told. */
  readonly sources?: ReadonlyMap<string, string>
  /** The lines of `log`, for those who follow them. */
  readonly logs?: LogFeed
  /** Told of a configuration that was taken over while running, such as for the level of the log. */
  readonly onConfig?: (config: Config) => void
  readonly log: ConsolaInstance
  /** Folders of built-in plugins. Default: those that ship with the daemon. */
  readonly builtIns?: readonly string[]
  /** Throws `ConfigError` for a section of a plugin that somebody wrote wrong. Without it that plugin is not loaded. */
  readonly strict?: boolean
  /** Warnings of loading the configuration, for the health detail. */
  readonly warnings?: readonly string[]
  /** The files the configuration was read from. */
  readonly files?: readonly string[]
  /** Secrets beside those of the configuration and the vault: tools that send things away do not get them. */
  readonly secrets?: readonly string[]
  /** A db0 connector instead of the one of `database_url`, for tests. */
  readonly connector?: Connector
  /** Instead of the way out to the network, for tests. */
  readonly fetch?: Fetch
  /** Told of every defect, beside the log. */
  readonly onDefect?: OnDefect
}
export interface App extends AsyncDisposable {
  /** Where it listens; `undefined` before `listen`. */
  readonly url: string | undefined
  listen(): Promise<{ url: string }>
  /** Settles when the plugins have taken note that it listens, or after a second. */
  greeted(): Promise<void>
  /** Answers without a port. */
  fetch(request: Request): Promise<Response>
  readonly host: Host
  readonly daemon: Daemon
  /** Logs and counts a failure outside any plugin, such as an exception nobody caught. */
  readonly defect: OnDefect
  /** What all plugins have registered now, one line each: compared before and after by those who look for leaks. */
  registrations(): readonly string[]
  /** The routes that are live. */
  routes(): readonly AnyRoute[]
  sockets(): readonly AnySocketRoute[]
  /** Settles with what was asked for; whoever made the app disposes it then. */
  readonly closed: Promise<Stop>
}

/** A plugin whose setup takes longer has failed: the others must not wait for it. */
const SETUP_MS = 30_000
/** What each part gets to end at shutdown, beside the drain. */
const CLOSE_MS = 5_000
/** How long the greeting waits for plugins that look around first, such as for a local model. */
const GREETING_MS = 1_000
const FIRST_ANSWER_MS = 30
/** The reserve is made when nobody waits for the start any more. */
const RESERVE_MS = 2_000

/** Builds every part and loads the plugins. Nothing is left behind when it throws, such as `HomeInUse`. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, log } = options
  const live = new LiveConfig({
    config,
    warnings: options.warnings ?? [],
    sources: options.sources ?? new Map(),
    files: [],
  })
  const home = config.home_dir
  const drainMs = (): number => live.current.plugins.drain_ms
  await using parts = new AsyncDisposableStack()
  /** Ends the part after those opened later; one that does not end or fails is reported and holds nobody up. */
  const owned = <T>(name: string, part: T, end: (part: T) => unknown, extraMs = 0): T =>
    parts.adopt(part, (it) => endWithin(name, () => end(it), CLOSE_MS + extraMs, log))

  const builtIns = options.builtIns ?? (await builtInFolders())
  const builtInSet = new Set(builtIns)
  const loader = createLoader({ builtIns: builtInSet, cacheDir: join(home, 'cache', 'plugins') })
  // Imports take longest: they run while the database opens.
  loader.preload(builtIns.filter((folder) => !config.plugins.disabled.includes(basename(folder))))

  const lock = owned('home lock', await lockHome(home), (it) => it[Symbol.dispose]())
  const swapped = completeSwap(home)
  if (swapped)
    log.info(
      `put in place: ${Object.values(swapped.facts).join(', ')}; what was there before is in ${swapped.moves[0]?.keep ?? home}`,
    )
  const reserve = owned('reserve', new DiskReserve(join(config.data_dir, 'reserve'), log), (it) =>
    it[Symbol.asyncDispose](),
  )
  if (config.database_url.startsWith('sqlite:') && config.database_url !== 'sqlite::memory:')
    refuseLost(config.database_url.slice('sqlite:'.length), join(home, 'audit.anchor'))
  const database = owned(
    'database',
    await openDatabase({
      url: config.database_url,
      password: readVariable('PGPASSWORD'),
      log: log.withTag('database'),
      onFull: () => reserve.release(),
      ...(options.connector ? { connector: options.connector } : {}),
    }),
    (it) => it[Symbol.asyncDispose](),
  )
  const storage = owned('storage', openStorage(database, join(config.data_dir, 'files')), (it) =>
    it[Symbol.asyncDispose](),
  )
  const countRestarts = (count: number): Promise<void> => storage.forPlugin('core').setItem('restart_count', count)
  const [vault, counted] = await Promise.all([
    openVault(database, join(home, 'vault.key'), log.withTag('vault')),
    storage.forPlugin('core').getItem<number>('restart_count'),
  ])
  // Whoever started it again after a crash restarted it.
  const restartCount = (counted ?? 0) + (lock.afterCrash ? 1 : 0)
  if (lock.afterCrash) await countRestarts(restartCount)
  const ownPorts = new Set<number>()
  const outbound = options.fetch
    ? undefined
    : owned(
        'outbound',
        createOutbound({
          settings: () => outboundSettings(live.current),
          log: log.withTag('outbound'),
          own: { ports: () => ownPorts, names: () => live.current.http.allowed_hosts },
        }),
        (it) => it[Symbol.asyncDispose](),
      )

  let health: HealthMonitor | undefined
  const countDefect: OnDefect = (error, where) => {
    health?.countPanic()
    options.onDefect?.(error, where)
  }
  const onDefect: OnDefect = (error, where) => {
    log.error(where, error)
    countDefect(error, where)
  }
  const build = readBuild()
  const metrics = new MetricRegistry()
  const network = outbound && new ProgramNetwork(outbound, () => proxySettings(live.current), metrics)
  const hooks = new HookBus(onDefect)
  const scanner = new SecretScanner()
  for (const secret of [...listSecrets(config), ...(options.secrets ?? [])]) scanner.add(secret)
  const tools = new ToolRegistry({
    limits: () => ({ timeoutSecs: live.current.tools.timeout_secs, outputChars: live.current.tools.output_chars }),
    onDefect,
    holdsSecret: (args) => scanner.containsSecret(args),
    onSecret: (tool, { agentId }) => log.warn(`a call of ${tool} by agent ${agentId} held a secret and was refused`),
  })
  let settings = httpSettings(config)
  limitNesting(settings.maxJsonDepth)
  const idempotency = owned(
    'idempotency keys',
    new Idempotency({
      reservations: openReservations(database.sql, () => new Date().toISOString()),
      owner: randomUUID(),
      onDefect,
    }),
    (it) => it[Symbol.dispose](),
  )
  const http = createHttp({
    settings: () => settings,
    log: log.withTag('http'),
    metrics,
    build,
    idempotency,
    onDefect: countDefect,
    onAuthFailure: (failure) => {
      void hooks.forPlugin(coreScope).emit(AuthenticationFailed, failure)
    },
    onUnrecorded: (request) => hooks.forPlugin(coreScope).emit(UnrecordedChange, request),
  })
  const coreScope = new Scope('core')

  const folders = daemonFolders(config, options.files ?? [])
  const host: Host = new Host({
    loader,
    log,
    builtIns: builtInSet,
    drainMs,
    setupMs: SETUP_MS,
    disabled: () => live.current.plugins.disabled,
    strict: options.strict ?? false,
    pluginConfig: (definition) => parseSection(definition, section(live.current, definition), live.sources),
    members: (scope) => ({
      routes: http.forPlugin(scope),
      credentials: http.credentials(scope),
      hooks: checkedHooks(hooks.forPlugin(scope), scope.name, () => host.known(), log),
      tools: tools.forPlugin(scope),
      storage: storage.forPlugin(scope.name),
      db: database.sql,
      vault: scannedVault(scanner, vault.forPlugin(scope.name)),
      jobs: createJobs(scope, onDefect),
      metrics: metrics.forPlugin(scope),
      fetch: endingWith(
        scope.signal,
        options.fetch ?? (scope.name === PROVIDERS ? outbound?.forOperator() : outbound?.fetch) ?? unreachable,
      ),
      admit: (url) =>
        (scope.name === PROVIDERS ? outbound?.admitForOperator(url) : outbound?.admit(url)) ?? Promise.resolve(),
      spawn: createSpawn(scope, {
        folders,
        ...(network && {
          openProxy: (admits) => network.open(admits),
        }),
      }),
    }),
    hold: (plugins) => {
      const releases = [http.hold(plugins), hooks.hold(plugins), tools.hold(plugins)]
      return () => {
        for (const release of releases) release()
      }
    },
    migrate: (plugin, migrations, options) => database.migrate(plugin, migrations, options),
    beforeMigrations: (plugins) => copyBeforeMigration({ database, config, log }, plugins),
  })

  const unknownParts = (): readonly string[] =>
    sectionWarnings(live.current, host.plugins(), host.definitions(), live.sources)
  health = owned(
    'health',
    new HealthMonitor({
      check: () => database.check(),
      restartCount,
      log,
      warnings: () => [
        ...live.warnings,
        ...unknownParts(),
        ...host
          .plugins()
          .flatMap(({ name, state, error }) =>
            error === undefined
              ? []
              : [state === 'failed' ? `plugin "${name}" is not loaded: ${error}` : `plugin "${name}" ${error}`],
          ),
      ],
    }),
    (it) => it[Symbol.dispose](),
  )
  const monitor = health
  const stopping = new Stopping(drainMs)
  let url: string | undefined
  const startedAt = new Date().toISOString()
  const daemon: Daemon = {
    build,
    startedAt,
    get stopping() {
      return stopping.reason
    },
    config: () => ({
      dataDir: config.data_dir,
      homeDir: home,
      listenAddr: config.listen_addr,
      apiKeySet: live.current.api_key !== undefined,
      defaultProvider: live.current.default_provider,
      defaultModel: live.current.default_model,
      logLevel: live.current.log_level,
    }),
    health: () => monitor.health(),
    warnings: () => monitor.warnings(),
    plugins: () => host.plugins(),
    reload: (name) => host.reload(name),
    unload: (name) => host.unload(name),
    load: (folder) => host.load(folder),
    openapi: () => http.openapi(),
    metrics: () => metrics.render(),
    shutdown: (reason) => stopping.ask({ kind: 'shutdown', reason }, runningCalls()),
    restart: (reason) =>
      stopping.ask({ kind: 'restart', reason }, runningCalls(), () => countRestarts(restartCount + 1)),
  }
  host.provide(Daemon, daemon)
  host.provide(Logs, options.logs ?? new LogFeed())
  host.provide(
    DatabaseSnapshots,
    createDatabaseSnapshots(config, (file) => database.snapshot(file)),
  )
  host.provide(Guards, installedGuards({ http, scanner, health: monitor, folders }))
  host.provide(
    Guests,
    owned('guests', lazyGuests(), (it) => it[Symbol.asyncDispose]()),
  )
  host.provide(
    Configuration,
    createConfiguration({
      live,
      host,
      section,
      reread: options.reread,
      taken(next) {
        settings = httpSettings(next)
        limitNesting(settings.maxJsonDepth)
        for (const secret of listSecrets(next)) scanner.add(secret)
        options.onConfig?.(next)
        http.renewed()
        network?.recheck().catch((error: unknown) => onDefect(error, 'connections of programs under new rules'))
      },
    }),
  )

  owned('http', http, (it) => it[Symbol.asyncDispose]())
  owned('plugins', host, (it) => it[Symbol.asyncDispose](), 60_000)
  const outside = await namedFolders([...config.plugins.paths, join(home, 'plugins')])
  // Built code changes only with an installation, which ends in a restart; its sources change under those who develop it.
  const sources = config.development ? builtIns.filter((folder) => findEntry(folder)?.endsWith('.ts')) : []
  const known = config.plugins.watch ? await fingerprints([...sources, ...outside]) : new Map<string, string>()
  await host.start([...builtIns, ...outside])
  for (const warning of unknownParts()) log.warn(warning)
  const watcher = owned(
    'plugin watcher',
    new PluginWatch(config.plugins.watch, {
      host,
      log,
      roots: [...config.plugins.paths, join(home, 'plugins')],
      folders: sources,
      known,
    }),
    (it) => it[Symbol.asyncDispose](),
  )
  if (config.development) await watcher.start()
  owned('requests', http, (it) => it.drain(drainMs()), drainMs())
  owned('waiting work', host, (it) => it.leave())

  owned('core', coreScope, (it) => it.close(0))
  const all = parts.move()
  let ending: Promise<void> | undefined
  let greeting = Promise.resolve()
  return {
    get url() {
      return url
    },
    async listen() {
      const listening = await http.listen()
      ownPorts.add(listening.port)
      // An address alone means http.
      lock.publish(`${listening.url.startsWith('https:') ? 'https://' : ''}${toListenAddr(listening)}`)
      url = listening.url
      idempotency.start()
      if (database.dialect === 'sqlite' && config.database_url !== 'sqlite::memory:')
        setTimeout(() => reserve.create(), RESERVE_MS).unref()
      // Whoever waits for the port is answered first.
      greeting = endWithin(
        'the greeting',
        async () => {
          await delay(FIRST_ANSWER_MS, undefined, { ref: false })
          await Promise.all([watcher.start(), hooks.forPlugin(coreScope).emit(DaemonListening, { url: listening.url })])
        },
        GREETING_MS,
        log,
      )
      return { url: listening.url }
    },
    greeted: () => greeting,
    fetch: (request) => http.fetch(request),
    host,
    daemon,
    defect: onDefect,
    routes: () => http.routes(),
    sockets: () => http.sockets(),
    registrations: () =>
      [
        ...http.routes().map(({ method, path }) => `route ${method} ${path}`),
        ...http.sockets().map(({ path }) => `socket ${path}`),
        ...[...hooks.counts()].map(([id, count]) => `hook ${id} x ${count}`),
        ...tools.list().map(({ name }) => `tool ${name}`),
      ].sort(),
    closed: stopping.asked,
    [Symbol.asyncDispose]: () => (ending ??= all.disposeAsync()),
  }
}

/** Requests of a plugin end when it is unloaded. */
function endingWith(signal: AbortSignal, fetch: Fetch): Fetch {
  return (url, request) => fetch(url, { ...request, owner: signal })
}
const unreachable: Fetch = () => Promise.reject(new Error('there is no way out to the network'))
