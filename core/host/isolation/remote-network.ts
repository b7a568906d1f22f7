import { Duplex } from 'node:stream'
import { callbackify } from 'node:util'
import * as v from 'valibot'
import type {
  Connection,
  PluginNetwork,
  WebSocketClose,
  WebSocketConnection,
  WebSocketEvents,
} from '../../net/connection.ts'
import type { Fetch } from '../../net/fetch.ts'
import type { RemoteEnd, RemoteMethods } from '../remote-service.ts'
import { checkRequest } from './crossing.ts'
import { UpstreamFailure } from '../../errors/error.ts'
import { EventQueue } from './event-queue.ts'
import { readRequest, sendableRequest, toAnswer, toResponse } from './remote-fetch.ts'

const Bytes = v.union([v.string(), v.instance(Uint8Array)])
const Strings = v.record(v.string(), v.string())
const Tls = v.object({
  servername: v.optional(v.string()),
  ca: v.optional(v.union([v.string(), v.array(v.string())])),
  rejectUnauthorized: v.optional(v.boolean()),
  cert: v.optional(v.string()),
  key: v.optional(v.string()),
  alpn: v.optional(v.array(v.string())),
})
const ConnectOptions = v.object({
  host: v.string(),
  port: v.number(),
  tls: v.optional(v.union([v.boolean(), Tls])),
  timeoutMs: v.optional(v.number()),
})
const WebSocketOptions = v.object({
  headers: v.optional(Strings),
  protocols: v.optional(v.array(v.string())),
  maxBytes: v.optional(v.number()),
  tls: v.optional(Tls),
  timeoutMs: v.optional(v.number()),
})

/** A network for the other process. Its rules and its limits are those of this side. */
export function serveNetwork(network: PluginNetwork, remote: RemoteEnd): RemoteMethods {
  return {
    async fetch([url, request], signal) {
      return toAnswer(await network.fetch(v.parse(v.string(), url), { ...readRequest(request), signal }))
    },
    admit: async ([url]) => {
      await network.admit(v.parse(v.string(), url))
    },
    async connect([options]) {
      const where = v.parse(ConnectOptions, options)
      return serveConnection(await network.connect(where as never), { network, remote, system: where.host })
    },
    async webSocket([url, options]) {
      return serveWebSocket(
        await network.webSocket(v.parse(v.string(), url), v.parse(WebSocketOptions, options) as never),
        remote,
      )
    },
  }
}

interface ServeDeps {
  readonly network: PluginNetwork
  readonly remote: RemoteEnd
  readonly system: string
}
function serveConnection(connection: Connection, deps: ServeDeps): object {
  const { network, remote, system } = deps
  const queue = new EventQueue<Uint8Array>(connection)
  let pieces = 0
  const push = (data: Uint8Array): void => {
    pieces++
    queue.push(data)
  }
  connection.on('data', push)
  connection.on('end', () => queue.end())
  connection.on('error', (error: Error) => queue.fail(error))
  connection.on('close', () => {
    queue.end()
    remote.release(object)
  })
  const written = (write: (done: (error?: Error | null) => void) => unknown): Promise<void> =>
    new Promise((resolve, reject) => {
      write((error) => (error ? reject(error) : resolve()))
    })
  const object = remote.expose({
    write: ([data]) => written((done) => connection.write(v.parse(Bytes, data), done)),
    end: () => void connection.end(),
    destroy: () => void connection.destroy(),
    async startTls([tls, read]) {
      connection.off('data', push)
      // As without a process of its own: what was sent before the encryption must not seem to come from inside.
      if (read !== pieces) {
        connection.destroy()
        const message = `${system} sent more than the answer to STARTTLS before the encryption began`
        throw new UpstreamFailure(system, message, { reason: 'malformed', retry: 'later' })
      }
      return serveConnection(await network.startTls(connection, v.parse(Tls, tls) as never), deps)
    },
  })
  return { object, data: queue }
}

type SocketEvent = {
  readonly [K in keyof WebSocketEvents]: { readonly name: K; readonly value: WebSocketEvents[K] | PlainClose }
}[keyof WebSocketEvents]
function serveWebSocket(socket: WebSocketConnection, remote: RemoteEnd): object {
  const queue = new EventQueue<SocketEvent>(socket)
  for (const name of ['message', 'ping', 'pong'] as const)
    socket.on(name, (value) => queue.push({ name, value } as SocketEvent))
  const object = remote.expose({
    send: ([message]) => socket.send(v.parse(Bytes, message)),
    ping: ([data]) => socket.ping(v.parse(v.optional(v.instance(Uint8Array)), data)),
    close: ([code, reason]) =>
      socket.close(v.parse(v.optional(v.number()), code), v.parse(v.optional(v.string()), reason)).then(plainClose),
    terminate: () => socket.terminate(),
  })
  void socket.closed.then((end) => {
    queue.push({ name: 'close', value: plainClose(end) })
    queue.end()
    remote.release(object)
  })
  return { object, protocol: socket.protocol, events: queue }
}
type PlainClose = ReturnType<typeof plainClose>
const plainClose = ({ code, reason, error }: WebSocketClose) => ({ code, reason, failure: error?.message })

