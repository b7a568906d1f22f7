import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConsolaInstance } from 'consola'
import { isLoopback } from '../auth/origin.ts'
import { Refusal } from '../errors/error.ts'
import { errorBody, outcomeOf } from '../errors/render.ts'
import { GuardedResponse, guardResponse, rawAnswer } from './headers.ts'
import type { HttpSettings } from './settings.ts'
import { http } from '../net/node-http.ts'

export interface Address {
  readonly url: string
  readonly host: string
  readonly port: number
}
export interface Listener {
  readonly address: Address
  /** Accepts no more connections; settles when the last one is closed. */
  stop(): Promise<void>
  /** Ends every connection. */
  destroy(): void
}
export interface ListenOptions {
  readonly settings: HttpSettings
  readonly log: ConsolaInstance
  request(request: IncomingMessage, response: GuardedResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

/** Opens the port. Throws if it is in use, or if the daemon would serve the network without an API key. */
export async function openListener(options: ListenOptions): Promise<Listener> {
  const { settings } = options
  const keySet = (settings.apiKey?.trim() ?? '') !== ''
  if (!keySet && settings.allowNoAuth !== true && (settings.public === true || !isLoopback(settings.host))) {
    const where = settings.public === true ? 'all network interfaces' : settings.host
    throw new Error(
      `refusing to listen on ${where} without an API key: set api_key, ` +
        'or SVC_ALLOW_NO_AUTH=1 to accept that anyone may use it',
    )
  }
  if (settings.tls !== undefined || settings.open === true || settings.public === true) return openWithListhen(options)
  const server = http.createServer(
    {
      ServerResponse: GuardedResponse,
      // Answered by the pipeline, with a body that says so.
      requireHostHeader: false,
      // A header that may come once and comes twice is a list, and no list is a host, a key or a type. Otherwise the
      // first one would count.
      joinDuplicateHeaders: true,
      insecureHTTPParser: false,
      ...(settings.maxHeaderBytes === undefined ? {} : { maxHeaderSize: settings.maxHeaderBytes }),
      keepAliveTimeout: 65_000,
      headersTimeout: settings.headersTimeoutMs,
      requestTimeout: settings.requestTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, settings.headersTimeoutMs, settings.requestTimeoutMs),
    },
    options.request,
  )
  // A server that makes a subclass of the response is still a server; its type parameter is invariant.
  prepare(server as unknown as Server, options)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: settings.host, port: settings.port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return listenerOf(server as unknown as Server, settings.host, 'http')
}

function listenerOf(server: Server, host: string, scheme: 'http' | 'https'): Listener {
  const { port } = server.address() as AddressInfo
  const shown = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return {
    address: { url: `${scheme}://${shown}:${port}`, host, port },
    stop: () =>
      new Promise((resolve) => {
        // Not the server's own close: that cuts idle connections, and a request just under way on one of them,
        // without an answer.
        // The only failure is that it was closed already, which is what we want.
        NetServer.prototype.close.call(server, () => resolve())
      }),
    destroy() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function prepare(server: Server, options: ListenOptions): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerParserError(error, socket))
  server.on('upgrade', options.upgrade)
  server.on('connect', (_request, socket) =>
    endWith(socket, new Refusal('method_not_allowed', 'CONNECT is not served')),
  )
  // Who asks before sending a body is answered by whoever reads it, or refused at once: the pipeline decides, as for
  // any request.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse<IncomingMessage>) =>
    options.request(request, response instanceof GuardedResponse ? response : guardResponse(response)),
  )
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse<IncomingMessage>) => {
    const id = randomUUID()
    const { problem } = outcomeOf(
      new Refusal('invalid_request', `The expectation ${String(request.headers.expect)} cannot be met`),
      id,
    )
    const guarded = response instanceof GuardedResponse ? response : guardResponse(response)
    guarded.requestId = id
    const body = JSON.stringify(errorBody(problem))
    guarded.writeHead(417, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
  })
}

/** What the parser refuses never becomes a request: the answer is written by hand, with the headers of every answer. */
function answerParserError(error: NodeJS.ErrnoException, socket: Duplex): void {
  // A connection that is gone, or is in the middle of an answer already, can be told nothing.
  if (
    error.code === 'ECONNRESET' ||
    !socket.writable ||
    ('_httpMessage' in socket && hasAnswered(socket._httpMessage))
  ) {
    socket.destroy()
    return
  }
  if (error.code === 'HPE_HEADER_OVERFLOW')
    endWith(
      socket,
      new Refusal('invalid_request', 'The request headers are too large: http.max_header_bytes allows no more'),
      431,
    )
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    endWith(socket, new Refusal('invalid_request', 'The request was not complete in time'), 408)
  else if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    endWith(socket, new Refusal('payload_too_large', 'The chunk extensions are too large'))
  else endWith(socket, new Refusal('invalid_request', 'The request is not valid HTTP/1.1'))
}
function hasAnswered(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'headersSent' in message && message.headersSent === true
}

/** Answers a bare socket and ends it. */
export function endWith(
  socket: Duplex,
  error: unknown,
  status?: number,
  own: readonly string[] = [],
  cors?: readonly string[],
  requestId: string = randomUUID(),
): void {
  const { problem, retryAfterSecs } = outcomeOf(error, requestId)
  const headers = [...own]
  if (problem.status === 401) headers.push('WWW-Authenticate', 'Bearer')
  if (retryAfterSecs !== undefined) headers.push('Retry-After', String(Math.max(1, Math.ceil(retryAfterSecs))))
  // The other side may be gone before the answer is: nothing to do about it.
  socket.on('error', () => socket.destroy())
  socket.end(rawAnswer(status ?? problem.status, JSON.stringify(errorBody(problem)), requestId, headers, cors), () =>
    socket.destroy(),
  )
}

/**
 * TLS, opening the browser and all interfaces are listhen's; it gets a Node handler, because it brings an h3 of
 * its own.
 */
async function openWithListhen(options: ListenOptions): Promise<Listener> {
  const { settings } = options
  const { listen } = await import('listhen')
  // Public means: every interface. A tunnel would fetch and run a program of someone else; that stays the operator's
  // own step.
  const host = settings.public === true && isLoopback(settings.host) ? '0.0.0.0' : settings.host
  const listening = await listen((request, response) => options.request(request, guardResponse(response)), {
    hostname: host,
    port: settings.port,
    public: !isLoopback(host),
    https: settings.tls === undefined ? false : settings.tls === true ? true : { ...settings.tls },
    open: settings.open === true,
    isProd: false,
    isTest: false,
    showURL: false,
    clipboard: false,
    qr: false,
    autoClose: false,
    ws: false,
  })
  const server = listening.server as Server
  const listener = listenerOf(server, host, settings.tls === undefined ? 'http' : 'https')
  if (settings.port !== 0 && listener.address.port !== settings.port) {
    // It moves on to another port by itself; a daemon that is not where it was told to be would not be found.
    await listening.close()
    throw Object.assign(new Error(`port ${settings.port} of ${host} is taken`), { code: 'EADDRINUSE' })
  }
  server.headersTimeout = settings.headersTimeoutMs
  server.requestTimeout = settings.requestTimeoutMs
  server.keepAliveTimeout = 65_000
  Object.assign(server, {
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    ...(settings.maxHeaderBytes === undefined ? {} : { maxHeaderSize: settings.maxHeaderBytes }),
  })
  prepare(server, options)
  return listener
}
