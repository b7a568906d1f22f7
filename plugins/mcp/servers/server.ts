import { matchesWildcard, messageOf, orAborted, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { ClientFeatures, ListedTool } from '../connection/features.ts'
import { describeFailure } from '../connection/describe-failure.ts'
import type { Session } from '../connection/session.ts'
import type { McpServerState, McpTool } from '../contract.ts'
import { loginAdvice } from '../oauth/advice.ts'
import type { Listing } from './store.ts'
import { pauseAfter } from './backoff.ts'
import { ServerLog } from './log.ts'
import { readListing } from './listing.ts'
import type { ServerConfig } from './spec.ts'

export interface ServerDeps {
  readonly settings: Settings
  readonly features: ClientFeatures
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly open: (server: ServerConfig, log: ServerLog, signal: AbortSignal) => Promise<Session>
  /** The state, or what it lists, is another one. */
  readonly onChanged: (server: Server) => void
  /** It listed its tools. */
  readonly onListed: (server: Server, listing: Listing) => Promise<void>
  readonly onRestart: (server: Server) => void
  /** It was given up. */
  readonly onGivenUp: (server: Server, reason: string) => void
}

/** Counts what any server ever listed. */
let revisions = 0

/** One server with its state: at most one connection at a time, restarts after failures, and the tools it listed. */
export class Server {
  readonly config: ServerConfig
  readonly log: ServerLog
  readonly #deps: ServerDeps
  #state: McpServerState
  #error: string | undefined
  #session: Session | undefined
  #opening: Promise<Session> | undefined
  #stop = new AbortController()
  #isOver = false
  #resetting: Promise<void> | undefined
  #cancelRestart: (() => void) | undefined
  /** In a row. */
  #failures = 0
  #retryAt = 0
  #restarts = 0
  #lastUsed: number | undefined
  #connectedAt: number | undefined
  #listing: Listing | undefined
  #tools: readonly ListedTool[] = []
  #relisting: Promise<void> | undefined
  #relistAgain = false
  #relistedAt = -Infinity
  #cancelRelist: (() => void) | undefined
  /** Another one whenever its tools may be others, and of every server. */
  revision = ++revisions
  /** Calls since the daemon started. */
  calls = 0
  failedCalls = 0

  constructor(config: ServerConfig, deps: ServerDeps) {
    this.config = config
    this.#deps = deps
    this.log = new ServerLog(deps.settings.log_bytes)
    this.#state = config.enabled ? 'disconnected' : 'disabled'
  }

  get name(): string {
    return this.config.name
  }
  get state(): McpServerState {
    return this.#state
  }
  get error(): string | undefined {
    return this.#error
  }
  get pid(): number | undefined {
    return this.#session?.pid
  }
  get restarts(): number {
    return this.#restarts
  }
  get lastUsed(): number | undefined {
    return this.#lastUsed
  }
  get connectedAt(): number | undefined {
    return this.#state === 'connected' ? this.#connectedAt : undefined
  }
  get listing(): Listing | undefined {
    return this.#listing
  }
  get tools(): readonly ListedTool[] {
    return this.#tools
  }

  /** Begins with what it listed in an earlier life of the daemon. */
  async restore(listing: Listing): Promise<void> {
    this.#listing = listing
    this.#take(undefined, await this.#screen(listing.tools))
    this.#deps.onChanged(this)
  }

  /** The connection, which is made if there is none. Rejects while a failed server waits for its next attempt. */
  async session(signal?: AbortSignal): Promise<Session> {
    this.#lastUsed = this.#deps.clock.now()
    const { config } = this
    if (!config.enabled) throw new Refusal('conflict', `The MCP server "${config.name}" is disabled`)
    if (this.#session && !this.#session.isClosed) return this.#session
    const waitMs = this.#retryAt - this.#deps.clock.now()
    if (!this.#opening && waitMs > 0)
      throw new UpstreamFailure(config.name, `the MCP server "${config.name}" ${this.#error ?? 'failed'}`, {
        reason: 'network',
        retry: 'later',
        retryAfterSecs: Math.ceil(waitMs / 1000),
      })
    const opening = this.#open()
    return await (signal ? orAborted(opening, signal) : opening)
  }

  /** A new connection to a server that forgot the session of the last one, without the pause after a failure. */
  async sessionAfterLoss(signal: AbortSignal): Promise<Session> {
    this.#retryAt = 0
    return await this.session(signal)
  }

  /** Ends the connection and forgets its failures, so that the next use connects at once. */
  reset(reason: string): Promise<void> {
    // One for all who ask meanwhile: what the first of them began would else be ended by nobody.
    return (this.#resetting ??= this.#reset(reason).finally(() => {
      this.#resetting = undefined
    }))
  }
  async #reset(reason: string): Promise<void> {
    await this.#end(reason)
    if (this.#isOver) throw new Refusal('conflict', `The MCP server "${this.name}" was removed or changed meanwhile`)
    this.#stop = new AbortController()
    this.#failures = 0
    this.#retryAt = 0
    this.#set(this.config.enabled ? 'disconnected' : 'disabled')
  }

  /** Ends it with its program, for good. Calls that run are told the reason. */
  async stop(reason: string): Promise<void> {
    this.#isOver = true
    await this.#end(reason)
  }
  async #end(reason: string): Promise<void> {
    this.#cancelRestart?.()
    this.#cancelRelist?.()
    this.#cancelRelist = undefined
    this.#stop.abort(
      new UpstreamFailure(this.name, `the MCP server "${this.name}" ${reason}`, { reason: 'cut', retry: 'later' }),
    )
    const session = this.#session
    this.#session = undefined
    await session?.end(reason)
    await this.#opening?.catch(() => undefined)
  }

  /** Stops a lazy server that nobody used for long. */
  async stopIdle(): Promise<void> {
    const session = this.#session
    const { clock, settings } = this.#deps
    if (!this.config.lazy || !session || session.running > 0 || this.#opening) return
    if (clock.now() - (this.#lastUsed ?? this.#connectedAt ?? 0) < settings.idle_secs * 1000) return
    this.#session = undefined
    this.#set('disconnected')
    await session.end(`it was idle for ${settings.idle_secs} s`)
  }

  /** Reads its tools again, such as after what is allowed of them changed. */
  async relist(): Promise<void> {
    this.#relistAgain = this.#relisting !== undefined
    this.#relisting ??= this.#relistAll().finally(() => {
      this.#relisting = undefined
    })
    await this.#relisting
  }
  /** A server that says all the time that its tools changed is asked no more often than that. */
  #relistSoon(): void {
    if (this.#cancelRelist) return
    const { clock, settings } = this.#deps
    const wait = Math.max(0, this.#relistedAt + settings.relist_pause_ms - clock.now())
    const relist = (): void => {
      this.#cancelRelist = undefined
      this.#relistedAt = clock.now()
      this.relist().catch((error: unknown) => this.#note(`relisting failed: ${messageOf(error)}`))
    }
    if (wait === 0) relist()
    else this.#cancelRelist = clock.after(wait, relist)
  }
  async #relistAll(): Promise<void> {
    do {
      this.#relistAgain = false
      const session = this.#session
      if (!session || session.isClosed) return
      await this.#list(session, this.#stop.signal)
    } while (this.#relistAgain)
  }

  /** Applies what is held of its tools anew, without asking the server. */
  async rescreen(): Promise<void> {
    if (this.#listing) this.#take(this.#session, await this.#screen(this.#listing.tools))
    this.#deps.onChanged(this)
  }

  #open(): Promise<Session> {
    this.#cancelRestart?.()
    return (this.#opening ??= this.#connect(this.#stop.signal).finally(() => {
      this.#opening = undefined
    }))
  }

  async #connect(signal: AbortSignal): Promise<Session> {
    signal.throwIfAborted()
    this.#set('connecting')
    let session: Session | undefined
    try {
      session = await this.#deps.open(this.config, this.log, signal)
      await this.#list(session, signal)
      signal.throwIfAborted()
    } catch (error) {
      await session?.end('its tools could not be listed')
      if (signal.aborted) throw signal.reason
      throw this.#failed(error)
    }
    const open = session
    this.#session = open
    this.#connectedAt = this.#deps.clock.now()
    this.#error = undefined
    open.onChanged((change) => {
      if (change.kind === 'tools') this.#relistSoon()
      if (change.kind === 'message') this.#note(`message: ${JSON.stringify(change.params).slice(0, 2000)}`)
    })
    void open.closed.then((reason) => this.#closed(open, reason))
    this.#set('connected')
    return open
  }

  async #list(session: Session, signal: AbortSignal): Promise<void> {
    const listing = await readListing(session, this.#deps.settings, signal)
    const tools = await this.#screen(listing.tools)
    this.#listing = listing
    this.#take(session, tools)
    // First: a tool that may not be used any more is gone at once.
    this.#deps.onChanged(this)
    await this.#deps.onListed(this, listing)
  }
  async #screen(tools: readonly McpTool[]): Promise<readonly ListedTool[]> {
    const offered = this.config.tools
    return (await this.#deps.features.onListed(this.config, tools)).map((listed) =>
      offered.length === 0 || offered.some((pattern) => matchesWildcard(pattern, listed.tool.name))
        ? listed
        : { tool: listed.tool, usable: false, reason: 'the tools of this server in the configuration do not name it' },
    )
  }
  #take(session: Session | undefined, tools: readonly ListedTool[]): void {
    this.#tools = tools
    this.revision = ++revisions
    session?.setTools(tools.filter(({ usable }) => usable).map(({ tool }) => tool))
  }

  #closed(session: Session, reason: string): void {
    // Ended by us.
    if (this.#session !== session) return
    this.#session = undefined
    const lived = this.#deps.clock.now() - (this.#connectedAt ?? 0)
    if (lived >= this.#deps.settings.restart_reset_secs * 1000) this.#failures = 0
    if (session.needsLogin) this.#fail(loginAdvice(this.name), 'login_required')
    else this.#fail(reason, 'error')
  }

  #failed(error: unknown): Error {
    const needsLogin = error instanceof Error && (error.name === 'UnauthorizedError' || statusOf(error) === 401)
    this.#fail(needsLogin ? loginAdvice(this.name) : explain(error), needsLogin ? 'login_required' : 'error')
    return new UpstreamFailure(this.name, `the MCP server "${this.name}" could not be connected: ${this.#error}`, {
      reason: needsLogin ? 'auth' : 'network',
      retry: needsLogin ? 'never' : 'later',
      cause: error,
    })
  }

  #fail(why: string, state: 'error' | 'login_required'): void {
    const reason = this.log.hide(why)
    const { settings, clock, random } = this.#deps
    this.#failures++
    this.#error = this.#withOutput(reason)
    this.#note(reason)
    const isGivenUp = state === 'login_required' || this.#failures > settings.max_restarts
    // A server that was given up starts no more by itself; its use may try it again after the longest pause.
    const pause = isGivenUp ? settings.restart_max_ms : pauseAfter(this.#failures, settings, random)
    this.#retryAt = state === 'login_required' ? 0 : clock.now() + pause
    if (isGivenUp && this.#failures === settings.max_restarts + 1) this.#deps.onGivenUp(this, reason)
    this.#set(state)
    if (isGivenUp || this.config.lazy) return
    this.#cancelRestart = clock.after(pause, () => {
      this.#restarts++
      this.#retryAt = 0
      this.#deps.onRestart(this)
      this.#open().catch(() => undefined /* #fail told it */)
    })
  }

  /** The reason with what its program wrote last, which often says more. */
  #withOutput(reason: string): string {
    const output = this.log.lastOutput(this.#deps.settings.error_output_chars)
    return output === '' ? reason : `${reason}. It wrote:\n${output.replaceAll(/^/gm, '  ')}`
  }
  #set(state: McpServerState): void {
    if (this.#state === state) return
    this.#state = state
    this.#deps.onChanged(this)
  }
  #note(text: string): void {
    this.log.note(toIso(Date.now()), text)
  }
}

/** Without the words of the SDK for its way of finding out which revision a server speaks. */
const explain = (error: unknown): string =>
  describeFailure(error)
    .replace(/^Version negotiation probe failed: /, '')
    .replace(/^Version negotiation probe timed out/, 'the handshake timed out')
const statusOf = (error: Error): unknown => ('status' in error ? error.status : undefined)
