import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import { endOf } from './background.ts'
import type { ChannelLink, ConnectionEnd } from './channel.ts'
import type { FrameSocket, SocketEnd } from './frame-socket.ts'
import { within } from './json-socket.ts'

export interface EventConnectionOptions {
  /** The platform, as failures name it. */
  readonly system: string
  readonly link: Pick<ChannelLink<unknown>, 'signal' | 'log'>
  /** Writes what the adapter remembers. Called once, when no work of a frame runs any more. */
  readonly flush?: (end: SocketEnd) => Promise<void>
  /** What a close code of the platform means; without it, to try again later. */
  readonly endOfCode?: (code: number) => ConnectionEnd
  /** The close code at an end of our own; without it, one after which the platform keeps the session. */
  readonly closeCode?: number
  readonly handshakeMs?: number
}

const HANDSHAKE_MS = 20_000

/** A connection over which a platform sends events, from its handshake to its end. */
export class EventConnection {
  readonly #options: EventConnectionOptions
  readonly #ready = Promise.withResolvers<void>()
  readonly #controller = new AbortController()
  #socket: FrameSocket | undefined
  #ownEnd: ConnectionEnd | undefined
  #closed: Promise<ConnectionEnd> | undefined

  constructor(options: EventConnectionOptions) {
    this.#options = options
  }

  /** Aborts when the connection has ended. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** How the connection ended. Never rejects. */
  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The connection was not opened')
    return this.#closed
  }

  /** Takes over a socket that needs no handshake. */
  follow(socket: FrameSocket): void {
    this.#socket = socket
    this.#closed = this.#watch(socket)
  }

  /**
   * Takes over a socket; `greet` sends what the platform waits for. Settles when `setReady` was called. Throws
   * `UpstreamFailure` if the connection ends before, or if that takes too long.
   */
  async open(socket: FrameSocket, greet?: () => Promise<void>): Promise<void> {
    const { system, link, handshakeMs = HANDSHAKE_MS } = this.#options
    this.follow(socket)
    try {
      await greet?.()
      await within(handshakeMs, system, this.until(this.#ready.promise))
    } catch (error) {
      await this.close()
      link.signal.throwIfAborted()
      throw error
    }
  }

  /** As the promise, unless the connection ends before: then it throws an `UpstreamFailure`. */
  until<T>(promise: Promise<T>): Promise<T> {
    const ended = this.closed.then((end) => {
      throw failureOf(this.#options.system, end)
    })
    return Promise.race([promise, ended])
  }

  setReady(): void {
    this.#ready.resolve()
  }

  /** Throws what the socket throws. */
  async send(frame: unknown): Promise<void> {
    await this.#socket?.send(frame)
  }

  /** Closes the connection for this reason. */
  endWith(end: ConnectionEnd): undefined {
    this.#ownEnd ??= end
    void this.#socket?.close(this.#options.closeCode)
  }

  /** Drops a connection on which the other side no longer answers. */
  dropWith(end: ConnectionEnd): void {
    this.#ownEnd ??= end
    this.#socket?.terminate()
  }

  async close(): Promise<void> {
    await this.#socket?.close(this.#options.closeCode)
    await this.#closed
  }

  async #watch(socket: FrameSocket): Promise<ConnectionEnd> {
    const { system, link, flush } = this.#options
    const end = await socket.ended
    this.#controller.abort()
    try {
      await flush?.(end)
    } catch (error) {
      // An older position holds: what came after it is delivered again.
      link.log.warn(`The position in the events of ${system} could not be saved`, { error })
    }
    return this.#ownEnd ?? this.#meaningOf(end)
  }

  #meaningOf({ failure, code, reason }: SocketEnd): ConnectionEnd {
    if (failure !== undefined) return endOf(failure)
    const { system, endOfCode } = this.#options
    return (
      endOfCode?.(code) ?? { retry: 'later', reason: `${system} closed the connection with ${code} ${reason}`.trim() }
    )
  }
}

/** The end of a connection that was not ready yet. */
function failureOf(system: string, { retry, reason, retryAfterSecs }: ConnectionEnd): UpstreamFailure {
  const kind = retry === 'never' ? ('auth' as const) : ('network' as const)
  return new UpstreamFailure(system, reason, omitUndefined({ retry, reason: kind, retryAfterSecs }))
}
