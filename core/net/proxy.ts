import { rm } from 'node:fs/promises'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { Outbound } from './outbound.ts'
import { createFolder } from './proxy-folders.ts'
import { http } from './node-http.ts'

export interface ProxySettings {
  /** Connections one program may have open, and that may be open for it. */
  readonly maxConnections: number
  /** Connections the programs of all plugins may have open together. */
  readonly maxTotalConnections: number
  /** Silence in both directions after which a connection is closed. */
  readonly idleTimeoutMs: number
}
/** Counts the connections of all proxies. */
export interface ProxyMeter {
  /** Connections that are open or being opened. */
  open: number
  connection(outcome: 'allowed' | 'refused' | 'failed' | 'revoked'): void
  bytes(sent: number, received: number): void
}
export interface Proxy {
  readonly socket: string
  /** Closes connections that would not be permitted any more. */
  recheck(): Promise<void>
  close(): Promise<void>
}

const MAX_HEADER_BYTES = 16_384
const HEADERS_MS = 10_000
/** A connection on behalf of the program. `upstream` is set once it is open. */
interface Link {
  readonly url: URL
  readonly end: AbortController
  upstream?: Socket
}
/** The program's side of a connection, which ends with it. */
type Downstream = Duplex | ServerResponse

/** Hop-by-hop headers: they concern the client and its proxy, and go no further. */
const hopByHop = new Set([
  'connection',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export interface ProxyDeps {
  readonly outbound: Pick<Outbound, 'connect' | 'checkConnection'>
  /** Throws, or rejects, to refuse a connection. */
  readonly admits: (url: URL) => void | Promise<void>
  readonly settings: ProxySettings
  readonly meter?: ProxyMeter
  /** Called with each connection that was refused or failed, and why. */
  readonly onFailure?: (url: URL, why: string) => void
}

/**
 * Opens an HTTP proxy on a socket file of its own, for one program. It connects where `admits` and the outbound rules
 * permit it. Names are resolved here, so the address that was checked is the one that is connected to.
 */
export async function openProxy(deps: ProxyDeps): Promise<Proxy> {
  const folder = await createFolder()
  const proxy = new ProgramProxy(deps, folder)
  try {
    await proxy.listen()
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return proxy
}

class ProgramProxy implements Proxy {
  readonly socket: string
  readonly #folder: string
  readonly #deps: ProxyDeps
  readonly #meter: ProxyMeter
  readonly #server: Server
  readonly #clients = new Set<Duplex>()
  readonly #links = new Set<Link>()
  #isClosed = false

  constructor(deps: ProxyDeps, folder: string) {
    this.#deps = deps
    this.#meter = deps.meter ?? { open: 0, connection: () => undefined, bytes: () => undefined }
    this.#folder = folder
    this.socket = join(folder, 'socket')
    this.#server = this.#createServer()
  }

  #createServer(): Server {
    const { maxConnections, idleTimeoutMs } = this.#deps.settings
    const server = http.createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_MS,
      requestTimeout: 0,
      keepAliveTimeout: HEADERS_MS,
      connectionsCheckingInterval: HEADERS_MS / 4,
    })
    server.maxConnections = maxConnections
    server.on('connection', (client) => {
      this.#clients.add(client)
      client.once('close', () => this.#clients.delete(client))
      client.on('error', () => client.destroy())
      client.setTimeout(idleTimeoutMs, () => client.destroy())
    })
    server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      void this.#tunnel(request, client, head)
    })
    server.on('request', (request, response) => {
      void this.#forward(request, response)
    })
    server.on('upgrade', (_request, client: Duplex) => {
      client.end('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\n\r\n')
    })
    return server
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(this.socket, resolve)
    })
  }

  async recheck(): Promise<void> {
    const { admits, outbound } = this.#deps
    const check = async ({ url, end, upstream }: Link): Promise<void> => {
      try {
        await admits(url)
        if (upstream) outbound.checkConnection(url, upstream)
      } catch (error) {
        this.#meter.connection('revoked')
        end.abort(error)
        upstream?.destroy()
      }
    }
    await Promise.all([...this.#links].map(check))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#server.close()
    for (const { end, upstream } of this.#links) {
      end.abort(new Error('the program has ended'))
      upstream?.destroy()
    }
    for (const client of this.#clients) client.destroy()
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Connects to the host and port of an address. The connection ends with the program's side. */
  async #connect(url: URL, downstream: Downstream): Promise<Socket> {
    if (this.#isClosed || downstream.closed || downstream.destroyed) throw new Error('the program has gone')
    this.#refuseTooMany()
    const link: Link = { url, end: new AbortController() }
    this.#links.add(link)
    this.#meter.open++
    const leave = (): void => {
      link.end.abort(new Error('the program has gone'))
      link.upstream?.destroy()
    }
    const release = (): void => {
      this.#links.delete(link)
      this.#meter.open--
      downstream.off('close', leave)
    }
    downstream.once('close', leave)
    try {
      await this.#deps.admits(url)
      const upstream = await this.#deps.outbound.connect(url, link.end.signal)
      upstream.on('error', () => upstream.destroy())
      upstream.once('close', () => {
        release()
        this.#meter.bytes(upstream.bytesWritten, upstream.bytesRead)
      })
      link.upstream = upstream
      if (link.end.signal.aborted) {
        upstream.destroy()
        throw link.end.signal.reason
      }
      upstream.setTimeout(this.#deps.settings.idleTimeoutMs, () => upstream.destroy())
      this.#meter.connection('allowed')
      return upstream
    } catch (error) {
      if (!link.upstream) release()
      this.#meter.connection(error instanceof Refusal ? 'refused' : 'failed')
      if (!link.end.signal.aborted) this.#deps.onFailure?.(url, explain(error))
      throw error
    }
  }

  /** Counts what is being opened too, so that a program gains nothing by not waiting for answers. */
  #refuseTooMany(): void {
    const { maxConnections, maxTotalConnections } = this.#deps.settings
    const open = this.#links.size
    if (open < maxConnections && this.#meter.open < maxTotalConnections) return
    this.#meter.connection('refused')
    throw new Refusal(
      'rate_limit',
      open >= maxConnections
        ? `This program has ${open} connections, which is all outbound.program_connections allows`
        : `All programs have ${this.#meter.open} connections, which is all outbound.total_program_connections allows`,
    )
  }

  /** CONNECT to a host and port; what follows is mostly TLS. */
  async #tunnel({ url: target = '' }: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    try {
      const url = /^[^/?#@\s]+:\d{1,5}$/.test(target) ? URL.parse(`https://${target}`) : null
      if (!url) throw new Refusal('invalid_request', 'CONNECT names a host and a port')
      const upstream = await this.#connect(url, client)
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.byteLength > 0) upstream.write(head)
      // What was read to its end may still be on its way to a program that reads slowly.
      upstream.once('close', () => (upstream.readableEnded ? client.end(() => client.destroy()) : client.destroy()))
      client.pipe(upstream)
      upstream.pipe(client)
    } catch (error) {
      const { status, text } = answerOf(error)
      const headers = [
        `HTTP/1.1 ${status}`,
        'Content-Type: text/plain',
        `Content-Length: ${Buffer.byteLength(text)}`,
        'Connection: close',
      ]
      client.end(`${headers.join('\r\n')}\r\n\r\n${text}`)
    }
  }

  /** One plain request, with the `Host` of the address that was checked. */
  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = URL.parse(request.url ?? '')
      if (url?.protocol !== 'http:') throw new Refusal('invalid_request', 'The proxy takes absolute http addresses')
      const upstream = await this.#connect(url, response)
      const outgoing = http.request({
        createConnection: () => upstream,
        method: request.method,
        path: url.pathname + url.search,
        headers: {
          ...passedHeaders(request),
          host: url.host,
          connection: 'close',
          // A body has its length or chunks, whatever the method: bare bytes after the headers would be a second
          // request.
          ...(request.headers['transfer-encoding'] !== undefined && { 'transfer-encoding': 'chunked' }),
        },
      })
      outgoing.once('response', (answer) => {
        const { statusCode = 0 } = answer
        answer.on('error', () => response.destroy())
        if (statusCode < 200) {
          upstream.destroy()
          return sendError(response, failed(url, 'the answer is not valid HTTP'))
        }
        response.writeHead(statusCode, passedHeaders(answer))
        answer.pipe(response)
      })
      outgoing.once('upgrade', (_, socket) => {
        socket.destroy()
        sendError(response, failed(url, 'the server switched to another protocol'))
      })
      outgoing.on('error', (error) => sendError(response, failed(url, error.message)))
      request.pipe(outgoing)
    } catch (error) {
      sendError(response, error)
    }
  }
}

