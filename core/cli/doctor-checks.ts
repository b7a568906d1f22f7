import { accessSync, constants, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { parseListenAddr } from '../config/listen.ts'
import type { Config } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { createLog } from '../log/log.ts'
import { createDaemonClient, DaemonRefusal, DaemonUnreachable } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { tryListen } from '../net/try-listen.ts'
import { commandLine } from '../process/command-name.ts'
import { createSpawn } from '../process/spawn.ts'
import { Scope } from '../scope/scope.ts'
import { readDaemonFile } from '../storage/lock.ts'
import { openDatabase } from '../storage/open.ts'
import { loadRegistry } from './command-registry.ts'
import { daemonUrl, trustOwnCertificate } from './connect.ts'
import type { HomeLocation } from './home-location.ts'
import { failed, passed, warned } from './plugin-cli.ts'
import type { CheckContext, CheckResult, PluginCli } from './plugin-cli.ts'
import { explainServer } from './start-failure.ts'
import { messageOf } from '../errors/message.ts'

/** The result of one check, under the name it is listed by. */
export interface NamedResult extends CheckResult {
  readonly name: string
}
const Health = v.looseObject({ status: v.string() })

export const named = (name: string, result: CheckResult): NamedResult => ({ name, ...result })

/** Runs every check; those that need a valid configuration are left out when there is none. */
export async function runChecks(location: HomeLocation): Promise<NamedResult[]> {
  const results = [named('node', checkNode()), named('home', checkHome(location.home))]
  const { config, found } = await checkConfig(location)
  results.push(...found.map((result) => named('configuration', result)))
  if (config) {
    const { daemon, result } = await checkDaemon(config)
    results.push(result)
    const { askDaemon } = await import('./doctor-daemon.ts')
    const asked = daemon && (await askDaemon(daemon, shownUrl(config)))
    results.push(...(asked?.results ?? [named('database', await checkDatabase(config))]))
    results.push(...(await checkPlugins(location, { config, env: process.env, daemon: asked?.daemon })))
  }
  results.push(named('programs', await checkPrograms()))
  results.push(named('disk', await checkDisk(config?.data_dir ?? location.home)))
  return results
}

/** The checks that plugins bring, and what is wrong with their commands. */
async function checkPlugins(location: HomeLocation, context: CheckContext): Promise<NamedResult[]> {
  const { plugins, problems } = await loadRegistry(location)
  const results = problems.map((problem) =>
    named('commands', warned(problem, 'correct the plugin, or add it to plugins.disabled')),
  )
  const unknown: string[] = []
  for (const plugin of plugins)
    for (const name of Object.keys(plugin.checks ?? {})) {
      const result = await runCheck(plugin, name, context)
      if (result) results.push(result)
      else unknown.push(name)
    }
  if (unknown.length === 0) return results
  const left = warned(
    `${unknown.join(', ')}: the daemon does not answer this`,
    'repair what is named above, and ask again',
  )
  return [...results, named('not checked', left)]
}
/** `undefined` when the daemon was to be asked and does not answer. */
async function runCheck(plugin: PluginCli, name: string, context: CheckContext): Promise<NamedResult | undefined> {
  try {
    const loaded = await plugin.checks?.[name]?.load()
    if (!loaded) throw new Error('it has no code')
    return named(name, await loaded.default(context))
  } catch (error) {
    if (error instanceof DaemonRefusal || error instanceof DaemonUnreachable) return undefined
    const reason = messageOf(error)
    return named(name, warned(`the check of plugin "${plugin.name}" failed: ${reason}`, 'correct the plugin'))
  }
}

/** How programs are confined on this machine, and what that leaves open. */
async function checkPrograms(): Promise<CheckResult> {
  const scope = new Scope('doctor')
  try {
    const { level, network, gaps } = await createSpawn(scope).isolation()
    const found = `isolation: ${level}; network: ${network}; not covered: ${gaps.join(', ')}`
    if (level === 'bubblewrap') return passed(found)
    const advice =
      level === 'landlock'
        ? 'install bubblewrap, and let this user make namespaces: then they have a network too'
        : 'programs are refused; install bubblewrap, and let this user make namespaces'
    return warned(found, advice)
  } finally {
    await scope.close(0)
  }
}

function checkNode(): CheckResult {
  const major = Number(process.versions.node.split('.')[0])
  return major >= 24
    ? passed(process.version)
    : failed(`${process.version} is too old`, 'install Node 24 or newer; `npm start` in the repository brings its own')
}

function checkHome(home: string): CheckResult {
  const other = 'choose another one with --home or SVC_HOME'
  if (!existsSync(home)) {
    const parent = nearestFolder(home)
    return isWritable(parent)
      ? passed(`${home} will be made at the first start`)
      : failed(`${home} does not exist and ${parent} is not writable`, other)
  }
  if (!statSync(home).isDirectory()) return failed(`${home} is not a folder`, other)
  if (!isWritable(home))
    return failed(`${home} is not writable for this user`, 'correct its owner, or choose another one with --home')
  const secret = new Set(['config.toml', 'vault.key', 'daemon.json', 'daemon.lock', 'data'])
  const readable = [
    home,
    ...readdirSync(home)
      .filter((name) => secret.has(name))
      .map((name) => join(home, name)),
  ].filter((path) => !lstatSync(path).isSymbolicLink() && (statSync(path).mode & 0o077) !== 0)
  return readable.length === 0
    ? passed(home)
    : warned(`other users can read ${readable.join(', ')}`, `chmod -R go= ${home}`)
}
function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path))
}
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false /* that is the answer */
  }
}

