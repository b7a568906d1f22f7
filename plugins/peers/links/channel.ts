import type { Connection } from 'svc/sdk'
import { frame, FrameReader } from '../frames.ts'
import { LinkRefusal } from '../mac.ts'

const MAX_WAITING_FRAMES = 64
const MAX_WAITING_BYTES = 1_048_576

/** Frames over a connection: reads no further than what is taken from it, and buffers a bounded amount to send. */
export class FrameChannel {
  readonly #connection: Connection
  readonly #reader = new FrameReader()
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  readonly #maxQueuedBytes: number
  readonly #ended = Promise.withResolvers<Error>()
  #taker: PromiseWithResolvers<Buffer> | undefined
  #queuedBytes = 0
  #isPaused = false
  #end: Error | undefined
  /** What came is no frame: nothing is read any more. */
  #problem: Error | undefined

  constructor(connection: Connection, maxQueuedBytes: number) {
    this.#connection = connection
    this.#maxQueuedBytes = maxQueuedBytes
    connection.on('data', (bytes) => this.#receive(bytes))
    connection.on('end', () => this.#over(new Error('the peer closed the connection')))
    connection.on('error', (error) => this.#over(error))
    connection.on('close', () => this.#over(new Error('the connection was lost')))
  }

  /** Settles with the reason when the connection has ended. */
  get ended(): Promise<Error> {
    return this.#ended.promise
  }
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** The other side has proven itself: its frames may be longer. */
  raise(maxBytes: number): void {
    this.#reader.raise(maxBytes)
  }

  /** The content of the next frame. Rejects with the reason when there is none any more. One caller at a time. */
  async next(): Promise<Buffer> {
    const first = this.#waiting.shift()
    if (first) {
      this.#waitingBytes -= first.byteLength
      if (this.#isPaused && !this.#isFull) this.#resume()
      return first
    }
    const over = this.#problem ?? this.#end
    if (over) throw over
    this.#taker = Promise.withResolvers<Buffer>()
    return await this.#taker.promise
  }

  /** Gives the frame back, as the next one. */
  unread(content: Buffer): void {
    this.#waiting.unshift(content)
    this.#waitingBytes += content.byteLength
  }

  /** Sends a whole frame. Ends the connection when the other side does not read. */
  send(bytes: Buffer): void {
    if (this.#end) return
    this.#queuedBytes += bytes.byteLength
    if (this.#queuedBytes > this.#maxQueuedBytes) {
      this.destroy(new LinkRefusal(408, `The peer does not read: ${this.#queuedBytes} bytes wait to be sent`))
      return
    }
    this.#connection.write(bytes, () => {
      this.#queuedBytes -= bytes.byteLength
    })
  }
  sendJson(message: object): void {
    this.send(frame(Buffer.from(JSON.stringify(message))))
  }

  /** Ends the connection. What was sent before still goes out. */
  close(reason: Error): void {
    if (this.#end) return
    this.#waiting.length = 0
    this.#finish(reason)
    const late = setTimeout(() => this.#connection.destroy(), CLOSE_MS)
    this.#connection.on('close', () => clearTimeout(late))
    this.#connection.resume()
    this.#connection.end()
  }
  /** The same with a frame before it that says why, which the other side must not rely on. */
  refuse(reason: LinkRefusal): void {
    this.sendJson({ type: 'error', code: reason.code, message: reason.message })
    this.close(reason)
  }
  destroy(reason: Error): void {
    if (this.#end) return
    this.#waiting.length = 0
    this.#finish(reason)
    this.#connection.destroy()
  }

  #finish(reason: Error): void {
    this.#end = reason
    this.#taker?.reject(reason)
    this.#taker = undefined
    this.#ended.resolve(reason)
  }

  /** The other side ended it: what it sent before is still read. */
  #over(reason: Error): void {
    if (this.#end) return
    this.#finish(reason)
    this.#connection.destroy()
  }

  #receive(bytes: Uint8Array): void {
    if (this.#end || this.#problem) return
    try {
      for (const content of this.#reader.push(bytes)) this.#give(content)
    } catch (error) {
      this.#problem = error instanceof Error ? error : new Error(String(error))
      this.#connection.pause()
      this.#taker?.reject(this.#problem)
      this.#taker = undefined
    }
  }

  get #isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING_FRAMES || this.#waitingBytes >= MAX_WAITING_BYTES
  }
  #resume(): void {
    this.#isPaused = false
    this.#connection.resume()
  }

  #give(content: Buffer): void {
    const taker = this.#taker
    this.#taker = undefined
    if (taker) return taker.resolve(content)
    this.#waiting.push(content)
    this.#waitingBytes += content.byteLength
    if (this.#isFull && !this.#isPaused) {
      this.#isPaused = true
      this.#connection.pause()
    }
  }
}
const CLOSE_MS = 1_000
