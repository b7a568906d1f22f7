import { SerialQueue } from 'svc/sdk'
import type { WebSocketClose, WebSocketConnection } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'

/** What a frame asks for: it runs after that of earlier frames. */
export type FrameWork = () => Promise<void>
/** Called with each frame as soon as it came. A failure of it, or of the work it returns, ends the connection. */
export type FrameHandler = (frame: unknown) => FrameWork | undefined

/** How a connection ended. */
export interface SocketEnd extends WebSocketClose {
  /** What the handler or its work threw. */
  readonly failure?: unknown
}

/** Frames whose work is not done, and their length, after which no more are read until some of it is. */
const MAX_WAITING_FRAMES = 1000
const MAX_WAITING_LENGTH = 67_108_864
/** A private close code: the other side keeps the session. */
const CLOSED_BY_US = 4000

/** How the frames of a platform are written. */
export interface FrameCodec {
  encode(frame: unknown): string | Uint8Array
  /** Throws for what is no frame, which ends the connection. */
  decode(data: string | Uint8Array): unknown
}

/** A WebSocket with frames in both directions. Tells the link that the platform was heard. */
export class FrameSocket {
  /** Settles when the connection has ended and no work of its frames runs. Never rejects. */
  readonly ended: Promise<SocketEnd>
  readonly #socket: WebSocketConnection
  readonly #work = new SerialQueue()
  readonly #handle: FrameHandler
  readonly #codec: FrameCodec
  #waiting = 0
  #waitingLength = 0
  #isPaused = false
  #failure: unknown

  constructor(
    link: Pick<ChannelLink<unknown>, 'heard'>,
    socket: WebSocketConnection,
    handle: FrameHandler,
    codec: FrameCodec,
  ) {
    this.#socket = socket
    this.#handle = handle
    this.#codec = codec
    this.ended = this.#end()
    for (const event of ['ping', 'pong'] as const) socket.on(event, () => link.heard())
    socket.on('message', (data) => {
      link.heard()
      if (this.#failure === undefined) this.#read(data)
    })
  }

  async send(frame: unknown): Promise<void> {
    await this.#socket.send(this.#codec.encode(frame))
  }

  ping(): void {
    this.#socket.ping()
  }

  /** Ends the connection; the platform keeps the session unless the code says otherwise. */
  async close(code = CLOSED_BY_US, reason = ''): Promise<void> {
    await this.#socket.close(code, reason)
    await this.ended
  }

  /** Ends a connection on which the other side no longer answers. */
  terminate(): void {
    this.#socket.terminate()
  }

  #read(data: string | Uint8Array): void {
    try {
      const work = this.#handle(this.#codec.decode(data))
      if (work) this.#add(work, data.length)
    } catch (error) {
      this.#fail(error)
    }
  }

  #add(work: FrameWork, length: number): void {
    this.#count(1, length)
    this.#work
      .run(async () => {
        if (this.#failure === undefined) await work()
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => this.#count(-1, -length))
  }

  #count(frames: number, length: number): void {
    this.#waiting += frames
    this.#waitingLength += length
    const isFull = this.#waiting >= MAX_WAITING_FRAMES || this.#waitingLength >= MAX_WAITING_LENGTH
    if (isFull === this.#isPaused) return
    this.#isPaused = isFull
    if (isFull) this.#socket.pause()
    else this.#socket.resume()
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    // How it closed, the other side's answer included, is told by `ended`.
    void this.#socket.close(CLOSED_BY_US, '')
  }

  async #end(): Promise<SocketEnd> {
    const close = await this.#socket.closed
    await this.#work.idle()
    return this.#failure === undefined ? close : { ...close, failure: this.#failure }
  }
}
