import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { EventStream, ServerSentEvent } from './route.ts'
import { StreamedBody } from './streamed-body.ts'
import type { StreamedBodyOptions } from './streamed-body.ts'
import { http } from '../net/node-http.ts'

export function encodeEvent(event: ServerSentEvent): string {
  let head = ''
  if (event.id !== undefined) head += `id: ${event.id.replace(/[\r\n\0]/g, ' ')}\n`
  if (event.event !== undefined) head += `event: ${event.event.replace(/[\r\n]/g, ' ')}\n`
  const { data } = event
  // A block without data is not an event for its reader: it only sets the last event id.
  if (data === '' && event.event === undefined && event.id !== undefined) return `${head}\n`
  if (!data.includes('\n') && !data.includes('\r')) return `${head}data: ${data}\n\n`
  return `${head}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`
}

export interface EventStreamOptions extends StreamedBodyOptions {
  readonly events: EventStream
  /** The last event when the source throws; `undefined` to send none. */
  readonly failed: (error: unknown) => ServerSentEvent | undefined
  /** The last event when the server ends the stream. */
  readonly last: () => ServerSentEvent
}

/** Flushed at once above this size, so that a source that never waits cannot use up memory or block the event loop. */
const burstChars = 16_384

/**
 * The body of an event stream. It writes to the response itself instead of being a piped Readable: the head must be
 * sent before the first event, and a Readable would copy every event once more. The source is pulled only while the
 * client reads, and the events of one turn of the event loop are sent as one chunk.
 */
export class EventStreamBody extends StreamedBody<ServerSentEvent> {
  readonly #options: EventStreamOptions
  #pending = ''
  #flushing: NodeJS.Immediate | undefined
  #quiet = false
  /** The socket, corked while it holds the head. */
  #headed: Socket | undefined
  /** Requested before the head was sent. */
  #next: Promise<IteratorResult<ServerSentEvent>> | undefined

  constructor(options: EventStreamOptions) {
    super(options.events, options)
    this.#options = options
  }

  /** Waits, up to the limit, for the first event that decides the status. Rejects if the source throws before it. */
  async begin(ms: number): Promise<void> {
    const late = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => late.resolve(undefined), ms)
    try {
      while (!this.left) {
        const next = this.iterator.next()
        // The reader of the stream handles its failure.
        next.catch(() => undefined)
        this.#next = next
        const step = await Promise.race([next, late.promise])
        if (!step || step.done === true) return
        this.#next = undefined
        this.#pending += encodeEvent(step.value)
        if (!step.value.provisional) return
      }
    } finally {
      clearTimeout(timer)
    }
  }

  override pipe(out: Writable): void {
    // The head waits for the events of this turn of the loop, and goes with them in one write to the socket.
    this.#headed = out instanceof http.ServerResponse ? (out.socket ?? undefined) : undefined
    this.#headed?.cork()
    super.pipe(out)
    this.#append('')
  }

  /** With one last event. */
  close(): void {
    if (this.left) return
    this.#append(encodeEvent(this.#options.last()))
    this.#finish()
    this.leave()
  }

  /** Writes a comment when the stream was idle. */
  keepAlive(): void {
    this.check()
    if (this.#quiet && !this.left && this.out && !this.out.writableNeedDrain) this.out.write(': keep-alive\n\n')
    this.#quiet = !this.#quiet
  }

  protected async pump(out: Writable): Promise<void> {
    try {
      for (;;) {
        const step = await (this.#next ?? this.iterator.next())
        this.#next = undefined
        if (this.left || step.done === true) break
        this.#append(encodeEvent(step.value))
        if (this.#pending.length > burstChars) {
          this.#flush()
          await new Promise((resolve) => setImmediate(resolve))
        }
        if (out.writableNeedDrain) await this.drained(out)
        if (this.left) break
      }
    } catch (error) {
      const last = this.left ? undefined : this.#options.failed(error)
      if (last) this.#append(encodeEvent(last))
    }
    this.#finish()
  }

  #append(text: string): void {
    this.#pending += text
    this.#flushing ??= setImmediate(() => this.#flush())
  }

  #flush(socket = this.out && freeSocket(this.out, this.#headed !== undefined)): void {
    if (this.#flushing) clearImmediate(this.#flushing)
    this.#flushing = undefined
    if (this.#pending !== '' && this.out && !this.out.destroyed && !this.out.writableEnded) {
      const text = this.#pending
      this.#pending = ''
      this.#quiet = false
      writeChunk(this.out, socket, text)
    }
    this.#headed?.uncork()
    this.#headed = undefined
  }

  /** The last events and the end of the body are one write to the socket. */
  #finish(): void {
    const { out } = this
    if (!out || out.destroyed || out.writableEnded) return
    const socket = freeSocket(out, this.#headed !== undefined)
    socket?.cork()
    this.#flush(socket)
    out.end()
    socket?.uncork()
  }
}

/**
 * The socket of a response whose head was sent, while the client keeps up, or `isHeaded`: while it holds no more than
 * the head. Each chunk of the chunked encoding is then one write to it: Node makes four, which with a thousand streams
 * takes most of the processor time.
 */
function freeSocket(out: Writable, isHeaded: boolean): Socket | undefined {
  const socket = out instanceof http.ServerResponse && out.chunkedEncoding && out.headersSent ? out.socket : null
  if (!socket || socket.destroyed) return undefined
  return isHeaded || (socket.writableLength === 0 && socket.writableCorked === 0) ? socket : undefined
}
/** Without a free socket `response.write` handles backpressure. */
function writeChunk(out: Writable, socket: Socket | undefined, text: string): void {
  if (socket) socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  else out.write(text)
}
