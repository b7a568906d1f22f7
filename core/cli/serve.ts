import module from 'node:module'
import { networkInterfaces } from 'node:os'
import { createApp } from '../app.ts'
import type { App } from '../app.ts'
import { isLoopback, parseListenAddr } from '../config/listen.ts'
import type { Config, LoadedConfig, PluginSchemas } from '../config/load.ts'
import { withWarning } from '../config/load.ts'
import { findHome } from '../config/home.ts'
import { ConfigError } from '../config/problem.ts'
import { listSecrets, listVariables } from '../config/redact.ts'
import { LogFeed } from '../log/feed.ts'
import { createLog } from '../log/log.ts'
import type { Log } from '../log/log.ts'
import { namesSecret } from '../log/secret-name.ts'
import { holdGrowth, setEngineOptions } from '../process/hold-growth.ts'
import { nameHome } from '../process/command-name.ts'
import { readVariables, takeSecrets } from '../process/inherited.ts'
import { exits, Failure } from './failure.ts'
import { closeDebugger } from './process-hardening.ts'
import { print } from './output.ts'
import { prepareHome } from './prepare-home.ts'
import { loadSettings } from './settings.ts'
import type { HomeLocation } from './home-location.ts'
import { watchProcess } from './process-events.ts'

export interface ServeOptions {
  readonly location: HomeLocation
  readonly flags: Readonly<Record<string, unknown>>
  /** Says where it listens as one JSON line. */
  readonly json: boolean
}

