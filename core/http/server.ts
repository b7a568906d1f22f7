import { PassThrough, Readable } from 'node:stream'
import type { ReadableStream as WebStream } from 'node:stream/web'
import type { ConsolaInstance } from 'consola'
import { createAuth } from '../auth/bearer.ts'
import type { AuthFailure } from '../auth/bearer.ts'
import { CredentialRegistry } from '../auth/credentials.ts'
import type { PluginCredentials } from '../auth/credentials.ts'
import type { Build } from '../process/installation.ts'
import { foldAddress, limiterKey } from '../limit/client.ts'
import { createLimiter } from '../limit/gcra.ts'
import type { MetricRegistry } from '../metrics/registry.ts'
import { Scope } from '../scope/scope.ts'
import { Admission } from './admission.ts'
import type { Answer } from './answer.ts'
import { NodeExchange, WebExchange } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { answerHeaders } from './headers.ts'
import type { GuardedResponse } from './headers.ts'
import { Holds } from './hold.ts'
import { openListener } from './listen.ts'
import type { Address, Listener } from './listen.ts'
import type { OwnPort } from './own-port.ts'
import { Pipeline } from './pipeline.ts'
import type { Passage } from './pipeline.ts'
import { RequestCount } from './request-count.ts'
import { RouteTable, canonicalPath } from './router.ts'
import type { AnyRoute, AnySocketRoute, Routes } from './route.ts'
import type { Idempotency } from './idempotency.ts'
import type { HttpSettings } from './settings.ts'
import { EventStreamBody } from './sse.ts'
import { Tickets } from './tickets.ts'
import { Upgrades } from './upgrade.ts'

export type { HttpSettings } from './settings.ts'
export type { AuthFailure } from '../auth/bearer.ts'

export interface HttpOptions {
  /** Asked at every request: a changed key or limit holds at once. */
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly metrics: MetricRegistry
  readonly build: Build
  /** Keeps the answers of requests with an Idempotency-Key; without it the header has no meaning. */
  readonly idempotency?: Idempotency
  /** Called for every failure that is a bug, with the route it happened in. */
  onDefect(error: unknown, where: string): void
  /** Called for every wrong key; the limiter keeps it to a few a minute and address. */
  onAuthFailure?(failure: AuthFailure): void
  onUnrecorded?(request: { readonly method: string; readonly path: string }): Promise<void>
}

export interface HttpServer extends AsyncDisposable {
  /** Registers through the scope; a request counts as running in it until its body is sent. */
  forPlugin(scope: Scope): Routes
  /** Credentials beside the API key, accepted as long as the scope is open. */
  credentials(scope: Scope): PluginCredentials
  /**
   * Requests for routes of these plugins wait (bounded in number and time, then 503 with Retry-After) until the
   * returned function is
   * called. The routes known at this moment stay matchable meanwhile.
   */
  hold(plugins: readonly string[]): () => void
  /** Answers a request without a port. */
  fetch(request: Request): Promise<Response>
  /** Throws when the address is taken, or when it is beyond loopback and neither a key nor `allowNoAuth` is set. */
  listen(): Promise<Address>
  /**
   * Stops accepting, answers 503 to new requests on open connections, waits for running ones up to `drainMs`, closes
   * sockets with 1001.
   */
  drain(drainMs: number): Promise<void>
  routes(): readonly AnyRoute[]
  sockets(): readonly AnySocketRoute[]
  /** Where it listens; `undefined` before `listen`. */
  readonly address: Address | undefined
  readonly ownPort: OwnPort
  /** The settings became others: what was opened with a key that is no longer the one in force ends now. */
  renewed(): void
  /** OpenAPI 3.0.3 of the live routes. */
  openapi(): Promise<object>
}

/** What a last event or a close frame gets to arrive. */
const farewellMs = 500

