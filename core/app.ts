import { setTimeout as delay } from 'node:timers/promises'
import { createHealth, provideServices, unknownSections } from './app/services.ts'
import type { Home } from './app/home.ts'
import { isDatabaseFile, openHome } from './app/home.ts'
import type { Kernel, KernelSettings } from './app/kernel.ts'
import { createKernel } from './app/kernel.ts'
import type { AppOptions } from './app/options.ts'
import { PartStack } from './app/part-stack.ts'
import { builtInSidecars, createHost, preloadBuiltIns, startPlugins } from './app/plugins.ts'
import { crashLimits } from './app/settings.ts'
import { toListenAddr } from './config/listen.ts'
import { LiveConfig } from './config/live.ts'
import type { OnDefect } from './errors/defect.ts'
import { DaemonListening, ListeningStarting } from './host/daemon.ts'
import type { Daemon } from './host/daemon.ts'
import { endWithin } from './host/ending.ts'
import type { Host } from './host/host.ts'
import { StopRequest } from './host/stop-request.ts'
import type { Stop } from './host/stop-request.ts'
import type { PluginWatch } from './host/plugin-watch.ts'
import type { AnyRoute, AnySocketRoute } from './http/route.ts'
import type { Tools } from './tools/tool.ts'

export type { AppOptions }

export interface App extends AsyncDisposable {
  /** Where it listens; `undefined` before `listen`. */
  readonly url: string | undefined
  listen(): Promise<{ url: string }>
  /** Settles when the plugins have handled `DaemonListening`, or after a second. */
  greeted(): Promise<void>
  /** Tells the plugins that requests are answered, as `listen` does; for a daemon that only answers `fetch`. */
  announce(url: string): Promise<void>
  /** Settles when what plugins began in the background has ended, such as the first attempt to connect a channel. */
  settled(): Promise<void>
  /** Answers without a port. */
  fetch(request: Request): Promise<Response>
  readonly host: Host
  readonly daemon: Daemon
  /** Logs and counts a failure outside any plugin, such as an uncaught exception. */
  readonly defect: OnDefect
  /** Records that the code of a plugin from outside, named by its `source`, threw an exception that nothing caught. */
  noteCrash(source: string, error: Error): void
  /** What all plugins have registered now, one line each; compared before and after to find leaks. */
  registrations(): readonly string[]
  /** Calls a tool of any plugin. */
  callTool: Tools['call']
  /** What the parts of the core read of the configuration at this moment. */
  settings(): KernelSettings
  /** The routes that are live. */
  routes(): readonly AnyRoute[]
  sockets(): readonly AnySocketRoute[]
  /** Settles with the requested stop; whoever made the app disposes it then. */
  readonly closed: Promise<Stop>
}

/** What the plugins get to end at shutdown beyond what every part gets: they do so one after the other. */
const PLUGINS_CLOSE_MS = 60_000
/** How long `greeted` waits for plugins that do something first, such as looking for a local server. */
const GREETING_MS = 1_000
const FIRST_ANSWER_MS = 30
/** Creating the reserve waits until the start is over. */
const RESERVE_MS = 2_000

/** Builds every part and loads the plugins. Nothing is left behind when it throws, such as `HomeInUse`. */
export async function createApp(options: AppOptions): Promise<App> {
  const { loaded, log } = options
  const { config } = loaded
  await using parts = new PartStack(log)
  const live = new LiveConfig(loaded)
  const drainMs = (): number => live.current.plugins.drain_ms

  const code = await preloadBuiltIns(options, live)
  const sidecars = (): Promise<readonly string[]> => builtInSidecars(code)
  const home = await openHome(
    {
      config,
      log,
      accepted: code.accepted,
      sidecars,
      crashLimits: () => crashLimits(live.current),
    },
    parts,
  )
  const kernel = createKernel(options, live, home, parts)
  if (home.database.dialect === 'postgresql')
    (await import('./app/database-metrics.ts')).addDatabaseMetrics(kernel.metrics, home.database)
  const host = createHost(options, live, code, home, kernel)
  const health = parts.own('health', createHealth({ options, live, home, kernel, host }))
  const stopRequest = new StopRequest(drainMs)
  const daemon = provideServices({ options, live, home, kernel, host, health, stopRequest })

  // Parts end in reverse order: plugins leave, requests drain, the plugins unload, and the port closes last.
  parts.own('http', kernel.http)
  parts.own('plugins', host, PLUGINS_CLOSE_MS)
  const watcher = await startPlugins(options, host, code.folders, parts)
  for (const warning of [...live.warnings, ...unknownSections(live, host)])
    if (!loaded.warnings.includes(warning)) log.warn(warning)
  parts.onEnd(
    'requests',
    () => kernel.http.drain(stopRequest.drainMs),
    () => stopRequest.drainMs,
  )
  parts.onEnd('waiting work', () => host.leave())
  parts.onEnd('core', () => kernel.scope.close(0))
  return new RunningApp({ options, home, kernel, host, daemon, watcher, stopRequest, parts: parts.move() })
}

