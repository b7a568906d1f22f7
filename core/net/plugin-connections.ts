import type { Socket } from 'node:net'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { Dispose, Scope } from '../scope/scope.ts'
import type { ConnectOptions, TlsOptions, WebSocketConnection, WebSocketOptions } from './connection.ts'
import { encrypt } from './encrypt.ts'
import type { Connector, OutboundSettings } from './outbound.ts'
import { portOf } from './policy.ts'
import { targetOf, targetOfWebSocket } from './target.ts'

export interface PluginConnectionsDeps {
  readonly scope: Scope
  readonly connector: Connector
  readonly settings: () => OutboundSettings
  /** Those of all plugins; it is among them until its plugin unloads. */
  readonly all: Set<PluginConnections>
}
interface Target {
  readonly url: URL
  /** What goes over the connection is not HTTP, so that no port is refused for its number. */
  readonly anyProtocol: boolean
}
interface OpenOptions extends Target {
  readonly tls: TlsOptions | undefined
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
}

const MAX_CONNECTIONS = 256

/** The sockets of one plugin. Each is in the ledger of its scope while it is open. */
export class PluginConnections {
  readonly #deps: PluginConnectionsDeps
  readonly #open = new Set<OpenConnection>()
  /** By the socket that the plugin has now. */
  readonly #bySocket = new WeakMap<Socket, OpenConnection>()

  constructor(deps: PluginConnectionsDeps) {
    this.#deps = deps
    deps.all.add(this)
    deps.scope.signal.addEventListener('abort', () => deps.all.delete(this), { once: true })
  }

  async connect({ host, port, tls, signal, timeoutMs }: ConnectOptions): Promise<Socket> {
    return await this.#connect({
      url: targetOf(host, port),
      anyProtocol: true,
      tls: tls === true ? {} : tls || undefined,
      signal,
      timeoutMs: timeoutMs ?? this.#deps.connector.connectTimeoutMs,
    })
  }

  async startTls(socket: Socket, tls: TlsOptions = {}): Promise<Socket> {
    const connection = this.#bySocket.get(socket)
    if (!connection) throw new Refusal('invalid_request', 'startTls takes an open connection that ctx.connect returned')
    // Else whoever is between both sides could put commands before the encryption that seem to come from inside.
    if (socket.readableLength > 0)
      throw connection.failure('sent more than the answer to STARTTLS before the encryption began', 'malformed')
    const late = connection.endAfter(this.#deps.connector.connectTimeoutMs)
    try {
      return await this.#encrypt(connection, tls)
    } catch (error) {
      connection.end(error)
      throw connection.reason
    } finally {
      clearTimeout(late)
    }
  }

  async webSocket(address: string | URL, options: WebSocketOptions = {}): Promise<WebSocketConnection> {
    const target = targetOfWebSocket(address)
    const url = new URL(address)
    url.hash = ''
    const { tls = {}, signal, timeoutMs = this.#deps.connector.connectTimeoutMs } = options
    const alpn = tls.alpn ?? ['http/1.1']
    const socket = await this.#connect({
      url: target,
      anyProtocol: false,
      tls: url.protocol === 'wss:' ? { ...tls, alpn } : undefined,
      signal,
      timeoutMs,
    })
    const { openWebSocket } = await import('./web-socket.ts')
    const connection = this.#bySocket.get(socket)
    const maxBytes = options.maxBytes ?? this.#deps.settings().maxBytes
    return await openWebSocket(url, socket, { ...options, timeoutMs, maxBytes }).catch((error: unknown) => {
      throw connection?.reason ?? error
    })
  }

  recheck(): void {
    for (const connection of this.#open) {
      try {
        connection.check(this.#deps.connector)
      } catch (error) {
        connection.end(error)
      }
    }
  }

  async #connect({ url, anyProtocol, tls, signal, timeoutMs }: OpenOptions): Promise<Socket> {
    const { scope, connector } = this.#deps
    scope.signal.throwIfAborted()
    signal?.throwIfAborted()
    this.#checkRoom(url)
    const connection = new OpenConnection({ url, anyProtocol })
    this.#open.add(connection)
    const stopWatching = connection.endWith(scope, signal)
    void connection.closed.then(() => {
      stopWatching()
      this.#open.delete(connection)
    })
    const late = connection.endAfter(timeoutMs)
    try {
      const socket = await connection.opened(connector)
      this.#bySocket.set(socket, connection)
      return tls ? await this.#encrypt(connection, tls) : socket
    } catch (error) {
      connection.end(error)
      throw connection.reason
    } finally {
      clearTimeout(late)
    }
  }

  async #encrypt(connection: OpenConnection, tls: TlsOptions): Promise<Socket> {
    const { url, socket } = connection
    if (!socket) throw connection.reason
    this.#bySocket.delete(socket)
    const secure = await encrypt(url, socket, tls)
    connection.socket = secure
    this.#bySocket.set(secure, connection)
    return secure
  }

  #checkRoom(url: URL): void {
    const max = this.#deps.settings().maxPluginConnections ?? MAX_CONNECTIONS
    if (this.#open.size < max) return
    const message =
      `Cannot connect to ${url.host}: the plugin has ${max} connections, ` +
      'which is all that outbound.plugin_connections allows'
    throw new UpstreamFailure(url.hostname, message, { reason: 'overloaded', retry: 'later' })
  }
}