async function checkConfig(
  location: HomeLocation,
): Promise<{ readonly config: Config | undefined; readonly found: readonly CheckResult[] }> {
  const keys = commandLine('config schema')
  try {
    const { loadWithPlugins } = await import('./plugin-definitions.ts')
    const { isWritten, parseSections, sectionWarnings } = await import('../host/section.ts')
    const { loaded, definitions } = await loadWithPlugins(location)
    const { config, warnings, files, sources } = loaded
    const statuses = definitions.map(({ name }) => ({
      name,
      state: config.plugins.disabled.includes(name) ? ('disabled' as const) : ('loaded' as const),
    }))
    const enabled = definitions.filter(({ name }) => !config.plugins.disabled.includes(name))
    const all = [...warnings, ...sectionWarnings(config, statuses, enabled, sources)]
    const refused = enabled.flatMap((definition) => {
      try {
        parseSections(definition, config, sources)
        return []
      } catch (error) {
        // What is required and not set fails its plugin, and not the start.
        if (!isWritten(error)) return []
        return failed(error.message, `correct it; ${keys} lists every key`)
      }
    })
    const found = [
      ...refused,
      ...all.map((warning) => warned(warning, `correct or remove the key; ${keys} lists them`)),
    ]
    const summary = passed(files.length === 0 ? 'defaults' : files.join(', '))
    return { config, found: found.length > 0 ? found : [summary] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { withAllProblems } = await import('./config-problems.ts')
    const { message } = await withAllProblems(error, location)
    return { config: undefined, found: [failed(message, `correct it; ${keys} lists every key`)] }
  }
}

interface DaemonCheck {
  readonly result: NamedResult
  /** A client of the daemon that runs and answers. */
  readonly daemon: DaemonClient | undefined
}

async function checkDaemon(config: Config): Promise<DaemonCheck> {
  const running = readDaemonFile(config.home_dir)
  if (!running) return { result: named('port', await checkPort(config)), daemon: undefined }
  const url = daemonUrl(running.listenAddr)
  trustOwnCertificate(url)
  const daemon = createDaemonClient({ url, apiKey: config.api_key, pass: running.pass })
  try {
    // Health needs no key.
    const { status } = await createDaemonClient({ url, pass: running.pass }).call('GET', '/api/health', Health, {
      timeoutMs: 3000,
    })
    const result =
      status === 'ok'
        ? passed(`runs at ${url} (process ${running.pid})`)
        : warned(`${url} says it is ${status}`, `${commandLine('status')} says more`)
    return { result: named('daemon', result), daemon }
  } catch (error) {
    const found = `process ${running.pid} should listen at ${url} and does not answer`
    const advice = `${commandLine('stop')}, then ${commandLine('start')} (${messageOf(error)})`
    return { result: named('daemon', failed(found, advice)), daemon: undefined }
  }
}

async function checkPort(config: Config): Promise<CheckResult> {
  const { host, port } = parseListenAddr(config.listen_addr)
  const code = await tryListen(host, port)
  if (code === undefined) return passed(`${config.listen_addr} is free; the daemon does not run`)
  return failed(
    `${config.listen_addr} cannot be used (${code})`,
    code === 'EADDRINUSE'
      ? 'stop the program that has it, or set listen_addr'
      : 'set listen_addr to an address of this machine and a port above 1023',
  )
}

/** Without its password. */
const shownUrl = (config: Config): string => config.database_url.replace(/\/\/[^@/]*@/, '//***@')
async function checkDatabase(config: Config): Promise<CheckResult> {
  const shown = shownUrl(config)
  const path = /^sqlite:(.+)$/.exec(config.database_url)?.[1]
  if (path !== undefined && path !== ':memory:' && !existsSync(path))
    return passed(`${path} will be made at the first start`)
  try {
    await using database = await openDatabase({ url: config.database_url, log: createLog({ level: 'silent' }) })
    return (await database.check())
      ? passed(shown)
      : failed(`${shown} takes no writes`, 'is the disk full, or the file read-only?')
  } catch (error) {
    const server = explainServer(error, config.database_url)
    return failed(server?.message ?? messageOf(error), server?.advice ?? 'see the message')
  }
}
async function checkDisk(folder: string): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(nearestFolder(folder))
  const mebibytes = Math.floor((bavail * bsize) / 1_048_576)
  const found = `${mebibytes.toLocaleString('en')} MiB free for ${folder}`
  if (mebibytes < 100) return failed(found, 'free some space: a full disk stops every write')
  return mebibytes < 1024 ? warned(found, 'free some space soon') : passed(found)
}
