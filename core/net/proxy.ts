import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request as requestHttp } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { Outbound } from './outbound.ts'

export interface ProxySettings {
  /** Connections one program may have open, and that may be open for it. */
  readonly maxConnections: number
  /** Silence in both directions after which a connection is closed. */
  readonly idleTimeoutMs: number
}
/** Told what becomes of connections, for the metrics. */
export interface ProxyMeter {
  connection(outcome: 'allowed' | 'refused' | 'failed' | 'revoked'): void
  bytes(sent: number, received: number): void
}
export interface Proxy {
  readonly socket: string
  /** Ends connections that would not be permitted any more. */
  recheck(): Promise<void>
  close(): Promise<void>
}

const MOST_HEADER_BYTES = 16_384
const HEADERS_MS = 10_000
/** A connection that was asked for: what it is for, who ends it, and the socket as soon as there is one. */
interface Way {
  readonly url: URL
  readonly end: AbortController
  far?: Socket
}
/** Whoever a connection is for: it ends when that closes. */
type Near = Duplex | ServerResponse

/** Headers that are between a client and its proxy, and go no further. */
const between = new Set([
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

/**
 * An HTTP proxy on a socket file of its own, for one program: it connects where `admits` and the outbound rules permit it. Names are resolved
 * here, so the address that was checked is the one that is connected to.
 */
export async function openProxy(
  outbound: Pick<Outbound, 'connect' | 'checkConnection'>,
  admits: (url: URL) => void | Promise<void>,
  settings: ProxySettings,
  meter: ProxyMeter = { connection: () => undefined, bytes: () => undefined },
): Promise<Proxy> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-network-'))
  const socket = join(folder, 'socket')
  const nears = new Set<Duplex>()
  const ways = new Set<Way>()
  let closed = false

  const reach = async (url: URL, near: Near): Promise<Socket> => {
    if (closed || near.closed || near.destroyed) throw new Error('whoever asked is gone')
    // One that asks and does not wait for the answer, or asks for many things at once, holds no more than one that waits.
    if (ways.size >= settings.maxConnections) {
      meter.connection('refused')
      throw new Refusal(
        'rate_limit',
        `This program has ${ways.size} connections, which is all outbound.program_connections allows`,
      )
    }
    const way: Way = { url, end: new AbortController() }
    ways.add(way)
    const leave = (): void => {
      way.end.abort(new Error('whoever asked is gone'))
      way.far?.destroy()
    }
    near.once('close', leave)
    try {
      await admits(url)
      const far = await outbound.connect(url, way.end.signal)
      far.on('error', () => far.destroy())
      far.once('close', () => {
        ways.delete(way)
        near.off('close', leave)
        meter.bytes(far.bytesWritten, far.bytesRead)
      })
      way.far = far
      if (way.end.signal.aborted) {
        far.destroy()
        throw way.end.signal.reason
      }
      far.setTimeout(settings.idleTimeoutMs, () => far.destroy())
      meter.connection('allowed')
      return far
    } catch (error) {
      if (!way.far) ways.delete(way)
      near.off('close', leave)
      meter.connection(error instanceof Refusal ? 'refused' : 'failed')
      throw error
    }
  }

  const server = createServer({
    maxHeaderSize: MOST_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: 0,
    keepAliveTimeout: HEADERS_MS,
    connectionsCheckingInterval: HEADERS_MS / 4,
  })
  server.maxConnections = settings.maxConnections
  server.on('connection', (near) => {
    nears.add(near)
    near.once('close', () => nears.delete(near))
    near.on('error', () => near.destroy())
    near.setTimeout(settings.idleTimeoutMs, () => near.destroy())
  })
  server.on('connect', (request: IncomingMessage, near: Duplex, head: Buffer) => {
    void tunnel(request, near, head)
  })
  server.on('request', (request, response) => {
    void forward(request, response)
  })
  server.on('upgrade', (_request, near: Duplex) => {
    near.end('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\n\r\n')
  })

  /** A host and port, and whatever is said there: mostly TLS. */
  async function tunnel({ url: target = '' }: IncomingMessage, near: Duplex, head: Buffer): Promise<void> {
    try {
      const url = /^[^/?#@\s]+:\d{1,5}$/.test(target) ? URL.parse(`https://${target}`) : null
      if (!url) throw new Refusal('invalid_request', 'CONNECT names a host and a port')
      const far = await reach(url, near)
      near.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.byteLength > 0) far.write(head)
      // What was read to its end is still on its way to a program that reads slowly.
      far.once('close', () => (far.readableEnded ? near.end(() => near.destroy()) : near.destroy()))
      near.pipe(far)
      far.pipe(near)
    } catch (error) {
      const { status, text } = answerOf(error)
      near.end(
        `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      )
    }
  }

  /** One request in the clear, with the `Host` of the address that was checked. */
  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = URL.parse(request.url ?? '')
      if (url?.protocol !== 'http:') throw new Refusal('invalid_request', 'The proxy takes whole http addresses')
      const far = await reach(url, response)
      const outgoing = requestHttp({
        createConnection: () => far,
        method: request.method,
        path: url.pathname + url.search,
        headers: {
          ...passed(request),
          host: url.host,
          connection: 'close',
          // A body has its length or pieces, whatever the method: bare bytes after the headers would be a second request.
          ...(request.headers['transfer-encoding'] !== undefined && { 'transfer-encoding': 'chunked' }),
        },
      })
      outgoing.once('response', (answer) => {
        const { statusCode = 0 } = answer
        answer.on('error', () => response.destroy())
        if (statusCode < 200) {
          far.destroy()
          return say(response, failed(url, 'it answered what is no HTTP'))
        }
        response.writeHead(statusCode, passed(answer))
        answer.pipe(response)
      })
      outgoing.once('upgrade', (_, socket) => {
        socket.destroy()
        say(response, failed(url, 'it speaks another protocol'))
      })
      outgoing.on('error', (error) => say(response, failed(url, error.message)))
      request.pipe(outgoing)
    } catch (error) {
      say(response, error)
    }
  }

  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socket, resolve))
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    socket,
    async recheck() {
      await Promise.all(
        [...ways].map(async (way) => {
          try {
            await admits(way.url)
            if (way.far) outbound.checkConnection(way.url, way.far)
          } catch (error) {
            meter.connection('revoked')
            way.end.abort(error)
            way.far?.destroy()
          }
        }),
      )
    },
    async close() {
      closed = true
      server.close()
      for (const { end, far } of ways) {
        end.abort(new Error('the program has ended'))
        far?.destroy()
      }
      for (const near of nears) near.destroy()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Headers of a message without those that are between its sender and the proxy, or that it says are. */
function passed({ headersDistinct, headers }: IncomingMessage): Record<string, string[]> {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
  return Object.fromEntries(
    Object.entries(headersDistinct).flatMap(([name, values = []]) =>
      between.has(name) || named.has(name) ? [] : [[name, values]],
    ),
  )
}
const failed = (url: URL, why: string): UpstreamFailure =>
  new UpstreamFailure(url.hostname, why, { reason: 'network', retry: 'later' })

function say(response: ServerResponse, error: unknown): void {
  if (response.writableEnded) return
  if (response.headersSent || response.destroyed) return void response.destroy()
  const { status, text } = answerOf(error)
  response.writeHead(Number(status.slice(0, 3)), { 'content-type': 'text/plain', connection: 'close' }).end(text)
}

/** What a program is told; anything but a refusal or a failure of the other side is said without details. */
function answerOf(error: unknown): { readonly status: string; readonly text: string } {
  if (error instanceof Refusal)
    return {
      status:
        error.code === 'invalid_request'
          ? '400 Bad Request'
          : error.code === 'rate_limit'
            ? '429 Too Many Requests'
            : '403 Forbidden',
      text: `svc: ${error.message}\n`,
    }
  return {
    status: '502 Bad Gateway',
    text: `svc: ${error instanceof UpstreamFailure ? error.message : 'the connection failed'}\n`,
  }
}