/** One connection from the attempt to its end. */
class OpenConnection {
  readonly url: URL
  readonly closed: Promise<void>
  /** What the plugin has: the socket, or its encrypted side. */
  socket: Socket | undefined
  /** Why it was ended from this side. */
  reason: unknown
  readonly #anyProtocol: boolean
  readonly #attempt = new AbortController()
  readonly #settled = Promise.withResolvers<void>()
  #raw: Socket | undefined

  constructor({ url, anyProtocol }: Target) {
    this.url = url
    this.#anyProtocol = anyProtocol
    this.closed = this.#settled.promise
  }

  /** Looking up a name cannot be interrupted, so the end of the attempt does not wait for it. */
  async opened(connector: Connector): Promise<Socket> {
    const { signal } = this.#attempt
    const ended = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => ended.reject(signal.reason), { once: true })
    const connecting = connector.connect(this.url, signal, this.#anyProtocol)
    const socket = await Promise.race([connecting, ended.promise])
    this.#raw = socket
    this.socket = socket
    // A plugin that does not listen for errors learns of them by the close event; without a listener they would be
    // uncaught.
    socket.on('error', () => undefined)
    socket.once('close', () => this.#settled.resolve())
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    return socket
  }

  check(connector: Connector): void {
    if (this.#raw) connector.checkConnection(this.url, this.#raw, this.#anyProtocol)
  }

  end(reason: unknown): void {
    this.reason ??= reason
    if (!this.#raw) {
      this.#attempt.abort(this.reason)
      this.#settled.resolve()
    }
    this.socket?.destroy()
    this.#raw?.destroy()
  }

  endAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.end(this.failure(`did not accept a connection (${ms} ms)`, 'timeout')), ms)
  }

  /** Ends it with the scope or the signal. The returned function stops that. */
  endWith(scope: Scope, signal: AbortSignal | undefined): () => void {
    const onUnload = (): void => this.end(scope.signal.reason)
    const onAbort = (): void => this.end(signal?.reason)
    scope.signal.addEventListener('abort', onUnload, { once: true })
    signal?.addEventListener('abort', onAbort, { once: true })
    // Work that is still running while the plugin drains may connect; the signal ends that too.
    const forget = scope.state === 'open' ? this.#enterLedger(scope) : undefined
    return () => {
      scope.signal.removeEventListener('abort', onUnload)
      signal?.removeEventListener('abort', onAbort)
      void forget?.()
    }
  }

  #enterLedger(scope: Scope): Dispose {
    return scope.own('connection', `${this.url.hostname}:${portOf(this.url)}`, async () => {
      this.end(scope.signal.reason)
      await this.closed
    })
  }

  failure(what: string, reason: 'timeout' | 'malformed'): UpstreamFailure {
    const { hostname, host } = this.url
    return new UpstreamFailure(hostname, `${host} ${what}`, { reason, retry: 'later' })
  }
}

/** How long a connection is silent before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000
