import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { RawData } from 'ws'
import { UpstreamFailure } from '../errors/error.ts'
import type { UpstreamReason } from '../errors/error.ts'
import type { WebSocketClose, WebSocketConnection, WebSocketEvents, WebSocketOptions } from './connection.ts'
import { readRetryAfter } from './failed-answer.ts'
import { failureOf, IDENTITY } from './outbound-exchange.ts'

/** How long `close` waits for the answer of the other side. */
const CLOSE_MS = 5000
/** They are set by the protocol, or name the host that was checked. */
const RESERVED_HEADERS = /^(?:host|connection|upgrade|content-length|transfer-encoding|sec-websocket-.*)$/

/** Opens a WebSocket on a connected socket, which it closes when that fails. */
export async function openWebSocket(
  url: URL,
  socket: Socket,
  options: WebSocketOptions & { readonly timeoutMs: number; readonly maxBytes: number },
): Promise<WebSocketConnection> {
  const headers = Object.entries(options.headers ?? {})
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !RESERVED_HEADERS.test(name))
  const client = new WebSocket(url, [...(options.protocols ?? [])], {
    createConnection: () => socket,
    headers: Object.fromEntries([IDENTITY, ...headers]),
    maxPayload: options.maxBytes,
    handshakeTimeout: options.timeoutMs,
    // A compressed message can be far larger than what arrives, and each connection would keep its own buffers.
    perMessageDeflate: false,
    followRedirects: false,
  })
  const connection = new OpenWebSocket(client)
  const opened = Promise.withResolvers<void>()
  client.once('open', () => {
    // Whoever opens it adds listeners a moment later.
    client.pause()
    opened.resolve()
  })
  client.once('unexpected-response', (request, response) => {
    opened.reject(refusedHandshake(url, response))
    request.destroy()
  })
  client.once('error', (error) => opened.reject(failureOf(url, error)))
  try {
    await opened.promise
    return connection
  } catch (error) {
    socket.destroy()
    throw error
  }
}

type Listeners = { readonly [K in keyof WebSocketEvents]: Set<(value: WebSocketEvents[K]) => void> }

class OpenWebSocket implements WebSocketConnection {
  readonly closed: Promise<WebSocketClose>
  readonly #client: WebSocket
  readonly #listeners: Listeners = { message: new Set(), ping: new Set(), pong: new Set(), close: new Set() }
  #error: Error | undefined
  #isRead = false

  constructor(client: WebSocket) {
    this.#client = client
    client.on('error', (error) => {
      this.#error ??= error
    })
    client.on('message', (data, isBinary) => {
      const bytes = toBuffer(data)
      this.#emit('message', isBinary ? bytes : bytes.toString('utf8'))
    })
    client.on('ping', (data) => this.#emit('ping', data))
    client.on('pong', (data) => this.#emit('pong', data))
    const closed = Promise.withResolvers<WebSocketClose>()
    this.closed = closed.promise
    client.once('close', (code, reason) => {
      const close = { code, reason: reason.toString('utf8'), ...(this.#error && { error: this.#error }) }
      closed.resolve(close)
      this.#emit('close', close)
    })
  }

  get protocol(): string {
    return this.#client.protocol
  }
  get bufferedBytes(): number {
    return this.#client.bufferedAmount
  }

  on<K extends keyof WebSocketEvents>(event: K, listener: (value: WebSocketEvents[K]) => void): () => void {
    this.#listeners[event].add(listener)
    if (event === 'message' && !this.#isRead) this.resume()
    return () => void this.#listeners[event].delete(listener)
  }

  async send(message: string | Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#client.send(message, { binary: typeof message !== 'string' }, (error) => {
        if (error) reject(failureOf(new URL(this.#client.url), error))
        else resolve()
      })
    })
  }

  ping(data?: Uint8Array): void {
    if (this.#client.readyState === WebSocket.OPEN) this.#client.ping(data)
  }
  pause(): void {
    this.#client.pause()
  }
  resume(): void {
    this.#isRead = true
    this.#client.resume()
  }

  async close(code = 1000, reason = ''): Promise<WebSocketClose> {
    this.#client.close(code, reason)
    // The answer is read as well.
    this.resume()
    const late = setTimeout(() => this.#client.terminate(), CLOSE_MS)
    try {
      return await this.closed
    } finally {
      clearTimeout(late)
    }
  }
  terminate(): void {
    this.#client.terminate()
  }

  #emit<K extends keyof WebSocketEvents>(event: K, value: WebSocketEvents[K]): void {
    for (const listener of this.#listeners[event]) {
      try {
        listener(value)
      } catch (error) {
        // What a listener missed cannot be read again: the connection ends, and `closed` says why.
        this.#error ??= error instanceof Error ? error : new Error(String(error))
        this.#client.terminate()
      }
    }
  }
}

function toBuffer(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data)
  return data instanceof ArrayBuffer ? Buffer.from(data) : data
}

function refusedHandshake(url: URL, response: IncomingMessage): UpstreamFailure {
  const { statusCode = 0, headers } = response
  const { reason, retry } = meaningOf(statusCode)
  const retryAfterSecs = readRetryAfter(headers['retry-after'], undefined, Date.now())
  return new UpstreamFailure(url.hostname, `${url.host} refused the WebSocket with status ${statusCode}`, {
    reason,
    retry,
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

function meaningOf(status: number): { readonly reason: UpstreamReason; readonly retry: 'never' | 'later' } {
  if (status === 429) return { reason: 'rate_limit', retry: 'later' }
  if (status >= 500) return { reason: 'server_error', retry: 'later' }
  if (status === 401 || status === 403) return { reason: 'auth', retry: 'never' }
  return { reason: status === 404 ? 'not_found' : 'invalid_request', retry: 'never' }
}