/** The HTTP layer. Disposing it stops listening and ends every connection. */
export function createHttp(options: HttpOptions): HttpServer {
  const { settings, log, metrics } = options
  const now = (): number => performance.now()
  const limiter = createLimiter({ tokens: settings().tokensPerMinute, windowMs: 60_000, maxKeys: 100_000, now })
  const failures = createLimiter({ tokens: settings().failedAuthPerMinute, windowMs: 60_000, maxKeys: 100_000, now })
  const sweep = (): void => {
    upgrades.sweep()
    pipeline.keepAlive.sweep()
  }
  const credentials = new CredentialRegistry(sweep)
  const auth = createAuth({
    apiKey: () => settings().apiKey,
    failures,
    further: credentials,
    onFailure: (failure) => {
      failures.resize(settings().failedAuthPerMinute)
      options.onAuthFailure?.(failure)
    },
    onChange: sweep,
  })
  let listener: Listener | undefined
  const admission = new Admission(settings, () => listener?.address.port, limiter, auth)
  const holds = new Holds()
  const count = new RequestCount(metrics)
  const pipeline: Pipeline = new Pipeline(
    {
      settings,
      log,
      admission,
      holds,
      count,
      idempotency: options.idempotency,
      onDefect: options.onDefect,
      ...(options.onUnrecorded ? { onUnrecorded: options.onUnrecorded } : {}),
    },
    () => table,
  )
  const table: RouteTable = new RouteTable((passage, entry) => pipeline.handle(passage, entry))
  const tickets = new Tickets(auth)
  const upgrades: Upgrades = new Upgrades({
    settings,
    log,
    admission,
    holds,
    tickets,
    table: () => table,
    draining: () => pipeline.draining,
    onDefect: options.onDefect,
  })
  const own = new Scope('http')
  table.add(own, tickets.route())
  metrics.core.observed('svc_websockets', 'WebSocket connections that are open.', () => [{ value: upgrades.size }])

  let document: { readonly version: number; readonly made: Promise<object> } | undefined
  const describe = async (): Promise<object> => {
    const { openApiDocument } = await import('./openapi.ts')
    return openApiDocument({
      version: options.build.version,
      routes: table.entries().map(({ scope, route }) => ({ plugin: scope.name, route })),
      sockets: table.socketEntries().map(({ scope, route }) => ({ plugin: scope.name, route })),
    })
  }

  const server: HttpServer = {
    forPlugin: (scope) => ({
      add(...routes) {
        for (const route of routes) table.add(scope, route)
      },
      addSocket(...routes) {
        for (const route of routes) table.addSocket(scope, route)
      },
    }),
    credentials: (scope) => ({
      accept: (source) => credentials.accept(scope, source),
      holds: (principal) => credentials.holds(principal),
      checkAttempts: (clientAddress) => auth.checkAttempts(limiterKey(clientAddress)),
      failed: (failure) => auth.failed(failure, limiterKey(failure.clientAddress)),
    }),
    hold(plugins) {
      const names = new Set(plugins)
      const endings = [table.keep(names), credentials.keep(names), holds.hold(plugins)]
      return () => {
        for (const end of endings) end()
      }
    },
    async fetch(request) {
      const exchange = new WebExchange(request)
      const answer = await table.dispatch(passageOf(exchange))
      exchange.status = answer.status
      const headers = new Headers()
      const all = answerHeaders(exchange.requestId, answer.headers, exchange.cors)
      for (let at = 0; at < all.length; at += 2) headers.append(all[at] ?? '', all[at + 1] ?? '')
      if (answer.body instanceof EventStreamBody) {
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
    },
    async listen() {
      if (listener) throw new Error('already listening')
      listener = await openListener({
        settings: settings(),
        log,
        request(request, response) {
          const exchange = new NodeExchange(request, response)
          // Whatever breaks here is a bug of this layer; it must cost one connection and not the process.
          const broken = (error: unknown): void => {
            log.error('an answer could not be sent', { requestId: exchange.requestId, error })
            options.onDefect(error, 'http')
            response.destroy()
          }
          try {
            const answer = table.dispatch(passageOf(exchange))
            if (answer instanceof Promise) answer.then((settled) => send(response, settled)).catch(broken)
            else send(response, answer)
          } catch (error) {
            broken(error)
          }
        },
        upgrade: (request, socket, head) => {
          void upgrades.upgrade(request, socket, head)
        },
      })
      return listener.address
    },
    async drain(drainMs) {
      pipeline.draining = true
      const closed = listener?.stop()
      pipeline.keepAlive.end('feeds')
      const left = await count.idle(drainMs)
      if (left > 0) {
        log.warn('requests were still running at the end of the drain', { left })
        pipeline.keepAlive.end('all')
      }
      await upgrades.end(farewellMs)
      await count.idle(left > 0 ? farewellMs : 0)
      listener?.destroy()
      await closed
    },
    renewed() {
      auth.generation()
    },
    routes: () => table.routes(),
    sockets: () => table.sockets(),
    get address() {
      return listener?.address
    },
    ownPort: {
      host: () => listener && new URL(listener.address.url).host,
      exchange: async (bytes) => listener && (await import('./own-port.ts')).exchangeWith(listener.address, bytes),
      charged: (address) => limiter.arrival(limiterKey(foldAddress(address))),
    },
    openapi() {
      if (document?.version !== table.version) document = { version: table.version, made: describe() }
      return document.made
    },
    async [Symbol.asyncDispose]() {
      pipeline.draining = true
      const closed = listener?.stop()
      await upgrades.end(0)
      listener?.destroy()
      await closed
    },
  }
  return server
}

function passageOf(exchange: Exchange): Passage {
  return { req: exchange, url: { pathname: canonicalPath(exchange.path) }, context: {}, exchange }
}

function send(response: GuardedResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) {
    if (body instanceof EventStreamBody) body.cancel()
    return
  }
  response.writeHead(status, headers as string[])
  if (body instanceof EventStreamBody) body.pipe(response)
  else if (body === null) response.end()
  else response.end(body)
}
