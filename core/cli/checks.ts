import { accessSync, constants, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { parseListenAddr } from '../config/listen.ts'
import type { Config } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { createLog } from '../log/log.ts'
import { createDaemonClient } from '../net/daemon-client.ts'
import { createSpawn } from '../process/spawn.ts'
import { Scope } from '../scope/scope.ts'
import { readDaemonFile } from '../storage/lock.ts'
import { isObject } from '../schema/object.ts'
import { openDatabase } from '../storage/open.ts'
import { daemonUrl, trustOwnCertificate } from './connect.ts'
import type { Place } from './settings.ts'
import { explainServer } from './start-failure.ts'
import { commandLine } from '../process/command-name.ts'

export interface Check {
  readonly name: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly found: string
  /** What to do about it. */
  readonly advice?: string
}
const ok = (name: string, found: string): Check => ({ name, state: 'ok', found })
const warn = (name: string, found: string, advice: string): Check => ({ name, state: 'warn', found, advice })
const fail = (name: string, found: string, advice: string): Check => ({ name, state: 'fail', found, advice })

/** Every check that can be made; those that need a valid configuration are left out when there is none. */
export async function runChecks(place: Place): Promise<Check[]> {
  const checks = [checkNode(), ...checkHome(place.home)]
  const { config, results } = await checkConfig(place)
  checks.push(...results)
  if (config) {
    const running = await checkPort(config)
    checks.push(running.check, await checkDatabase(config, running.url), await checkProviders(config, running.url))
  }
  checks.push(await checkPrograms(), await checkDisk(config?.data_dir ?? place.home))
  return checks
}

/** How programs of agents are confined on this machine, and what that leaves open. */
async function checkPrograms(): Promise<Check> {
  const scope = new Scope('doctor')
  try {
    const { level, network, gaps } = await createSpawn(scope).isolation()
    const found = `isolation: ${level}; network: ${network}; not covered: ${gaps.join(', ')}`
    return level === 'bubblewrap'
      ? ok('programs', found)
      : warn(
          'programs',
          found,
          level === 'landlock'
            ? 'install bubblewrap, and let this user make namespaces: then they have a network too'
            : 'programs of agents are refused; install bubblewrap, and let this user make namespaces',
        )
  } finally {
    await scope.close(0)
  }
}

function checkNode(): Check {
  const major = Number(process.versions.node.split('.')[0])
  return major >= 24
    ? ok('node', process.version)
    : fail(
        'node',
        `${process.version} is too old`,
        'install Node 24 or newer; `npm start` in the repository brings its own',
      )
}

function checkHome(home: string): Check[] {
  if (!existsSync(home)) {
    const parent = nearestFolder(home)
    return [
      isWritable(parent)
        ? ok('home', `${home} will be made at the first start`)
        : fail(
            'home',
            `${home} does not exist and ${parent} is not writable`,
            'choose another one with --home or SVC_HOME',
          ),
    ]
  }
  if (!statSync(home).isDirectory())
    return [fail('home', `${home} is not a folder`, 'choose another one with --home or SVC_HOME')]
  if (!isWritable(home))
    return [
      fail('home', `${home} is not writable for this user`, 'correct its owner, or choose another one with --home'),
    ]
  const checks: Check[] = []
  const open = [
    home,
    ...readdirSync(home)
      .filter((name) => ['config.toml', 'vault.key', 'daemon.json', 'daemon.lock', 'data'].includes(name))
      .map((name) => join(home, name)),
  ].filter((path) => !lstatSync(path).isSymbolicLink() && (statSync(path).mode & 0o077) !== 0)
  checks.push(
    open.length === 0
      ? ok('home', home)
      : warn('home', `other users can read ${open.join(', ')}`, `chmod -R go= ${home}`),
  )
  return checks
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

async function checkConfig(place: Place): Promise<{ config: Config | undefined; results: Check[] }> {
  try {
    const { loadWithPlugins } = await import('./plugin-definitions.ts')
    const { sectionWarnings } = await import('../host/section.ts')
    const { loaded, definitions } = await loadWithPlugins(place)
    const { config, warnings, files, sources } = loaded
    const statuses = definitions.map(({ name }) => ({
      name,
      state: config.plugins.disabled.includes(name) ? ('disabled' as const) : ('loaded' as const),
    }))
    const enabled = definitions.filter(({ name }) => !config.plugins.disabled.includes(name))
    const results = [...warnings, ...sectionWarnings(config, statuses, enabled, sources)].map((warning) =>
      warn('configuration', warning, `correct or remove the key; ${commandLine('config schema')} lists them`),
    )
    return {
      config,
      results: results.length > 0 ? results : [ok('configuration', files.length === 0 ? 'defaults' : files.join(', '))],
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return {
      config: undefined,
      results: [fail('configuration', error.message, `correct it; ${commandLine('config schema')} lists every key`)],
    }
  }
}

async function checkPort(config: Config): Promise<{ check: Check; url: string | undefined }> {
  const daemon = readDaemonFile(config.home_dir)
  if (daemon) {
    const url = daemonUrl(daemon.listenAddr)
    trustOwnCertificate(url)
    try {
      const health = await createDaemonClient({ url }).call(
        'GET',
        '/api/health',
        v.looseObject({ status: v.string() }),
        { timeoutMs: 3000 },
      )
      return {
        url,
        check:
          health.status === 'ok'
            ? ok('daemon', `runs at ${url} (process ${daemon.pid})`)
            : warn('daemon', `${url} says it is ${health.status}`, `${commandLine('status')} says more`),
      }
    } catch (error) {
      return {
        url: undefined,
        check: fail(
          'daemon',
          `process ${daemon.pid} should listen at ${url} and does not answer`,
          `${commandLine('stop')}, then ${commandLine('start')} (${error instanceof Error ? error.message : String(error)})`,
        ),
      }
    }
  }
  const { host, port } = parseListenAddr(config.listen_addr)
  const code = await tryPort(host, port)
  if (code === undefined)
    return { url: undefined, check: ok('port', `${config.listen_addr} is free; the daemon does not run`) }
  return {
    url: undefined,
    check: fail(
      'port',
      `${config.listen_addr} cannot be used (${code})`,
      code === 'EADDRINUSE'
        ? 'stop the program that has it, or set listen_addr'
        : 'set listen_addr to an address of this machine and a port above 1023',
    ),
  }
}
/** The code of the failure to listen there, `undefined` when it works. */
function tryPort(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

async function checkDatabase(config: Config, running: string | undefined): Promise<Check> {
  const name = 'database'
  const shown = config.database_url.replace(/\/\/[^@/]*@/, '//***@')
  if (running !== undefined) {
    const client = createDaemonClient({ url: running, apiKey: config.api_key })
    try {
      const { database } = await client.call('GET', '/api/health/detail', v.looseObject({ database: v.string() }), {
        timeoutMs: 5000,
      })
      return database === 'connected'
        ? ok(name, `${shown}, in use by the daemon`)
        : fail(name, `the daemon says "${database}"`, 'its log says more')
    } catch (error) {
      return warn(
        name,
        `could not ask the daemon (${error instanceof Error ? error.message : String(error)})`,
        'is the key the one of the daemon? see SVC_API_KEY',
      )
    }
  }
  const path = /^sqlite:(.+)$/.exec(config.database_url)?.[1]
  if (path !== undefined && path !== ':memory:' && !existsSync(path))
    return ok(name, `${path} will be made at the first start`)
  try {
    await using database = await openDatabase({ url: config.database_url, log: createLog({ level: 'silent' }) })
    return (await database.check())
      ? ok(name, shown)
      : fail(name, `${shown} takes no writes`, 'is the disk full, or the file read-only?')
  } catch (error) {
    const server = explainServer(error, config.database_url)
    return fail(
      name,
      server?.message ?? (error instanceof Error ? error.message : String(error)),
      server?.advice ?? 'see the message',
    )
  }
}

/** Variables of vendors that are usual; the providers plugin knows all it can use. */
const keyVariables = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'GROQ_API_KEY',
  'MISTRAL_API_KEY',
  'DEEPSEEK_API_KEY',
  'OPENROUTER_API_KEY',
  'TOGETHER_API_KEY',
  'XAI_API_KEY',
  'FIREWORKS_API_KEY',
  'CEREBRAS_API_KEY',
  'PERPLEXITY_API_KEY',
  'COHERE_API_KEY',
]

/** A daemon that runs says what it uses: only it sees the keys that are stored. */
async function checkProviders(config: Config, running: string | undefined): Promise<Check> {
  const problem = running === undefined ? undefined : await findDefaultProblem(config, running)
  if (problem !== undefined)
    return warn(
      'providers',
      `the default model cannot be used: ${problem}`,
      'correct default_provider and default_model',
    )
  const found = running === undefined ? listKeys(config) : await findDefault(config, running)
  if (found !== undefined) return ok('providers', found)
  return warn(
    'providers',
    `no key of a model provider${running === undefined ? ' in the environment or the configuration; the daemon knows whether one is stored' : ''}; the built-in offline model answers, or a local Ollama when there is one`,
    `store one with ${commandLine('providers set-key openai')}, or set OPENAI_API_KEY (or a sibling), or api_key under [providers.<name>]`,
  )
}
function listKeys(config: Config): string | undefined {
  const found = [
    ...keyVariables.filter((name) => process.env[name]?.trim()),
    ...Object.entries(isObject(config['providers']) ? config['providers'] : {})
      .filter(([, provider]) => isObject(provider) && String(provider['api_key'] ?? '').trim() !== '')
      .map(([name]) => `[providers.${name}]`),
  ]
  return found.length > 0 ? `keys: ${found.join(', ')}` : undefined
}
/** Why the default model of the daemon that runs cannot be used as it is configured. */
async function findDefaultProblem(config: Config, url: string): Promise<string | undefined> {
  try {
    const { default_problem: problem } = await createDaemonClient({ url, apiKey: config.api_key }).call(
      'GET',
      '/api/status',
      v.looseObject({ default_problem: v.nullish(v.string()) }),
      { timeoutMs: 5000 },
    )
    return problem ?? undefined
  } catch {
    return undefined /* That it cannot be asked is said by the check of the database. */
  }
}
async function findDefault(config: Config, url: string): Promise<string | undefined> {
  try {
    const { default_provider: provider, default_model: model } = await createDaemonClient({
      url,
      apiKey: config.api_key,
    }).call(
      'GET',
      '/api/status',
      v.looseObject({ default_provider: v.nullish(v.string()), default_model: v.nullish(v.string()) }),
      { timeoutMs: 5000 },
    )
    return provider && provider !== 'builtin' ? `${provider} / ${model ?? ''} answers` : undefined
  } catch {
    return listKeys(config) /* That it cannot be asked is said by the check of the database. */
  }
}

async function checkDisk(folder: string): Promise<Check> {
  const { bavail, bsize } = await statfs(nearestFolder(folder))
  const mebibytes = Math.floor((bavail * bsize) / 1_048_576)
  const found = `${mebibytes.toLocaleString('en')} MiB free for ${folder}`
  if (mebibytes < 100) return fail('disk', found, 'free some space: a full disk stops every write')
  return mebibytes < 1024 ? warn('disk', found, 'free some space soon') : ok('disk', found)
}
