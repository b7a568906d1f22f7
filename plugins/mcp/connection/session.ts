import type { CallToolRequest, Client, RequestOptions, Tool } from '@modelcontextprotocol/client'
import type { Clock } from 'svc/internal'
import { isObject, omitUndefined, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Dispose } from 'svc/sdk'
import type { Settings } from '../config.ts'
import { McpRequestError } from '../contract.ts'
import type { McpCaller, McpChange, McpConnection, McpObject, McpRequestOptions, McpTool } from '../contract.ts'
import { loginAdvice } from '../oauth/advice.ts'
import { describeFailure } from './describe-failure.ts'
import type { ServerLog } from '../servers/log.ts'
import type { ServerConfig } from '../servers/spec.ts'
import { TimeLimit } from './time-limit.ts'

/** The longest of a timer: the time limits of requests are ours, because they pause. */
const NO_TIMEOUT_MS = 2_147_483_647
/** How long a program that did not answer in time has to answer a ping. */
const PING_MS = 5000

type ServerMethod =
  | 'tools/list'
  | 'resources/list'
  | 'resources/templates/list'
  | 'resources/read'
  | 'resources/subscribe'
  | 'resources/unsubscribe'
  | 'prompts/list'
  | 'prompts/get'
  | 'completion/complete'
  | 'logging/setLevel'

export interface SessionDeps {
  readonly client: Client
  readonly server: ServerConfig
  readonly settings: Settings
  /** The calls of agents that run now, oldest first; shared with the handlers of the server's requests. */
  readonly calls: Set<McpCaller>
  readonly pid: () => number | undefined
  /** Why the connection ended, as far as the transport knows. */
  readonly reason: () => string | undefined
  /** Knows the secrets that the server got. */
  readonly log: Pick<ServerLog, 'hide' | 'hideIn'>
  /** Ends the connection, and the program. */
  readonly end: () => Promise<void>
  /** Default: the monotonic one. */
  readonly clock?: Clock
}

/** The server does not know the session: it did nothing, and a new session can be asked the same. */
export class SessionLost extends UpstreamFailure {
  constructor(server: string, options: { readonly cause: unknown }) {
    const text = `the MCP server "${server}" does not know this session any more`
    super(server, text, { ...options, reason: 'not_found', retry: 'later' })
  }
}

/** One connection to a server, from its handshake to its end. */
export class Session implements McpConnection {
  readonly server: string
  /** Settles with the reason when the connection has ended. */
  readonly closed: Promise<string>
  readonly #deps: SessionDeps
  readonly #listeners = new Set<(change: McpChange) => void>()
  readonly #markClosed: (reason: string) => void
  readonly #limits = new Set<TimeLimit>()
  #pauses = 0
  #isClosed = false
  #needsLogin = false
  #isProbed = false
  #ending: Promise<void> | undefined
  #tools: readonly McpTool[] = []
  running = 0

