import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Fetch } from 'svc/sdk'
import { createApp } from '../../core/app.ts'
import type { App } from '../../core/app.ts'
import { loadConfig } from '../../core/config/load.ts'
import type { Config, ConfigInput } from '../../core/config/schema.ts'
import { builtInFolders } from '../../core/host/folders.ts'
import type { JobTimer } from '../../core/jobs/timer.ts'
import { LogFeed } from '../../core/log/feed.ts'
import { createLog } from '../../core/log/log.ts'
import { addEmptyTables } from './empty-tables.ts'
import type { Json } from './json.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
/** Of every daemon of a test on a PostgreSQL server. */
export const SHARED_VAULT_KEY = 'ab'.repeat(32)
const transpiled = join(tmpdir(), 'svc-transpiled')

export interface HostOptions {
  /**
   * Built-in plugins by folder name (`kv`, `providers/builtin`), or absolute folders. Those they require are not added.
   * Default: all built-in plugins.
   */
  readonly plugins?: readonly string[]
  /** As in `config.toml`. The defaults are those of a test: a free port, no limits that a test would run into. */
  readonly config?: ConfigInput
  /** A home to use again; it is not removed then. Default: a temporary folder. */
  readonly home?: string
  /** Listen on a free port at once (default true). `false` answers through `app.fetch` only. */
  readonly listen?: boolean
  /** Instead of the network. */
  readonly fetch?: Fetch
  /** Keep the database in memory: faster, and gone at the end (default: a file in the home). */
  readonly memory?: boolean
  /** The clock of the jobs of a plugin. */
  readonly jobTimer?: (plugin: string) => JobTimer
}
export interface Defect {
  readonly error: unknown
  readonly where: string
}
export interface Answer<T = Json> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** A whole daemon on a home of its own. Disposing fails when a defect was logged that no `defects()` call took. */
export interface TestHost extends AsyncDisposable {
  readonly app: App
  readonly home: string
  readonly url: string
  /** Over the port when it listens, else through `app.fetch`. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** A JSON request and its answer parsed; `body` is `undefined` for an empty one. */
  json<T = Json>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<T>>
  /** The defects so far, taken: they do not fail the test any more. */
  defects(): readonly Defect[]
  /** The configuration that the owner of the app was told of last, for the level and the format of the log. */
  readonly announced: Config
  /** Lines of the log so far, debug lines too. */
  readonly log: readonly string[]
  /** Settles when the plugin is as described; looks after every change of the host. */
  plugin(
    name: string,
    state: 'loaded' | 'failed' | 'disabled' | 'gone',
    matches?: (status: ReturnType<App['daemon']['plugins']>[number]) => boolean,
  ): Promise<void>
  /** Stops the daemon and keeps its home, so that another can start on it. */
  stop(): Promise<void>
}

export async function startHost(options: HostOptions = {}): Promise<TestHost> {
  const home = options.home ?? (await makeHome())
  if (usesFileOfNewHome(options)) await addEmptyTables(home)
  const lines: string[] = []
  let taken: Defect[] = []
  const logs = new LogFeed()
  const log = createLog({
    level: 'debug',
    colored: false,
    write: (line) => {
      lines.push(line)
    },
    onLine: (line) => logs.push(line),
  })
  const reread = () => loadConfig({ home, cwd: home, env: {}, flags: {}, shipped: toConfig(options) })
  const loaded = await reread()
  const builtIns = options.plugins ? await findFolders(options.plugins) : await builtInFolders()
  let announced = loaded.config
  const app = await createApp({
    loaded,
    log,
    logs,
    builtIns,
    reread,
    onConfig: (config, secrets) => {
      announced = config
      for (const secret of secrets) log.registerSecret(secret)
    },
    onDefect: (error, where) => {
      taken.push({ error, where })
    },
    ...(options.fetch ? { fetch: options.fetch } : {}),
    ...(options.jobTimer ? { jobTimer: options.jobTimer } : {}),
  })
  const url = options.listen === false ? 'http://127.0.0.1:4545' : (await app.listen()).url.replace(/\/$/, '')
  const request = (path: string, init?: RequestInit): Promise<Response> =>
    options.listen === false ? app.fetch(new Request(new URL(path, url), init)) : fetch(new URL(path, url), init)

  return {
    app,
    home,
    url,
    log: lines,
    get announced() {
      return announced
    },
    fetch: request,
    async json(method, path, body, headers = {}) {
      const response = await request(path, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },
    defects() {
      const found = taken
      taken = []
      return found
    },
    plugin(name, state, matches = () => true) {
      const fits = (): boolean => {
        const found = app.daemon.plugins().filter((status) => status.name === name)
        return state === 'gone' ? found.length === 0 : found.some((status) => status.state === state && matches(status))
      }
      return new Promise((resolve) => {
        if (fits()) return resolve()
        const stop = app.host.observe(() => {
          if (!fits()) return
          stop()
          resolve()
        })
      })
    },
    stop: async () => {
      await app[Symbol.asyncDispose]()
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
      if (taken.length > 0)
        throw new AggregateError(
          taken.map(({ error }) => error),
          `unexpected defects: ${taken.map(({ error, where }) => `${where}: ${error instanceof Error ? error.stack : String(error)}`).join('\n')}`,
        )
    },
  }
}

/** Reloaded code is transpiled once for all homes: each file of the cache ends with a hash of what it was made of. */
async function makeHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-test-'))
  await Promise.all([mkdir(transpiled, { recursive: true }), mkdir(join(home, 'cache'))])
  await symlink(transpiled, join(home, 'cache/plugins'))
  return home
}

/** Whether all built-in plugins keep their rows where a home has them, and there is nothing yet. */
function usesFileOfNewHome({ home, plugins, memory, config = {} }: HostOptions): boolean {
  return [home, plugins, memory, config.database_url, config.data_dir].every((option) => option === undefined)
}

async function findFolders(names: readonly string[]): Promise<readonly string[]> {
  const known = await builtInFolders()
  return names.map((name) => {
    if (isAbsolute(name)) return name
    const found = known.find(
      (folder) => folder === join(repository, 'plugins', name) || folder === join(repository, 'adapters', name),
    )
    if (!found)
      throw new Error(
        `there is no built-in plugin "${name}"; there are ${known.map((folder) => folder.slice(repository.length)).join(', ')}`,
      )
    return found
  })
}

function toConfig({ config = {}, memory, plugins }: HostOptions): Record<string, unknown> {
  return {
    listen_addr: '127.0.0.1:0',
    development: true,
    ...(memory ? { database_url: 'sqlite::memory:' } : {}),
    // Daemons that share a server have one key.
    ...(config.database_url?.startsWith('postgres') ? { vault_key: SHARED_VAULT_KEY } : {}),
    ...config,
    rate_limit: { tokens_per_minute: 10_000_000, failed_auth_per_minute: 100_000, ...config.rate_limit },
    // The security probes run when they are asked for: sixteen tries beside every test would be in its way.
    plugins: {
      drain_ms: 500,
      watch: false,
      ...config.plugins,
      ...(plugins === undefined || plugins.includes('security')
        ? { security: { first_probe_ms: 3_600_000, ...sectionOf(config.plugins?.['security']) } }
        : {}),
    },
  }
}

function sectionOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