/** The network that the other side exposed. */
export function remoteNetwork(remote: RemoteEnd, object: number): PluginNetwork {
  const fetch: Fetch = async (url, request = {}) => {
    checkRequest(request)
    return toResponse(await remote.call(object, 'fetch', [String(url), sendableRequest(request)], request.signal))
  }
  return {
    fetch,
    admit: async (url) => {
      await remote.call(object, 'admit', [String(url)])
    },
    connect: async ({ signal, ...options }) => {
      const opened = await remote.call(object, 'connect', [options], signal)
      return remoteConnection(remote, opened as OpenConnection, signal)
    },
    startTls: async (connection, tls = {}) => {
      const plain = connection as unknown as RemoteSocket
      const opened = await remote.call(plain.object, 'startTls', [tls, plain.piecesRead])
      return remoteConnection(remote, opened as OpenConnection, undefined)
    },
    webSocket: async (url, { signal, ...options } = {}) => {
      const opened = await remote.call(object, 'webSocket', [String(url), options], signal)
      return new RemoteWebSocket(remote, opened as OpenWebSocket, signal)
    },
  }
}

interface OpenConnection {
  readonly object: number
  readonly data: AsyncIterable<Uint8Array>
}
class RemoteSocket extends Duplex {
  readonly object: number
  readonly #remote: RemoteEnd
  readonly #data: AsyncIterator<Uint8Array>
  #pieces = 0

  constructor(remote: RemoteEnd, { object, data }: OpenConnection) {
    super({ allowHalfOpen: false })
    // As those of the daemon: an error that nobody listens to does not end the process.
    this.on('error', () => undefined)
    this.object = object
    this.#remote = remote
    this.#data = data[Symbol.asyncIterator]()
  }
  /** Pieces that were read to their end. */
  get piecesRead(): number {
    return this.readableLength > 0 ? 0 : this.#pieces
  }
  override _read(): void {
    this.#data.next().then(
      ({ done, value }) => {
        if (done !== true) this.#pieces++
        this.push(done === true ? null : value)
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  }
  override _write(chunk: Uint8Array, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#settle('write', [new Uint8Array(chunk)], done)
  }
  override _final(done: (error?: Error | null) => void): void {
    // One that is closed already has ended, too.
    this.#settle('end', [], () => done())
  }
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#leave()
    done(error)
  }
  #leave(): void {
    this.#remote.call(this.object, 'destroy', []).catch(() => undefined /* it is closed already */)
  }
  #settle(method: string, args: readonly unknown[], done: (error?: Error | null) => void): void {
    callbackify(async () => void (await this.#remote.call(this.object, method, args)))(done)
  }
}
function remoteConnection(remote: RemoteEnd, opened: OpenConnection, signal: AbortSignal | undefined): Connection {
  const socket = new RemoteSocket(remote, opened)
  signal?.addEventListener('abort', () => socket.destroy(), { once: true })
  return socket as unknown as Connection
}

interface OpenWebSocket {
  readonly object: number
  readonly protocol: string
  readonly events: AsyncIterable<SocketEvent>
}
type Listeners = { readonly [K in keyof WebSocketEvents]: Set<(value: WebSocketEvents[K]) => void> }
class RemoteWebSocket implements WebSocketConnection {
  readonly protocol: string
  readonly closed: Promise<WebSocketClose>
  bufferedBytes = 0
  readonly #remote: RemoteEnd
  readonly #object: number
  readonly #listeners: Listeners = { message: new Set(), ping: new Set(), pong: new Set(), close: new Set() }
  #gate = Promise.withResolvers<void>()
  #isHeard = false

  constructor(remote: RemoteEnd, { object, protocol, events }: OpenWebSocket, signal: AbortSignal | undefined) {
    this.#remote = remote
    this.#object = object
    this.protocol = protocol
    signal?.addEventListener('abort', () => this.terminate(), { once: true })
    const lost: WebSocketClose = { code: 1006, reason: '', error: new Error('the connection was lost') }
    this.closed = this.#deliver(events).then(
      (end) => end ?? lost,
      () => lost,
    )
    void this.closed.then((value) => this.#emit('close', value))
  }

  on<K extends keyof WebSocketEvents>(event: K, listener: (value: WebSocketEvents[K]) => void): () => void {
    this.#listeners[event].add(listener)
    // Nothing is delivered before somebody listens for messages.
    if (event === 'message' && !this.#isHeard) {
      this.#isHeard = true
      this.#gate.resolve()
    }
    return () => this.#listeners[event].delete(listener)
  }
  async send(message: string | Uint8Array): Promise<void> {
    const bytes = typeof message === 'string' ? Buffer.byteLength(message) : message.byteLength
    this.bufferedBytes += bytes
    try {
      await this.#remote.call(this.#object, 'send', [message])
    } finally {
      this.bufferedBytes -= bytes
    }
  }
  ping(data?: Uint8Array): void {
    this.#tell('ping', data)
  }
  pause(): void {
    if (this.#isHeard) this.#gate = Promise.withResolvers()
  }
  resume(): void {
    if (this.#isHeard) this.#gate.resolve()
  }
  async close(code?: number, reason?: string): Promise<WebSocketClose> {
    this.#gate.resolve()
    await this.#remote.call(this.#object, 'close', [code, reason]).catch(() => undefined /* it is closed */)
    return await this.closed
  }
  terminate(): void {
    this.#gate.resolve()
    this.#tell('terminate')
  }

  #tell(method: string, ...args: readonly unknown[]): void {
    // What went wrong is the reason of `closed`.
    this.#remote.call(this.#object, method, args).catch(() => undefined)
  }
  async #deliver(events: AsyncIterable<SocketEvent>): Promise<WebSocketClose | undefined> {
    for await (const { name, value } of events) {
      if (name === 'close') {
        const { code, reason, failure } = value as PlainClose
        return { code, reason, ...(failure !== undefined && { error: new Error(failure) }) }
      }
      await this.#gate.promise
      this.#emit(name, value as never)
    }
    return undefined
  }
  #emit<K extends keyof WebSocketEvents>(event: K, value: WebSocketEvents[K]): void {
    for (const listener of this.#listeners[event]) listener(value)
  }
}