/** Headers of a message without the hop-by-hop ones, those that its `Connection` header names included. */
function passedHeaders({ headersDistinct, headers }: IncomingMessage): Record<string, string[]> {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
  return Object.fromEntries(
    Object.entries(headersDistinct).flatMap(([name, values = []]) =>
      hopByHop.has(name) || named.has(name) ? [] : [[name, values]],
    ),
  )
}
const failed = (url: URL, why: string): UpstreamFailure =>
  new UpstreamFailure(url.hostname, why, { reason: 'network', retry: 'later' })

function sendError(response: ServerResponse, error: unknown): void {
  if (response.writableEnded) return
  if (response.headersSent || response.destroyed) return void response.destroy()
  const { status, text } = answerOf(error)
  response.writeHead(Number(status.slice(0, 3)), { 'content-type': 'text/plain', connection: 'close' }).end(text)
}

const refusalStatus: ReadonlyMap<string, string> = new Map([
  ['invalid_request', '400 Bad Request'],
  ['rate_limit', '429 Too Many Requests'],
])

/** Only refusals and failures of the other side are explained to the program. */
function answerOf(error: unknown): { readonly status: string; readonly text: string } {
  if (error instanceof Refusal)
    return { status: refusalStatus.get(error.code) ?? '403 Forbidden', text: `svc: ${error.message}\n` }
  return { status: '502 Bad Gateway', text: `svc: ${explain(error)}\n` }
}
const explain = (error: unknown): string =>
  error instanceof Refusal || error instanceof UpstreamFailure ? error.message : 'the connection failed'
