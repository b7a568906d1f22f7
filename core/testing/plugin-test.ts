import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp } from '../app.ts'
import type { App } from '../app.ts'
import { loadConfig } from '../config/load.ts'
import type { ConfigInput } from '../config/schema.ts'
import { ManualTimer } from '../jobs/manual-timer.ts'
import { createLog } from '../log/log.ts'
import { builtInFolders } from '../host/folders.ts'
import type { Fetch, OutboundRequest } from '../net/fetch.ts'
import { readOwnJson } from '../schema/nesting.ts'
import type { ToolCallContext, ToolResult } from '../tools/tool.ts'
import { fakeDefaults, FakeModel, installModel } from './fake-model.ts'
import type { FakeAnswer } from './fake-model.ts'
import { toOutboundResponse } from './outbound-response.ts'
import { messageOf } from '../errors/message.ts'

/** Answers a request that a plugin sends. */
export type FakeFetch = (url: URL, request: OutboundRequest) => Promise<Response>

export interface PluginTestOptions {
  /**
   * The plugin: its folder, or its file when it is one file. May be one of the built-in plugins, which are all there
   * anyway.
   */
  readonly plugin: string | URL
  /**
   * The built-in plugins to load beside it, by the names of their folders. Those they require are not added. The
   * fewer, the faster the start. Default: all of them.
   */
  readonly builtIns?: readonly string[]
  /** As in `config.toml`. The section of the plugin is `plugins.<name>`. */
  readonly config?: ConfigInput
  /** `file` keeps the data in the home, so that `restart` finds it. Default: `memory`, which is faster. */
  readonly database?: 'memory' | 'file'
  /**
   * What `ctx.fetch` of every plugin does instead of a request; `network` leaves the requests to the daemon, under
   * `[outbound]` of the configuration. By default it rejects: a test sends nothing.
   */
  readonly fetch?: FakeFetch | 'network'
  /** What the clock shows at first. Default: 2026-01-01T00:00:00Z. */
  readonly now?: Date
}

/** The answer to a request. `body` is the parsed JSON; the text where it is no JSON; `undefined` when it is empty. */
export interface TestAnswer<T = unknown> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** What a plugin has registered now, as the daemon lists it. */
export interface Registered {
  /** Method and path, such as `GET /api/hello/:name`; sockets begin with `WebSocket`. */
  readonly routes: readonly string[]
  /** Kind and id, such as `notify agents:spawned`. */
  readonly hooks: readonly string[]
  /** Names of tools. */
  readonly tools: readonly string[]
  /** Label and schedule, such as `tidy (every 60000 ms)`. */
  readonly jobs: readonly string[]
  /** Names of metrics. */
  readonly metrics: readonly string[]
}

/**
 * A daemon with the built-in plugins and one of yours, on a home of its own that is removed at the end. It has no
 * port and no network. Its plugins are told that it listens, and its channels have connected or failed.
 *
 * ```ts
 * await using test = await startPlugin({ plugin: new URL('../index.ts', import.meta.url) })
 * expect(await test.request('GET', '/api/hello/Ada')).toMatchObject({ status: 200, body: { text: 'Hello, Ada!' } })
 * ```
 */
