/** What the HTTP layer reads of the configuration, at every request anew. Durations in milliseconds, sizes in bytes. */
export interface HttpSettings {
  readonly host: string
  readonly port: number
  readonly apiKey: string | undefined
  readonly tokensPerMinute: number
  readonly failedAuthPerMinute: number
  readonly maxBodyBytes: number
  /** Of the line and the headers of a request; 16 KiB when absent. Read once, at `listen()`. */
  readonly maxHeaderBytes?: number
  readonly maxJsonDepth: number
  /** Until the headers of a request are complete. Read once, at `listen()`, as are `requestTimeoutMs` and `tls`. */
  readonly headersTimeoutMs: number
  /** Until the whole request is received. */
  readonly requestTimeoutMs: number
  readonly sseKeepAliveMs: number
  /** How long a stream that holds its status waits for its first event. */
  readonly streamStatusMs: number
  /** What a WebSocket client may let pile up before it is closed with 1013. */
  readonly socketBufferBytes: number
  /** A larger frame is refused; one four times as large ends the connection. */
  readonly socketFrameBytes: number
  /** Silence of the client after which its socket is closed. */
  readonly socketIdleMs: number
  /** Sockets one address may have open; no limit when absent. */
  readonly socketsPerAddress?: number
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  readonly trustedProxies: readonly string[]
  readonly tls?: { readonly cert: string; readonly key: string } | true
  readonly open?: boolean
  readonly public?: boolean
  /** Answers are parsed with `returns`; a mismatch is a defect. */
  readonly development: boolean
  /** Lets a daemon without a key listen beyond loopback (`SVC_ALLOW_NO_AUTH=1`). */
  readonly allowNoAuth?: boolean
  /** How many requests may wait for a reloading plugin, and how long each. Defaults 256 and 10 s. */
  readonly holdMaxRequests?: number
  readonly holdMaxMs?: number
}