  constructor(deps: SessionDeps) {
    this.#deps = deps
    this.server = deps.server.name
    const { promise, resolve } = Promise.withResolvers<string>()
    this.closed = promise
    this.#markClosed = resolve
    Object.assign(deps.client, { onclose: () => this.#close(deps.reason() ?? 'the connection was closed') })
  }

  get capabilities(): McpObject {
    return (this.#deps.client.getServerCapabilities() ?? {}) as McpObject
  }
  get serverInfo(): McpObject {
    return (this.#deps.client.getServerVersion() ?? {}) as McpObject
  }
  get instructions(): string | undefined {
    return this.#deps.client.getInstructions()
  }
  get protocolVersion(): string {
    return this.#deps.client.getNegotiatedProtocolVersion() ?? ''
  }
  get pid(): number | undefined {
    return this.#deps.pid()
  }
  get isClosed(): boolean {
    return this.#isClosed
  }
  /** Whether it ended because its login is not enough, or none any more. */
  get needsLogin(): boolean {
    return this.#needsLogin
  }

  listTools(): readonly McpTool[] {
    return this.#tools
  }
  /** What `listTools` says from now on. */
  setTools(tools: readonly McpTool[]): void {
    this.#tools = tools
  }

  /** Reads the list of tools page by page, as far as the limits allow. */
  async readTools(signal: AbortSignal): Promise<readonly McpTool[]> {
    if (!('tools' in this.capabilities)) return []
    const { max_tools: maxTools, max_pages: maxPages, start_timeout_secs: secs } = this.#deps.settings
    const tools: McpTool[] = []
    let cursor: string | undefined
    for (let page = 0; page < maxPages && tools.length < maxTools; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const answer = await this.#ask('tools/list', params, { signal, timeoutMs: secs * 1000 })
      tools.push(...(answer['tools'] as readonly McpTool[]))
      const next = answer['nextCursor']
      if (typeof next !== 'string' || next === cursor) break
      cursor = next
    }
    return tools.slice(0, maxTools)
  }

  callTool(params: McpObject, options: McpRequestOptions = {}): Promise<McpObject> {
    const name = params['name']
    const tool = this.#tools.find((each) => each.name === name)
    return this.#request('tools/call', options, (request) =>
      this.#deps.client.callTool(params as CallToolRequest['params'], {
        ...request,
        ...(tool && { toolDefinition: tool as Tool }),
      }),
    )
  }
  listResources(params: McpObject = {}, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('resources/list', params, options)
  }
  listResourceTemplates(params: McpObject = {}, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('resources/templates/list', params, options)
  }
  readResource(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('resources/read', params, options)
  }
  listPrompts(params: McpObject = {}, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('prompts/list', params, options)
  }
  getPrompt(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('prompts/get', params, options)
  }
  complete(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('completion/complete', params, options)
  }
  subscribe(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('resources/subscribe', params, options)
  }
  unsubscribe(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('resources/unsubscribe', params, options)
  }
  setLevel(params: McpObject, options?: McpRequestOptions): Promise<McpObject> {
    return this.#ask('logging/setLevel', params, options)
  }
  async ping(options: McpRequestOptions = {}): Promise<void> {
    await this.#request('ping', options, (request) => this.#deps.client.ping(request))
  }
  onChanged(listener: (change: McpChange) => void): Dispose {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }
  /** Tells the listeners. */
  changed(change: McpChange): void {
    for (const listener of this.#listeners) listener(change)
  }

  /** Ends the connection; requests that run reject. */
  async end(reason: string): Promise<void> {
    this.#close(reason)
    await (this.#ending ??= this.#deps.end())
  }

  /** The time limits of requests stand still meanwhile, such as while a person is asked. */
  async pausedWhile<T>(work: () => Promise<T>): Promise<T> {
    if (++this.#pauses === 1) for (const limit of this.#limits) limit.pause()
    try {
      return await work()
    } finally {
      if (--this.#pauses === 0) for (const limit of this.#limits) limit.run()
    }
  }

  /** One page of a list, or one answer: the methods of the SDK would read all pages. */
  #ask(method: ServerMethod, params: McpObject, options: McpRequestOptions = {}): Promise<McpObject> {
    return this.#request(method, options, (request) =>
      this.#deps.client.request({ method, params: { ...params } }, request),
    )
  }

  /** Sends a request under its time limit, and says in our terms how it failed. */
  async #request(
    method: string,
    options: McpRequestOptions,
    send: (options: RequestOptions) => Promise<unknown>,
  ): Promise<McpObject> {
    const { caller, progress, signal, timeoutMs = this.#deps.server.timeout_secs * 1000 } = options
    signal?.throwIfAborted()
    if (this.#isClosed) throw this.#ended(await this.closed)
    if (this.running >= this.#deps.settings.max_calls)
      throw new Refusal('rate_limit', `The MCP server "${this.server}" is busy: plugins.mcp.max_calls is reached`, {
        retryAfterSecs: 1,
      })
    this.running++
    if (caller) this.#deps.calls.add(caller)
    const limit = new TimeLimit(timeoutMs, this.#deps.clock)
    this.#limits.add(limit)
    if (this.#pauses === 0) limit.run()
    const requested: RequestOptions = {
      timeout: NO_TIMEOUT_MS,
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
      ...(progress && { onprogress: (each) => progress(omitUndefined(each)) }),
    }
    try {
      // A transport that waits for its program to end answers late; the caller is told at once.
      const answer = await Promise.race([
        send(requested),
        this.closed.then((reason) => Promise.reject(this.#ended(reason))),
      ])
      return isObject(answer) ? this.#deps.log.hideIn(answer) : {}
    } catch (error) {
      if (limit.signal.aborted && signal?.aborted !== true) {
        if (this.#deps.server.transport === 'stdio') void this.#probe()
        throw this.#late(error, method, timeoutMs)
      }
      throw await this.#explain(error, method, signal)
    } finally {
      limit.pause()
      this.#limits.delete(limit)
      this.running--
      if (caller) this.#deps.calls.delete(caller)
    }
  }

  /** A program that answers nothing any more is ended, so that the next request starts it anew. */
  async #probe(): Promise<void> {
    if (this.#isProbed || this.#isClosed) return
    this.#isProbed = true
    const earlier = [...this.#limits]
    const isDeaf = await this.ping({ timeoutMs: PING_MS }).then(
      () => false,
      (error: unknown) => error instanceof UpstreamFailure && error.reason === 'timeout',
    )
    this.#isProbed = false
    // It may be busy with what it was asked before the ping, not with what came after.
    if (isDeaf && !earlier.some((limit) => this.#limits.has(limit))) await this.end('it does not answer any more')
  }
  #late(cause: unknown, method: string, timeoutMs: number): UpstreamFailure {
    const text = `the MCP server "${this.server}" did not answer ${method} within ${timeoutMs / 1000} s`
    return new UpstreamFailure(this.server, text, { reason: 'timeout', retry: 'later', cause })
  }
  async #explain(error: unknown, method: string, signal: AbortSignal | undefined): Promise<unknown> {
    if (signal?.aborted) return signal.reason
    if (error instanceof UpstreamFailure || error instanceof Refusal) return error
    const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } =
      await import('@modelcontextprotocol/client')
    if (error instanceof ProtocolError)
      return new McpRequestError(error.code, this.#deps.log.hide(error.message), error.data)
    if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed)
      return this.#ended(this.#deps.reason() ?? 'the connection was closed')
    if (error instanceof UnauthorizedError) return this.#loginNeeded(error)
    const problem = this.#deps.log.hide(describeFailure(error))
    const text = `the MCP server "${this.server}" failed at ${method}: ${problem}`
    const failed = new UpstreamFailure(this.server, text, { reason: 'network', retry: 'later', cause: error })
    // The connection is of no use any more: the next request makes a new one.
    if (error instanceof SdkHttpError && error.status === 404) {
      void this.end('it does not know this session any more')
      return new SessionLost(this.server, { cause: error })
    }
    if (
      this.#deps.server.transport !== 'stdio' &&
      !(error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    )
      void this.end(problem)
    return failed
  }
  #loginNeeded(cause: unknown): UpstreamFailure {
    this.#needsLogin = true
    void this.end('it wants a login')
    const text = `the MCP server "${this.server}" ${loginAdvice(this.server)}`
    return new UpstreamFailure(this.server, text, { reason: 'auth', retry: 'never', cause })
  }
  #ended(reason: string): UpstreamFailure {
    return new UpstreamFailure(this.server, `the MCP server "${this.server}" ended: ${reason}`, {
      reason: 'cut',
      retry: 'later',
    })
  }
  #close(reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#markClosed(reason)
    this.changed({ kind: 'closed', reason })
  }
}