export interface PluginTest extends AsyncDisposable {
  /** The name in the definition of the plugin. */
  readonly name: string
  /** The folder of the daemon's data. */
  readonly home: string
  /** The model that agents talk to. */
  readonly model: FakeModel
  /** Lines of the log so far, debug lines too. */
  readonly log: readonly string[]
  /**
   * Failures that nobody caught, of a listener or a job for instance. Disposing rejects when some are left: take them
   * with `splice(0)`.
   */
  readonly defects: Error[]
  /** Sends a request as the owner. `body` is sent as JSON. `T` is the type that the test expects of the answer. */
  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<TestAnswer<T>>
  /** The same with any body, and the answer as it comes: a stream, a file. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /**
   * Makes an agent and returns its id. `toml` is the manifest after the name. Default: it may use every tool.
   */
  spawn(name: string, toml?: string): Promise<string>
  /**
   * Sends a message to it and returns the response. The answers are those of `model`, one for each request of the turn.
   */
  say(id: string, message: string, ...answers: readonly FakeAnswer[]): Promise<string>
  /** Calls a tool as an agent would. Arguments that do not fit are a result with `failed`. */
  callTool(name: string, args: unknown, call?: Partial<ToolCallContext>): Promise<ToolResult>
  registered(): Registered
  /** Metrics of the daemon whose name begins so, as `/api/metrics` has them: name with labels, and value. */
  metrics(prefix: string): Promise<ReadonlyMap<string, number>>
  /**
   * Moves the clock of the plugin's jobs and runs those that are due, one after the other. `Date.now` stays as it is.
   */
  advance(ms: number): Promise<void>
  /** Reads the code again and replaces the plugin, as an edit does while the daemon runs. */
  reload(): Promise<void>
  /** Unloads the plugin. Rejects when it leaves something behind. */
  unload(): Promise<void>
  /**
   * Stops the daemon and starts it again on its home. `whileStopped` may read and change its files meanwhile. What was
   * stored is there again with `database: 'file'`.
   */
  restart(whileStopped?: () => void | Promise<void>): Promise<void>
  /** Stops the daemon and removes its home. Rejects when a defect was not taken. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Starts a daemon with the plugin. Rejects with what is wrong when the plugin cannot be loaded; nothing is left
 * behind then.
 */
export async function startPlugin(options: PluginTestOptions): Promise<PluginTest> {
  const home = await mkdtemp(join(tmpdir(), 'svc-plugin-test-'))
  const test = new Test(options, home)
  try {
    await test.install()
    await test.start()
    return test
  } catch (error) {
    await test.remove()
    throw error
  }
}

/** Where the daemon would listen. */
const ADDRESS = 'http://127.0.0.1:4545'

class Test implements PluginTest {
  readonly home: string
  readonly model = new FakeModel()
  readonly log: string[] = []
  readonly defects: Error[] = []
  name = ''
  readonly #options: PluginTestOptions
  #uninstall: (() => void) | undefined
  #app: App | undefined
  /** By plugin: those of the others stand still. */
  readonly #timers = new Map<string, ManualTimer>()

  constructor(options: PluginTestOptions, home: string) {
    this.#options = options
    this.home = home
  }

  async install(): Promise<void> {
    this.#uninstall = await installModel(this.model, join(this.home, 'plugins'))
  }

  async start(): Promise<void> {
    const options = this.#options
    const home = this.home
    const { fetch = offline, now = new Date('2026-01-01T00:00:00Z') } = options
    const folder = toPath(options.plugin)
    const log = createLog({ level: 'debug', colored: false, write: (line) => void this.log.push(line) })
    const builtIns = await foldersOf(options.builtIns, folder)
    const shipped = toConfig(options, builtIns, folder)
    const reread = () => loadConfig({ home, cwd: home, env: {}, flags: {}, shipped })
    this.#app = await createApp({
      loaded: await reread(),
      reread,
      log,
      builtIns,
      ...(fetch === 'network' ? {} : { fetch: answerWith(fetch) }),
      jobTimer: (plugin) => this.#timerOf(plugin, now),
      onConfig: (_config, secrets) => {
        for (const secret of secrets) log.registerSecret(secret)
      },
      onDefect: (error, where) => {
        this.defects.push(new Error(`${where}: ${messageOf(error)}`, { cause: error }))
      },
    })
    const status = this.#app.daemon.plugins().find((plugin) => plugin.source === folder || plugin.folder === folder)
    if (status === undefined) throw new Error(`${folder} holds no plugin: there is no index.ts or index.js`)
    if (status.state !== 'loaded') throw new Error(`${status.name} is not loaded: ${status.error ?? status.state}`)
    this.name = status.name
    await this.#app.announce(ADDRESS)
    await this.#app.settled()
  }

  async request<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TestAnswer<T>> {
    const answer = await this.fetch(path, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    const isJson = /\bjson\b/.test(answer.headers.get('content-type') ?? '')
    const parsed: unknown = text === '' ? undefined : isJson ? readOwnJson(text) : text
    return { status: answer.status, headers: answer.headers, body: parsed as T }
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return this.#running.fetch(new Request(new URL(path, ADDRESS), init))
  }

  async spawn(name: string, toml = '[capabilities]\ntools = ["*"]'): Promise<string> {
    const manifest_toml = `name = ${JSON.stringify(name)}\n${toml}\n`
    return (await this.#post<{ readonly agent_id: string }>('/api/agents', { manifest_toml })).agent_id
  }

  async say(id: string, message: string, ...answers: readonly FakeAnswer[]): Promise<string> {
    this.model.answer(...answers)
    const { response } = await this.#post<{ readonly response: string }>(`/api/agents/${id}/message`, { message })
    return response
  }

  async #post<T>(path: string, sent: unknown): Promise<T> {
    const { status, body } = await this.request<T>('POST', path, sent)
    if (status >= 300) throw new Error(`POST ${path} answered ${status}: ${JSON.stringify(body)}`)
    return body
  }

  callTool(name: string, args: unknown, call: Partial<ToolCallContext> = {}): Promise<ToolResult> {
    return this.#running.callTool(name, args, {
      agentId: '00000000-0000-4000-8000-000000000001',
      agentName: 'tester',
      sessionId: '00000000-0000-4000-8000-000000000002',
      turnId: randomUUID(),
      callId: randomUUID(),
      signal: new AbortController().signal,
      ...call,
    })
  }

  registered(): Registered {
    const status = this.#running.daemon.plugins().find(({ name }) => name === this.name)
    const labelsOf = (kind: string): readonly string[] =>
      (status?.ledger ?? [])
        .filter((entry) => entry.kind === kind)
        .map(({ label }) => label)
        .sort()
    return {
      routes: labelsOf('route'),
      hooks: labelsOf('hook'),
      tools: labelsOf('tool'),
      jobs: labelsOf('job'),
      metrics: labelsOf('metric'),
    }
  }

  async metrics(prefix: string): Promise<ReadonlyMap<string, number>> {
    const { body } = await this.request('GET', '/api/metrics')
    const lines = String(body)
      .split('\n')
      .filter((line) => line.startsWith(prefix))
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    )
  }

  async advance(ms: number): Promise<void> {
    await this.#timers.get(this.name)?.advance(ms)
  }
  async reload(): Promise<void> {
    await this.#running.host.reload(this.name)
    await this.#running.settled()
  }
  async unload(): Promise<void> {
    await this.#running.host.unload(this.name)
  }

  async restart(whileStopped: () => void | Promise<void> = () => undefined): Promise<void> {
    await this.#running[Symbol.asyncDispose]()
    this.#app = undefined
    await whileStopped()
    await this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove()
    if (this.defects.length > 0)
      throw new AggregateError(
        this.defects,
        `unexpected defects: ${this.defects.map(({ message }) => message).join('; ')}`,
      )
  }

  async remove(): Promise<void> {
    try {
      await this.#app?.[Symbol.asyncDispose]()
    } finally {
      this.#uninstall?.()
      await rm(this.home, { recursive: true, force: true })
    }
  }

  #timerOf(plugin: string, now: Date): ManualTimer {
    const timer = this.#timers.get(plugin) ?? new ManualTimer(now.getTime())
    this.#timers.set(plugin, timer)
    return timer
  }

  get #running(): App {
    if (!this.#app) throw new Error('the daemon of this test is not started')
    return this.#app
  }
}