/** Serves until something asks for the end, through as many restarts as are asked for; returns the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  try {
    return await serveUntilStopped(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { withAllProblems } = await import('./config-problems.ts')
    throw await withAllProblems(error, options.location, options.flags)
  }
}

async function serveUntilStopped(options: ServeOptions): Promise<number> {
  const { location } = options
  // Most of what a start allocates stays, and most of its code runs once.
  const growth = holdGrowth()
  prepareHome(location.home)
  // Whoever reads a hint may not have the environment of this process.
  using _home = nameHome(
    location.home === findHome(undefined, { HOME: process.env['HOME'] }, '/') ? undefined : location.home,
  )
  let settings = await readSettings(options)
  const logs = new LogFeed()
  const log = createLog({
    level: settings.config.log_level,
    format: settings.config.log_format,
    colored: process.stderr.isTTY === true && !process.env['NO_COLOR'],
    onLine: (line) => logs.push(line),
  })
  using events = watchProcess(log)
  // What broke in a plugin's section meanwhile costs a restart that plugin and not the daemon.
  let first = true
  for (;;) {
    applyLog(log, settings.config)
    for (const warning of settings.warnings) log.warn(warning)
    refuseUnprotected(settings.config)
    const app = await open(options, settings, log, logs, first)
    first = false
    const stop = await (async () => {
      try {
        events.serves(app)
        if (!app.daemon.stopping) await announce(app, await listen(app, settings.config), settings.config, options.json)
        if (!settings.config.development) closeDebugger()
        finishStart(growth)
        return await app.closed
      } finally {
        events.ends()
        await app[Symbol.asyncDispose]()
      }
    })()
    if (events.failed) return exits.failed
    if (stop.kind === 'shutdown') {
      log.info(`stopped: ${stop.reason}`)
      return exits.ok
    }
    log.info(`restarting: ${stop.reason}`)
    settings = await reread(options, settings, app.host.known(), log)
  }
}

/** Before a plugin runs or a program is started, the secrets of the environment are taken out of it. */
async function readSettings({ location, flags }: ServeOptions): Promise<LoadedConfig> {
  const settings = await loadSettings(location, flags)
  await refuseAlone(settings)
  takeSecrets(new Set(listVariables(settings.config)))
  return settings
}
/** A typing error in `database_url` must not make a daemon of its own of one that a load balancer would then ask. */
async function refuseAlone(settings: LoadedConfig): Promise<void> {
  const { config, sources } = settings
  if (sources.has('database_url')) return
  const given =
    config.vault_key_file !== undefined
      ? 'vault_key_file'
      : Object.hasOwn(config.plugins, 'cluster')
        ? '[plugins.cluster]'
        : undefined
  if (given !== undefined) throw (await import('./start-failure.ts')).explainAlone(given, settings)
}
function applyLog(log: Log, config: Config, secrets: readonly string[] = listSecrets(config)): void {
  log.setLevel(config.log_level)
  log.setFormat(config.log_format)
  for (const secret of secrets) log.registerSecret(secret)
}
/** API facts 1: nobody is served over the network without a key by accident. */
function refuseUnprotected(config: Config): void {
  const { host } = parseListenAddr(config.listen_addr)
  if (config.api_key !== undefined || config.allow_no_auth || (isLoopback(host) && !config.http.public)) return
  throw new Failure(
    exits.refused,
    `${config.http.public ? 'all network interfaces' : host} can be reached by other machines, and no key is set`,
    'set SVC_API_KEY or api_key; or listen on 127.0.0.1; or, behind something that checks who calls, ' +
      'set SVC_ALLOW_NO_AUTH=1',
  )
}
async function open(
  options: ServeOptions,
  loaded: LoadedConfig,
  log: Log,
  logs: LogFeed,
  strict: boolean,
): Promise<App> {
  try {
    return await createApp({
      loaded,
      log,
      logs,
      strict,
      secrets: environmentSecrets(),
      reread: () => readSettings(options),
      onConfig: (next, secrets) => applyLog(log, next, secrets),
    })
  } catch (error) {
    const { explainStart } = await import('./start-failure.ts')
    throw explainStart(error, loaded.config)
  }
}
async function listen(app: App, config: Config): Promise<string> {
  try {
    return (await app.listen()).url.replace(/\/+$/, '')
  } catch (error) {
    const { explainStart } = await import('./start-failure.ts')
    throw explainStart(error, config)
  }
}
/** The page's address comes last: what plugins say about the start stands above it. */
async function announce(app: App, url: string, config: Config, json: boolean): Promise<void> {
  process.title = titleOf(url, config.home_dir)
  if (json) {
    const facts = {
      status: 'listening',
      url,
      pid: process.pid,
      home: config.home_dir,
      api_key_set: config.api_key !== undefined,
    }
    process.stdout.write(`${JSON.stringify(facts)}\n`)
    return
  }
  print(`svc listening on ${url}`)
  await Promise.race([app.greeted(), app.closed])
  for (const address of networkAddresses(config))
    print(`Reached from the network at ${url.replace(/^(https?:\/\/).*(:\d+)$/, `$1${address}$2`)}`)
  if (config.api_key !== undefined) print('A key is set: the chat page and every client need it.')
  print(`Open the chat page: ${url}/`)
}
/** The port comes first: the system cuts a title to the length of the command line. */
function titleOf(url: string, home: string): string {
  const { port } = new URL(url)
  const { HOME: user } = readVariables()
  const shown = user && home.startsWith(`${user}/`) ? `~${home.slice(user.length)}` : home
  return `svc${port === '' ? '' : ` :${port}`} ${shown}`
}
/** This machine's addresses, when it listens on all of them. */
function networkAddresses(config: Config): string[] {
  const { host } = parseListenAddr(config.listen_addr)
  if (!config.http.public && host !== '0.0.0.0' && host !== '::') return []
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter((one) => !one.internal && one.family === 'IPv4')
    .map((one) => one.address)
}
/** Keys and passwords, wherever they are used. */
function environmentSecrets(): string[] {
  return Object.entries(readVariables()).flatMap(([name, value]) =>
    value !== undefined && namesSecret(name) ? [value] : [],
  )
}
/** What waits until the first requests had their turn. */
function finishStart(growth: Disposable): void {
  setImmediate(() => {
    // A daemon that is killed never writes what it compiled.
    module.flushCompileCache()
    growth[Symbol.dispose]()
    // By itself the heap grows to four times what lives in it before it is cleaned. With less, cleaning takes more of the
    // processor under load; an idle daemon needs the same either way (docs/performance.md).
    setEngineOptions('--heap-growing-percent=250')
  }).unref()
}
/** A configuration that broke meanwhile must not turn a restart into an outage. */
async function reread(
  options: ServeOptions,
  before: LoadedConfig,
  plugins: readonly PluginSchemas[],
  log: Log,
): Promise<LoadedConfig> {
  try {
    const next = await readSettings(options)
    next.complete(plugins)
    refuseUnprotected(next.config)
    return next
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof Failure)) throw error
    log.error(`the new configuration cannot be used, going on with the old one:\n${error.message}`)
    return withWarning(before, `not taken over: ${error.message}`)
  }
}
