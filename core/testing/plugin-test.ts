import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp } from '../app.ts'
import type { App } from '../app.ts'
import { loadConfig } from '../config/load.ts'
import type { ConfigInput } from '../config/schema.ts'
import { ManualTimer } from '../jobs/manual-timer.ts'
import { createLog } from '../log/log.ts'
import { builtInFolders } from '../host/folders.ts'
import type { Fetch } from '../net/fetch.ts'
import { readOwnJson } from '../schema/nesting.ts'
import type { ToolCallContext, ToolResult } from '../tools/tool.ts'
import { FakeModel, providerOf } from './fake-model.ts'

export interface PluginTestOptions {
  /**
   * The plugin: its folder, or its file when it is one file. May be one of the built-in plugins, which are all there
   * anyway.
   */
  readonly plugin: string | URL
  /** As in `config.toml`. The section of the plugin is `plugins.<name>`. */
  readonly config?: ConfigInput
  /** What `ctx.fetch` of every plugin does instead of a request. By default it rejects: a test sends nothing. */
  readonly fetch?: Fetch
  /** What the clock shows at first. Default: 2026-01-01T00:00:00Z. */
  readonly now?: Date
}

/** The answer to a request. `body` is the parsed JSON; the text where it is no JSON; `undefined` when it is empty. */
export interface TestAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
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
 * A daemon with all built-in plugins and one of yours, on a home of its own that is removed at the end. It has no
 * port and no network.
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
  /** Sends a request as the owner. `body` is sent as JSON. */
  request(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<TestAnswer>
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
  /** Stops the daemon and removes its home. Rejects when a defect was not taken. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Starts a daemon with the plugin. Rejects with what is wrong when the plugin cannot be loaded; nothing is left
 * behind then.
 */
export async function startPlugin(options: PluginTestOptions): Promise<PluginTest> {
  const folder = toPath(options.plugin)
  const home = await mkdtemp(join(tmpdir(), 'svc-plugin-test-'))
  const model = new FakeModel()
  const provider = providerOf(model, randomUUID())
  const test = new Test({ folder, home, model, release: () => provider.release() })
  try {
    await mkdir(join(home, 'plugins'))
    await writeFile(join(home, 'plugins', 'provider-fake.ts'), provider.source)
    await test.start(options)
    return test
  } catch (error) {
    await test.remove()
    throw error
  }
}

interface TestDeps {
  readonly folder: string
  readonly home: string
  readonly model: FakeModel
  readonly release: () => void
}

class Test implements PluginTest {
  readonly home: string
  readonly model: FakeModel
  readonly log: string[] = []
  readonly defects: Error[] = []
  name = ''
  readonly #deps: TestDeps
  #app: App | undefined
  /** By plugin: those of the others stand still. */
  readonly #timers = new Map<string, ManualTimer>()

  constructor(deps: TestDeps) {
    this.#deps = deps
    this.home = deps.home
    this.model = deps.model
  }

  async start({
    config = {},
    fetch = offline,
    now = new Date('2026-01-01T00:00:00Z'),
  }: PluginTestOptions): Promise<void> {
    const { folder, home } = this.#deps
    const log = createLog({ level: 'debug', colored: false, write: (line) => void this.log.push(line) })
    const paths = (await builtInFolders()).includes(folder) ? [] : [folder]
    const reread = () => loadConfig({ home, cwd: home, env: {}, flags: {}, shipped: toConfig(config, paths) })
    this.#app = await createApp({
      loaded: await reread(),
      reread,
      log,
      fetch,
      jobTimer: (plugin) => this.#timerOf(plugin, now),
      onConfig: (_config, secrets) => {
        for (const secret of secrets) log.registerSecret(secret)
      },
      onDefect: (error, where) => {
        this.defects.push(
          new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error }),
        )
      },
    })
    const status = this.#app.daemon.plugins().find((plugin) => plugin.source === folder || plugin.folder === folder)
    if (status === undefined) throw new Error(`${folder} holds no plugin: there is no index.ts or index.js`)
    if (status.state !== 'loaded') throw new Error(`${status.name} is not loaded: ${status.error ?? status.state}`)
    this.name = status.name
  }

  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TestAnswer> {
    const answer = await this.#running.fetch(
      new Request(new URL(path, 'http://127.0.0.1:4545'), {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    const text = await answer.text()
    const isJson = /\bjson\b/.test(answer.headers.get('content-type') ?? '')
    const parsed: unknown = text === '' ? undefined : isJson ? readOwnJson(text) : text
    return { status: answer.status, headers: answer.headers, body: parsed }
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
  }
  async unload(): Promise<void> {
    await this.#running.host.unload(this.name)
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
      this.#deps.release()
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

const offline: Fetch = () => Promise.reject(new Error('this test has no network: give startPlugin a fetch'))

function toPath(plugin: string | URL): string {
  const path = plugin instanceof URL ? fileURLToPath(plugin) : resolve(plugin)
  return path.replace(/[\\/](?:index\.[jt]s)?$/, '')
}

function toConfig(config: ConfigInput, paths: readonly string[]): Record<string, unknown> {
  return {
    listen_addr: '127.0.0.1:0',
    database_url: 'sqlite::memory:',
    // The answers of routes are checked against what they declare.
    development: true,
    default_provider: 'fake',
    default_model: 'fake-model',
    ...config,
    rate_limit: { tokens_per_minute: 10_000_000, ...config.rate_limit },
    plugins: {
      drain_ms: 500,
      watch: false,
      security: { first_probe_ms: 3_600_000 },
      ...config.plugins,
      paths,
    },
  }
}
