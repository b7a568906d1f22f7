import { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import type { EventStream, ServerSentEvent } from './route.ts'

export function encodeEvent(event: ServerSentEvent): string {
  let head = ''
  if (event.id !== undefined) head += `id: ${event.id.replace(/[\r\n\0]/g, ' ')}\n`
  if (event.event !== undefined) head += `event: ${event.event.replace(/[\r\n]/g, ' ')}\n`
  const { data } = event
  // A block without data is no event for its reader: it only says where the reader stands.
  if (data === '' && event.event === undefined && event.id !== undefined) return `${head}\n`
  if (!data.includes('\n') && !data.includes('\r')) return `${head}data: ${data}\n\n`
  return `${head}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`
}

/**
 * Writes a comment to every quiet stream from one timer, so that proxies and clients see that the stream lives. It
 * runs twice in the pause
 * that is configured: who was quiet at the first run hears something at the second, and so never later than after
 * the whole pause.
 */
export class KeepAlive {
  #streams = new Set<EventStreamBody>()
  #timer: NodeJS.Timeout | undefined
  #ms: () => number
  constructor(ms: () => number) {
    this.#ms = ms
  }

  add(stream: EventStreamBody): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => {
      for (const one of this.#streams) one.keepAlive()
    }, this.#ms() / 2).unref()
  }
  delete(stream: EventStreamBody): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0 || this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
  /** Ends the streams whose readers may no longer read. */
  sweep(): void {
    for (const one of this.#streams) one.check()
  }
  /** Ends the streams with a last event: the endless ones, or all. */
  end(which: 'feeds' | 'all'): void {
    for (const one of this.#streams) if (which === 'all' || one.feed) one.close()
  }
  get size(): number {
    return this.#streams.size
  }
}

export interface EventStreamOptions {
  readonly events: EventStream
  readonly keepAlive: KeepAlive
  /** Whether who opened the stream may still read it; asked at every keep-alive. */
  readonly allowed: () => boolean
  /** The last event when the source throws; `undefined` when nobody is to be told. */
  readonly failed: (error: unknown) => ServerSentEvent | undefined
  /** The last event when the stream is ended from our side. */
  readonly last: () => ServerSentEvent
  readonly feed: boolean
  /** Runs once, when the source has ended and nothing more will be written. */
  readonly ended: () => void
}

/** Flushed at once above this size, so that a source that never waits cannot pile up text or starve the loop. */
const burstChars = 16_384

/**
 * The body of an event stream. It writes to the response itself instead of being a Readable that is piped: the head
 * must go out before
 * the first event, and a Readable would copy every event once more. The source is pulled only while the client takes
 * what was written;
 * the events of one turn of the loop leave as one chunk.
 */
export class EventStreamBody {
  #options: EventStreamOptions
  #iterator: AsyncIterator<ServerSentEvent>
  #out: Writable | undefined
  #pending = ''
  #flushing: NodeJS.Immediate | undefined
  #wake: (() => void) | undefined
  #left = false
  #quiet = false
  #returned: Promise<void> | undefined
  /** Asked for before the head went out. */
  #next: Promise<IteratorResult<ServerSentEvent>> | undefined

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#iterator = options.events[Symbol.asyncIterator]()
  }

  /**
   * Waits for the first event that settles the status, at most so long. Rejects with what the source throws before
   * it.
   */
  async begin(ms: number): Promise<void> {
    const late = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => late.resolve(undefined), ms)
    try {
      while (!this.#left) {
        const next = this.#iterator.next()
        // Whoever reads on hears of its failure.
        next.catch(() => undefined)
        this.#next = next
        const step = await Promise.race([next, late.promise])
        if (!step || step.done === true || !step.value.provisional) return
        this.#next = undefined
        this.#pending += encodeEvent(step.value)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Called once, with the response, after its head was written. */
  pipe(out: Writable): void {
    this.#out = out
    if ('flushHeaders' in out && typeof out.flushHeaders === 'function') out.flushHeaders()
    out.on('close', () => this.#leave())
    // A broken connection is a close as well, and that is where it is handled.
    out.on('error', () => this.#leave())
    out.on('drain', () => this.#resume())
    if (out.destroyed) this.#leave()
    this.#options.keepAlive.add(this)
    this.#flush()
    void this.#pump(out)
  }

  get feed(): boolean {
    return this.#options.feed
  }

  /** Instead of `pipe`, when nobody will read: the source may clean up. */
  cancel(): void {
    this.#leave()
    void this.#returned?.then(() => this.#options.ended())
  }

  /** Ends the stream from our side with one last event, whatever its source is doing. */
  close(): void {
    if (this.#left) return
    this.#append(encodeEvent(this.#options.last()))
    this.#finish()
    this.#leave()
  }

  /** Ends it without a word when its reader may no longer read. */
  check(): void {
    if (this.#left || this.#options.allowed()) return
    this.#leave()
    this.#out?.destroy()
  }

  keepAlive(): void {
    this.check()
    if (this.#quiet && !this.#left && this.#out && !this.#out.writableNeedDrain) this.#out.write(': keep-alive\n\n')
    this.#quiet = !this.#quiet
  }

  async #pump(out: Writable): Promise<void> {
    try {
      for (;;) {
        const step = await (this.#next ?? this.#iterator.next())
        this.#next = undefined
        if (this.#left || step.done === true) break
        this.#append(encodeEvent(step.value))
        if (this.#pending.length > burstChars) {
          this.#flush()
          await new Promise((resolve) => setImmediate(resolve))
        }
        while (!this.#left && out.writableNeedDrain)
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        if (this.#left) break
      }
    } catch (error) {
      const last = this.#left ? undefined : this.#options.failed(error)
      if (last) this.#append(encodeEvent(last))
    }
    this.#finish()
    this.#options.keepAlive.delete(this)
    await this.#returned
    this.#options.ended()
  }

  #append(text: string): void {
    this.#pending += text
    this.#flushing ??= setImmediate(() => this.#flush())
  }

  #flush(): void {
    if (this.#flushing) clearImmediate(this.#flushing)
    this.#flushing = undefined
    if (this.#pending === '' || !this.#out || this.#out.destroyed || this.#out.writableEnded) return
    const text = this.#pending
    this.#pending = ''
    this.#quiet = false
    writeChunk(this.#out, text)
  }

  #resume(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  #finish(): void {
    this.#flush()
    if (this.#out && !this.#out.destroyed && !this.#out.writableEnded) this.#out.end()
  }

  /** The client is gone, or was sent away: the source hears of it at once and may clean up. */
  #leave(): void {
    if (this.#left) return
    this.#left = true
    this.#resume()
    this.#returned = (async () => {
      try {
        await this.#iterator.return?.()
      } catch (error) {
        this.#options.failed(error)
      }
    })()
  }
}

/**
 * Writes to a response whose head is out. A reader that keeps up gets the chunk of the transfer encoding as one
 * write to the socket: Node
 * makes four of it, and with a thousand streams that is what most of the processor's time goes to. Whatever is not
 * exactly this case
 * takes the usual way, which is also the one that knows of a reader that is behind.
 */
function writeChunk(out: Writable, text: string): void {
  const socket = out instanceof ServerResponse && out.chunkedEncoding && out.headersSent ? out.socket : null
  if (!socket || socket.writableLength > 0 || socket.writableCorked > 0 || socket.destroyed) out.write(text)
  else socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}
