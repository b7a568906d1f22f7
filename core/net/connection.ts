import type { Fetch } from './fetch.ts'

/**
 * A connection of `ctx.connect` or `ctx.startTls`: a `Socket` of `node:net`, to which it may be cast for a library. The
 * members named here need no types of Node.
 */
export interface Connection extends AsyncIterable<Uint8Array> {
  /** The connection is closed, or about to be. */
  readonly destroyed: boolean
  /** `end` was called. */
  readonly writableEnded: boolean
  /** `false`: wait for `drain` before writing more. */
  write(data: string | Uint8Array, done?: (error?: Error | null) => void): boolean
  /** Ends the writing side, after this. */
  end(data?: string | Uint8Array, done?: () => void): unknown
  /** Closes the connection at once. */
  destroy(error?: Error): unknown
  /** Stops `data` until `resume`. */
  pause(): unknown
  /** Lets `data` come again after `pause`. */
  resume(): unknown
  /** Adds a listener. `data` is bytes from the other side, in order; `error` is followed by `close`. */
  on(event: 'data', listener: (data: Uint8Array) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end' | 'close' | 'drain', listener: () => void): unknown
  /** Like `on`, for one event. */
  once(event: 'data', listener: (data: Uint8Array) => void): unknown
  once(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'end' | 'close' | 'drain', listener: () => void): unknown
  /** Removes a listener. */
  off(event: 'data', listener: (data: Uint8Array) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'end' | 'close' | 'drain', listener: () => void): unknown
}

/** How a connection is encrypted. */
export interface TlsOptions {
  /** The name the certificate must be for, which is sent to the server too. Default: the host. */
  readonly servername?: string
  /** Certificates (PEM) that are trusted besides the usual ones. */
  readonly ca?: string | readonly string[]
  /** `false` accepts any certificate: only where the operator said so in the configuration. */
  readonly rejectUnauthorized?: boolean
  /** The client's own certificate (PEM), for servers that ask for one. */
  readonly cert?: string
  /** The key of `cert` (PEM). */
  readonly key?: string
  /** Protocols to offer inside TLS, such as `mqtt`. */
  readonly alpn?: readonly string[]
}
/** Where to connect to, and how. */
export interface ConnectOptions {
  /** A name or an address. */
  readonly host: string
  /** 1 to 65535. */
  readonly port: number
  /** `true` or options: TLS from the first byte. Default: a plain connection, which `ctx.startTls` can upgrade. */
  readonly tls?: boolean | TlsOptions
  /** Ends the attempt, and the connection once it is open, when it aborts. */
  readonly signal?: AbortSignal
  /** Milliseconds until the connection, TLS included, must be open. Default: `[outbound] connect_timeout_ms`. */
  readonly timeoutMs?: number
}
/**
 * Opens a connection for a protocol other than HTTP, under the rules of `ctx.fetch`: the resolved address is checked,
 * and it is the one that is connected to. It closes when the plugin unloads. Rejects with `Refusal('forbidden')` for a
 * refused address, with `UpstreamFailure` when the other side fails, and with the signal's reason on abort.
 */
export type Connect = (options: ConnectOptions) => Promise<Connection>
/**
 * Upgrades a connection of `ctx.connect` to TLS (STARTTLS) and returns the encrypted one, which replaces it. Nothing
 * may be left to read on it.
 */
export type StartTls = (connection: Connection, tls?: TlsOptions) => Promise<Connection>

/** A connection that somebody opened to a port of `ctx.listen`. */
export interface AcceptedConnection extends Connection {
  /** The address it comes from. */
  readonly remoteAddress: string | undefined
  /** The port it comes from. */
  readonly remotePort: number | undefined
}
/** Where to listen, and how many may connect. */
export interface ListenOptions {
  /**
   * The key of the plugin's configuration that has the address, such as `network.listen`: a text like `0.0.0.0:4200`,
   * `[::]:4200`, or `127.0.0.1:0` for a free port. It must be one that only the configuration file can set.
   */
  readonly key: string
  /** Connections at a time. What comes on top is closed at once. */
  readonly maxConnections: number
  /** The same for one address. Default: no limit but the one for all. */
  readonly maxPerAddress?: number
  /** Called with each connection. */
  readonly accept: (connection: AcceptedConnection) => void
}
/** An open port. */
export interface PortListener {
  /** The address in use. */
  readonly host: string
  /** The port in use, also where the configuration asks for a free one. */
  readonly port: number
  /** How many connections are open. */
  readonly connections: number
  /** Closes the port and its connections. Unloading the plugin does the same. */
  close(): Promise<void>
}
/**
 * Opens a TCP port. Rejects with `Refusal('forbidden')` when the key can be set by anything but the configuration file,
 * `Refusal('invalid_request')` when it has no address, and `Refusal('conflict')` when nobody can listen there.
 */
export type Listen = (options: ListenOptions) => Promise<PortListener>

/** What a plugin opens connections with. */
export interface PluginConnector {
  readonly connect: Connect
  readonly startTls: StartTls
  readonly webSocket: OpenWebSocket
}

/** The network under one set of rules. */
export interface PluginNetwork extends PluginConnector {
  /** Requests to other systems. */
  readonly fetch: Fetch
  /** Throws `forbidden`, with the setting that would permit it, if a request to this address would be refused. */
  readonly admit: (url: string | URL) => Promise<void>
}

/** What `ctx.webSocket` takes beside the address. */
export interface WebSocketOptions {
  /** Headers of the request that opens it, by name. */
  readonly headers?: Readonly<Record<string, string>>
  /** Subprotocols to offer, in the order of preference. */
  readonly protocols?: readonly string[]
  /** Ends the attempt, and the connection once it is open, when it aborts. */
  readonly signal?: AbortSignal
  /** Bytes of a message after which the connection is closed with 1009. Default: `[outbound] max_bytes`. */
  readonly maxBytes?: number
  /** How `wss:` is encrypted. */
  readonly tls?: TlsOptions
  /** Milliseconds until the connection must be open. Default: `[outbound] connect_timeout_ms`. */
  readonly timeoutMs?: number
}
/** How a WebSocket ended. */
export interface WebSocketClose {
  /** The code of the other side; 1005 when it gave none, 1006 when the connection was lost. */
  readonly code: number
  /** The words of the other side; mostly empty. */
  readonly reason: string
  /** What went wrong, where the connection did not end by a close frame. */
  readonly error?: Error
}
/** What a WebSocket reports, by name of the event. */
export interface WebSocketEvents {
  /** A message: a text, or bytes. */
  readonly message: string | Uint8Array
  /** A ping frame of the other side; it is answered already. */
  readonly ping: Uint8Array
  /** The answer to `ping`. */
  readonly pong: Uint8Array
  /** The end of the connection. */
  readonly close: WebSocketClose
}
/** An open WebSocket. Nothing is read before the first listener for messages is there, so none is missed. */
export interface WebSocketConnection {
  /** The subprotocol that the server chose; empty when it chose none. */
  readonly protocol: string
  /** Bytes that wait to be sent. */
  readonly bufferedBytes: number
  /** Settles with the end of the connection. It never rejects. */
  readonly closed: Promise<WebSocketClose>
  /** Calls the listener for each event of that name. The returned function removes it. */
  on<K extends keyof WebSocketEvents>(event: K, listener: (value: WebSocketEvents[K]) => void): () => void
  /** Settles when the message is handed to the system: await it to send no faster than the other side reads. */
  send(message: string | Uint8Array): Promise<void>
  /** Sends a ping frame. The answer is a `pong` event. */
  ping(data?: Uint8Array): void
  /** Stops to read, and with that the other side, until `resume`. */
  pause(): void
  /** Reads on. */
  resume(): void
  /** Sends a close frame and waits for the answer, at most a few seconds. */
  close(code?: number, reason?: string): Promise<WebSocketClose>
  /** Ends the connection at once, without a close frame. */
  terminate(): void
}
/**
 * Opens a WebSocket (`wss:` or `ws:`) under the rules of `ctx.fetch`. Redirects are not followed. It closes when the
 * plugin unloads. Rejects with `Refusal('forbidden')` for a refused address and with `UpstreamFailure` when the other
 * side fails: `auth`, `rate_limit` and the like by the status of a refused handshake, with its Retry-After.
 */
export type OpenWebSocket = (url: string | URL, options?: WebSocketOptions) => Promise<WebSocketConnection>
