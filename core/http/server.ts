import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import type { Duplex } from 'node:stream'
import type { ReadableStream as WebStream } from 'node:stream/web'
import type { ConsolaInstance } from 'consola'
import { createAuth } from '../auth/bearer.ts'
import type { Auth, AuthFailure } from '../auth/bearer.ts'
import { CredentialRegistry } from '../auth/credentials.ts'
import type { PluginCredentials } from '../auth/credentials.ts'
import type { Build } from '../process/installation.ts'
import { foldAddress, limiterKey } from '../limit/client.ts'
import { createLimiter } from '../limit/gcra.ts'
import type { Limiter } from '../limit/gcra.ts'
import type { MetricRegistry } from '../metrics/registry.ts'
import { remember } from '../auth/presented.ts'
import type { Principal } from '../auth/principal.ts'
import { omitUndefined } from '../schema/object.ts'
import { Scope } from '../scope/scope.ts'
import { Admission } from './admission.ts'
import type { Answer } from './answer.ts'
import { NodeExchange, WebExchange } from './exchange.ts'
import { answerHeaders, toHeaders } from './headers.ts'
import type { GuardedResponse } from './headers.ts'
import { HoldQueue } from './hold-queue.ts'
import { openListener } from './listen.ts'
import type { Address, Listener } from './listen.ts'
import type { OwnPort } from './own-port.ts'
import { Pipeline } from './pipeline.ts'
import type { RoutedRequest } from './pipeline.ts'
import type { ReadAnswer } from './read-answer.ts'
import { RequestCount } from './request-count.ts'
import { RouteTable } from './router.ts'
import type { Entry } from './router.ts'
import type { AnyRoute, AnySocketRoute, Routes } from './route.ts'
import type { Idempotency } from './idempotency.ts'
import type { HttpSettings } from './settings.ts'
import { StreamedBody } from './streamed-body.ts'
import type { SharedTickets } from './shared-tickets.ts'
import type { PluginDatabase } from '../storage/database.ts'
import { Tickets } from './tickets.ts'
import type { Upgrades } from './upgrade.ts'

export type { HttpSettings } from './settings.ts'
export type { AuthFailure } from '../auth/bearer.ts'

export interface HttpOptions {
  /** Called for every request: a changed key or limit applies at once. */
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly metrics: MetricRegistry
  readonly build: Build
  /** Stores the answers of requests with an Idempotency-Key. Absent: the header is ignored. */
  readonly idempotency?: Idempotency
  /** The database that other daemons use too; absent where there are none. */
  readonly shared?: PluginDatabase
  /** Whether this text shows that its sender can read the home, and is limited apart from others at its address. */
  isHomePass?(text: string): boolean
  /** Called for every failure that is a bug, with its route. */
  onDefect(error: unknown, where: string): void
  /** Called for every wrong key; the limiter allows few per minute and address. */
  onAuthFailure?(failure: AuthFailure): void
  /** Called when a request with a lasting effect left no record of who made it. */
  onUnrecorded?(request: { readonly method: string; readonly path: string }): Promise<void>
}

export interface HttpServer extends AsyncDisposable {
  /** Registers through the scope; a request counts as running in it until its body is sent. */
  forPlugin(scope: Scope): Routes
  /** Credentials besides the API key, accepted as long as the scope is open. */
  credentials(scope: Scope): PluginCredentials
  /** As `Daemon.remember` and `Daemon.isHeld`. */
  remember(principal: Principal): string | undefined
  isHeld(remembered: string): boolean
  /** Differs once the API key is another one. */
  keyGeneration(): number
  /** See `Daemon`. */
  keyMark(salt: string): string
  /** See `Daemon`. */
  isReplacedKey(mark: string, salt: string): boolean
  /**
   * Holds requests for routes of these plugins until the returned function is called. Their number and waiting time
   * are limited; beyond that they get 503 with Retry-After. The present routes still match meanwhile.
   */
  hold(plugins: readonly string[]): () => void
  /** Answers a request without a port. */
  fetch(request: Request): Promise<Response>
  /** Throws if the address is in use, or not loopback while neither a key nor `allowNoAuth` is set. */
  listen(): Promise<Address>
  /**
   * Stops accepting connections, answers new requests on open ones with 503, waits up to `drainMs` for running ones,
   * and closes sockets with 1001.
   */
  drain(drainMs: number): Promise<void>
  /** See `Daemon`. */
  followReads(listener: (read: ReadAnswer) => void): () => void
  routes(): readonly AnyRoute[]
  sockets(): readonly AnySocketRoute[]
  /** Where it listens; `undefined` before `listen`. */
  readonly address: Address | undefined
  readonly ownPort: OwnPort
  /** What of the requests so far shows a mistake in the configuration. */
  warnings(): readonly string[]
  /** Call after a change of the settings: ends what was opened with a key that is no longer valid. */
  renewed(): void
  /** OpenAPI 3.0.3 of the live routes. */
  openapi(): Promise<object>
}