interface AppDeps {
  readonly options: AppOptions
  readonly home: Home
  readonly kernel: Kernel
  readonly host: Host
  readonly daemon: Daemon
  readonly watcher: PluginWatch
  readonly stopRequest: StopRequest
  readonly parts: PartStack
}

class RunningApp implements App {
  readonly host: Host
  readonly daemon: Daemon
  readonly closed: Promise<Stop>
  readonly defect: OnDefect
  readonly #deps: AppDeps
  #url: string | undefined
  #greeting = Promise.resolve()

  constructor(deps: AppDeps) {
    this.#deps = deps
    this.host = deps.host
    this.daemon = deps.daemon
    this.closed = deps.stopRequest.requested
    this.defect = deps.kernel.defects.report
  }

  get url(): string | undefined {
    return this.#url
  }

  async listen(): Promise<{ url: string }> {
    const { options, home, kernel } = this.#deps
    await kernel.hooks.forPlugin(kernel.scope).check(ListeningStarting, {})
    const { url, host, port } = await kernel.http.listen()
    kernel.ownPorts.add(port)
    // An address without a scheme means http.
    home.lock.publish(`${url.startsWith('https:') ? 'https://' : ''}${toListenAddr({ host, port })}`)
    this.#url = url
    kernel.idempotency.start()
    if (home.database.dialect === 'sqlite' && isDatabaseFile(options.loaded.config))
      setTimeout(() => home.reserve.create(), RESERVE_MS).unref()
    this.#greeting = endWithin(
      'the lines that say where the daemon listens',
      () => this.#greet(url),
      GREETING_MS,
      options.log,
    )
    return { url }
  }

  async #greet(url: string): Promise<void> {
    const { kernel, watcher } = this.#deps
    // Answer requests that wait for the port before doing background work.
    await delay(FIRST_ANSWER_MS, undefined, { ref: false })
    await Promise.all([watcher.start(), kernel.programNetwork?.removeStaleFolders(), this.announce(url)])
  }
  async announce(url: string): Promise<void> {
    const { hooks, listening, scope } = this.#deps.kernel
    listening.isAnnounced = true
    await hooks.forPlugin(scope).emit(DaemonListening, { url })
  }
  settled(): Promise<void> {
    return this.#deps.kernel.listening.settled()
  }

  noteCrash(source: string, error: Error): void {
    this.#deps.home.crashes.note(source, error)
  }

  greeted(): Promise<void> {
    return this.#greeting
  }
  fetch(request: Request): Promise<Response> {
    return this.#deps.kernel.http.fetch(request)
  }
  routes(): readonly AnyRoute[] {
    return this.#deps.kernel.http.routes()
  }
  sockets(): readonly AnySocketRoute[] {
    return this.#deps.kernel.http.sockets()
  }

  settings(): KernelSettings {
    return this.#deps.kernel.settings()
  }

  readonly callTool: Tools['call'] = (name, args, call) => {
    const { tools, scope } = this.#deps.kernel
    return tools.forPlugin(scope).call(name, args, call)
  }

  registrations(): readonly string[] {
    const { http, hooks, tools } = this.#deps.kernel
    return [
      ...http.routes().map(({ method, path }) => `route ${method} ${path}`),
      ...http.sockets().map(({ path }) => `socket ${path}`),
      ...[...hooks.counts()].map(([id, count]) => `hook ${id} x ${count}`),
      ...tools.list().map(({ name }) => `tool ${name}`),
    ].sort()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#deps.parts[Symbol.asyncDispose]()
  }
}