const offline: FakeFetch = () => Promise.reject(new Error('this test has no network: give startPlugin a fetch'))

function answerWith(fetch: FakeFetch): Fetch {
  return async (address, request = {}) => {
    const url = new URL(address)
    return toOutboundResponse(await fetch(url, request), url)
  }
}

function toPath(plugin: string | URL): string {
  const path = plugin instanceof URL ? fileURLToPath(plugin) : resolve(plugin)
  return path.replace(/[\\/](?:index\.[jt]s)?$/, '')
}

async function foldersOf(names: readonly string[] | undefined, plugin: string): Promise<readonly string[]> {
  const all = await builtInFolders()
  if (names === undefined) return all
  const folders = names.map((name) => {
    const folder = all.find((each) => basename(each) === name)
    if (folder !== undefined) return folder
    const known = all.map((each) => basename(each)).join(', ')
    throw new Error(`there is no built-in plugin "${name}" to load beside the one of the test; there are ${known}`)
  })
  return all.includes(plugin) ? [...new Set([...folders, plugin])] : folders
}

function toConfig(
  { config = {}, database = 'memory' }: PluginTestOptions,
  builtIns: readonly string[],
  plugin: string,
): Record<string, unknown> {
  const hasProbes = builtIns.some((folder) => basename(folder) === 'security')
  return {
    listen_addr: '127.0.0.1:0',
    ...(database === 'memory' ? { database_url: 'sqlite::memory:' } : {}),
    // The answers of routes are checked against what they declare.
    development: true,
    ...fakeDefaults,
    ...config,
    rate_limit: { tokens_per_minute: 10_000_000, ...config.rate_limit },
    plugins: {
      drain_ms: 500,
      watch: false,
      ...(hasProbes ? { security: { first_probe_ms: 3_600_000 } } : {}),
      ...config.plugins,
      paths: [...(config.plugins?.paths ?? []), ...(builtIns.includes(plugin) ? [] : [plugin])],
    },
  }
}