/** How long a last event or a close frame may take to arrive. */
const FAREWELL_MS = 500
const LIMITER_WINDOW = { windowMs: 60_000, maxKeys: 100_000 }

/** The HTTP layer. Disposing it stops listening and ends every connection. */
export function createHttp(options: HttpOptions): HttpServer {
  return new HttpLayer(options)
}

class HttpLayer implements HttpServer {
  readonly #options: HttpOptions
  readonly #limiter: Limiter
  readonly #credentials: CredentialRegistry
  readonly #auth: Auth
  readonly #holdQueue = new HoldQueue()
  readonly #count: RequestCount
  readonly #admission: Admission
  readonly #pipeline: Pipeline
  readonly #table: RouteTable
  readonly #tickets: Tickets
  #upgrades: Upgrades | undefined
  #loading: Promise<Upgrades> | undefined
  #listener: Listener | undefined
  #onRead: ((read: ReadAnswer) => void) | undefined
  #document: { readonly version: number; readonly made: Promise<object> } | undefined

  constructor(options: HttpOptions) {
    this.#options = options
    const { settings, metrics } = options
    this.#limiter = createLimiter({ tokens: settings().tokensPerMinute, ...LIMITER_WINDOW, now: monotonicNow })
    this.#credentials = new CredentialRegistry(() => this.#endRevoked())
    this.#auth = this.#createAuth()
    this.#count = new RequestCount(metrics)
    const admission = new Admission(
      settings,
      () => this.#listener?.address.port,
      this.#limiter,
      this.#auth,
      (warning) => options.log.warn(warning),
      options.isHomePass,
    )
    this.#admission = admission
    this.#pipeline = this.#createPipeline(admission)
    this.#table = new RouteTable((request, entry) => {
      // A request that was held comes again, and its first answer is the whole one.
      const isFirst = request.startedAt === undefined
      const answer = this.#pipeline.handle(request, entry)
      if (this.#onRead && isFirst && entry) this.#tellRead(request, entry, answer)
      return answer
    })
    this.#tickets = new Tickets(this.#auth, this.#sharedTickets())
    this.#table.add(new Scope('http'), this.#tickets.route())
    metrics.core.observed('svc_websockets', 'WebSocket connections that are open.', () => [
      { value: this.#upgrades?.size ?? 0 },
    ])
  }

