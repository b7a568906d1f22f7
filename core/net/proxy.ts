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
  /** Connections one program may have open. */
  readonly maxConnections: number
  /** Silence in both directions after which a connection is closed. */
  readonly idleTimeoutMs: number
}
export interface Proxy {
  readonly socket: string
  close(): Promise<void>
}

const MOST_HEADER_BYTES = 16_384
const HEADERS_MS = 10_000
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
  outbound: Pick<Outbound, 'connect'>,
  admits: (url: URL) => void | Promise<void>,
  settings: ProxySettings,
): Promise<Proxy> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-network-'))
  const socket = join(folder, 'socket')
  const ended = new AbortController()
  const open = new Set<Duplex>()

  const reach = async (url: URL): Promise<Socket> => {
    await admits(url)
    const far = await outbound.connect(url, ended.signal)
    open.add(far)
    far.once('close', () => open.delete(far))
    far.on('error', () => far.destroy())
    far.setTimeout(settings.idleTimeoutMs, () => far.destroy())
    return far
  }

  const server = createServer({
    maxHeaderSize: MOST_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: 0,
    keepAliveTimeout: HEADERS_MS,
  })
  server.maxConnections = settings.maxConnections
  server.on('connection', (near) => {
    open.add(near)
    near.once('close', () => open.delete(near))
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
      const far = await reach(url)
      if (near.destroyed) return void far.destroy()
      near.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.byteLength > 0) far.write(head)
      near.once('close', () => far.destroy())
      far.once('close', () => near.destroy())
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
      const far = await reach(url)
      const headers = Object.fromEntries(Object.entries(request.headersDistinct).filter(([name]) => !between.has(name)))
      const outgoing = requestHttp({
        createConnection: () => far,
        method: request.method,
        path: url.pathname + url.search,
        headers: { ...headers, host: url.host, connection: 'close' },
      })
      outgoing.once('response', (answer) => {
        const passed = Object.entries(answer.headersDistinct).filter(([name]) => !between.has(name))
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(passed) as Record<string, string[]>)
        answer.on('error', () => response.destroy())
        answer.pipe(response)
      })
      outgoing.once('error', (error) => {
        if (response.headersSent) response.destroy()
        else say(response, new UpstreamFailure(url.hostname, error.message, { reason: 'network', retry: 'later' }))
      })
      response.once('close', () => far.destroy())
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
    async close() {
      ended.abort(new Error('the program has ended'))
      server.close()
      for (const each of open) each.destroy()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function say(response: ServerResponse, error: unknown): void {
  const { status, text } = answerOf(error)
  response.writeHead(Number(status.slice(0, 3)), { 'content-type': 'text/plain', connection: 'close' }).end(text)
}

/** What a program is told; anything but a refusal or a failure of the other side is said without details. */
function answerOf(error: unknown): { readonly status: string; readonly text: string } {
  if (error instanceof Refusal)
    return {
      status: error.code === 'invalid_request' ? '400 Bad Request' : '403 Forbidden',
      text: `svc: ${error.message}\n`,
    }
  return {
    status: '502 Bad Gateway',
    text: `svc: ${error instanceof UpstreamFailure ? error.message : 'the connection failed'}\n`,
  }
}