  #createAuth(): Auth {
    const { settings, onAuthFailure } = this.#options
    const failures = createLimiter({ tokens: settings().failedAuthPerMinute, ...LIMITER_WINDOW, now: monotonicNow })
    return createAuth({
      apiKey: () => settings().apiKey,
      failures,
      further: this.#credentials,
      onFailure: (failure) => {
        failures.resize(settings().failedAuthPerMinute)
        onAuthFailure?.(failure)
      },
      onChange: () => this.#endRevoked(),
    })
  }

  #sharedTickets(): (() => Promise<SharedTickets>) | undefined {
    const { shared } = this.#options
    let opened: Promise<SharedTickets> | undefined
    return (
      shared &&
      (() =>
        (opened ??= import('./shared-tickets.ts').then(
          ({ SharedTickets }) => new SharedTickets(this.#auth, this.#credentials, shared),
        )))
    )
  }

  #createPipeline(admission: Admission): Pipeline {
    const { settings, log, idempotency, onDefect, onUnrecorded } = this.#options
    return new Pipeline(
      {
        settings,
        log,
        admission,
        holdQueue: this.#holdQueue,
        count: this.#count,
        idempotency,
        onDefect,
        ...omitUndefined({ onUnrecorded }),
      },
      () => this.#table,
    )
  }

  /** The first upgrade loads its code. */
  async #loadUpgrades(): Promise<Upgrades> {
    const { settings, log, onDefect } = this.#options
    const { Upgrades } = await import('./upgrade.ts')
    return (this.#upgrades = new Upgrades({
      settings,
      log,
      admission: this.#admission,
      holdQueue: this.#holdQueue,
      tickets: this.#tickets,
      table: () => this.#table,
      draining: () => this.#pipeline.draining,
      onDefect,
    }))
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // The WebSocket library adds its own listener only when the upgrade was accepted.
    socket.on('error', () => socket.destroy())
    const upgrades = await (this.#loading ??= this.#loadUpgrades())
    await upgrades.upgrade(request, socket, head)
  }
  async #endSockets(ms: number): Promise<void> {
    await (await this.#loading)?.end(ms)
  }

  warnings(): readonly string[] {
    const untrusted = this.#admission.untrustedProxy()
    return untrusted === undefined ? [] : [untrusted]
  }

  /** Ends sockets and streams that were opened with a credential that is no longer accepted. */
  #endRevoked(): void {
    this.#upgrades?.sweep()
    this.#pipeline.keepAlive.sweep()
  }

  forPlugin(scope: Scope): Routes {
    return {
      add: (...routes) => {
        for (const route of routes) this.#table.add(scope, route)
      },
      addSocket: (...routes) => {
        for (const route of routes) this.#table.addSocket(scope, route)
      },
    }
  }

  remember(principal: Principal): string | undefined {
    return remember(principal)
  }
  keyGeneration(): number {
    return this.#auth.generation()
  }
  keyMark(salt: string): string {
    return this.#auth.keyMark(salt)
  }
  isReplacedKey(mark: string, salt: string): boolean {
    return this.#auth.isReplaced(mark, salt)
  }
  isHeld(remembered: string): boolean {
    const at = remembered.indexOf(' ')
    return this.#credentials.findAgain(remembered.slice(at + 1), remembered.slice(0, at)) !== undefined
  }

  credentials(scope: Scope): PluginCredentials {
    return {
      accept: (source) => this.#credentials.accept(scope, source),
      holds: (principal) => this.#credentials.holds(principal),
      checkAttempts: (clientAddress) => this.#auth.checkAttempts(limiterKey(clientAddress)),
      failed: (failure) => this.#auth.failed(failure, limiterKey(failure.clientAddress)),
    }
  }

  hold(plugins: readonly string[]): () => void {
    const names = new Set(plugins)
    const releases = [this.#table.keep(names), this.#credentials.keep(names), this.#holdQueue.hold(plugins)]
    return () => {
      for (const release of releases) release()
    }
  }

  followReads(listener: (read: ReadAnswer) => void): () => void {
    this.#onRead = listener
    return () => {
      if (this.#onRead === listener) this.#onRead = undefined
    }
  }
  #tellRead(request: RoutedRequest, entry: Entry, answer: Answer | Promise<Answer>): void {
    const { method, effect, auth, streams, produces, path } = entry.route
    if (method !== 'GET' || effect !== 'read' || auth !== 'bearer' || streams || produces) return
    const tell = async (): Promise<void> => {
      const { readAnswer } = await import('./read-answer.ts')
      const read = readAnswer(request, entry, await answer)
      if (read) this.#onRead?.(read)
    }
    tell().catch((error: unknown) => this.#options.onDefect(error, `what follows ${method} ${path}`))
  }

  async fetch(request: Request): Promise<Response> {
    const exchange = new WebExchange(request)
    const answer = await this.#table.dispatch({ exchange })
    exchange.status = answer.status
    const headers = toHeaders(answerHeaders(exchange.requestId, answer.headers, exchange.cors))
    if (answer.body instanceof StreamedBody) {
      const through = new PassThrough()
      answer.body.pipe(through)
      through.on('close', () => exchange.close(through.readableEnded))
      return new Response(Readable.toWeb(through) as WebStream<Uint8Array> as ReadableStream<Uint8Array>, {
        status: answer.status,
        headers,
      })
    }
    exchange.close(true)
    return new Response(answer.body as BodyInit | null, { status: answer.status, headers })
  }

  async listen(): Promise<Address> {
    if (this.#listener) throw new Error('already listening')
    const { settings, log } = this.#options
    this.#listener = await openListener({
      settings: settings(),
      log,
      request: (request, response) => this.#answer(request, response),
      upgrade: (request, socket, head) => {
        this.#upgrade(request, socket, head).catch((error: unknown) => {
          this.#options.onDefect(error, 'WebSocket')
          socket.destroy()
        })
      },
    })
    return this.#listener.address
  }

  #answer(request: IncomingMessage, response: GuardedResponse): void {
    const exchange = new NodeExchange(request, response)
    // An error here is a bug of this layer; it ends one connection and not the process.
    const onBug = (error: unknown): void => {
      this.#options.log.error('an answer could not be sent', { requestId: exchange.requestId, error })
      this.#options.onDefect(error, 'http')
      response.destroy()
    }
    try {
      const answer = this.#table.dispatch({ exchange })
      if (answer instanceof Promise) answer.then((settled) => send(response, settled)).catch(onBug)
      else send(response, answer)
    } catch (error) {
      onBug(error)
    }
  }

  async drain(drainMs: number): Promise<void> {
    this.#pipeline.draining = true
    const closed = this.#listener?.stop()
    this.#pipeline.keepAlive.end('feeds')
    const left = await this.#count.idle(drainMs)
    if (left > 0) {
      this.#options.log.warn('requests were still running at the end of the drain', { left })
      this.#pipeline.keepAlive.end('all')
    }
    await this.#endSockets(FAREWELL_MS)
    await this.#count.idle(left > 0 ? FAREWELL_MS : 0)
    this.#listener?.destroy()
    await closed
  }

  renewed(): void {
    this.#auth.generation()
  }
  routes(): readonly AnyRoute[] {
    return this.#table.routes()
  }
  sockets(): readonly AnySocketRoute[] {
    return this.#table.sockets()
  }
  get address(): Address | undefined {
    return this.#listener?.address
  }
  readonly ownPort: OwnPort = {
    host: () => this.#listener && new URL(this.#listener.address.url).host,
    exchange: async (bytes) =>
      this.#listener && (await import('./own-port.ts')).exchangeWith(this.#listener.address, bytes),
    charged: (address) => this.#limiter.arrival(limiterKey(foldAddress(address))),
  }

  openapi(): Promise<object> {
    const { version } = this.#table
    if (this.#document?.version !== version) this.#document = { version, made: this.#createDocument() }
    return this.#document.made
  }
  async #createDocument(): Promise<object> {
    const { openApiDocument } = await import('./openapi.ts')
    return openApiDocument({
      version: this.#options.build.version,
      routes: this.#table.entries().map(({ scope, route }) => ({ plugin: scope.name, route })),
      sockets: this.#table.socketEntries().map(({ scope, route }) => ({ plugin: scope.name, route })),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#pipeline.draining = true
    const closed = this.#listener?.stop()
    await this.#endSockets(0)
    this.#listener?.destroy()
    await closed
  }
}

function monotonicNow(): number {
  return performance.now()
}

function send(response: GuardedResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) {
    if (body instanceof StreamedBody) body.cancel()
    return
  }
  response.writeHead(status, headers as string[])
  if (body instanceof StreamedBody) body.pipe(response)
  else if (body === null) response.end()
  else response.end(body)
}
