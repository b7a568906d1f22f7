import type { Writable } from 'node:stream'

export interface StreamedBodyOptions {
  readonly keepAlive: KeepAlive
  /** Whether the client may still read the stream; checked at every keep-alive. */
  readonly allowed: () => boolean
  /** Called when the source throws. */
  readonly failed: (error: unknown) => unknown
  /** Never ends by itself: the server closes it instead of waiting for it. */
  readonly feed: boolean
  /** Called once, when the source has ended and nothing more will be written. */
  readonly ended: () => void
}

/**
 * A body that is written while its source goes on. It has one reader, and is ended by its source, reader or server. The
 * source is pulled only while the client reads.
 */
export abstract class StreamedBody<T = unknown> {
  protected readonly iterator: AsyncIterator<T>
  protected out: Writable | undefined
  /** Its reader has left, or it was ended. */
  protected left = false
  readonly #options: StreamedBodyOptions
  #wake: (() => void) | undefined
  #returned: Promise<void> | undefined

  constructor(source: AsyncIterable<T>, options: StreamedBodyOptions) {
    this.#options = options
    this.iterator = source[Symbol.asyncIterator]()
  }

  get feed(): boolean {
    return this.#options.feed
  }
  /** Ends the stream, whatever its source is doing. */
  abstract close(): void
  /** Called at intervals while the stream is open. */
  abstract keepAlive(): void
  /** Writes what the source yields, to its end. */
  protected abstract pump(out: Writable): Promise<void>

  /** Called once, after the head of the response was written. */
  pipe(out: Writable): void {
    this.out = out
    if ('flushHeaders' in out && typeof out.flushHeaders === 'function') out.flushHeaders()
    out.on('close', () => this.leave())
    // A broken connection also emits `close`, where it is handled.
    out.on('error', () => this.leave())
    out.on('drain', () => this.#resume())
    if (out.destroyed) this.leave()
    this.#options.keepAlive.add(this)
    void this.#run(out)
  }
  /** Replaces `pipe` when nobody will read: the source may clean up. */
  cancel(): void {
    this.leave()
    void this.#returned?.then(() => this.#options.ended())
  }
  /** Ends the stream if its reader may no longer read it. */
  check(): void {
    if (this.left || this.#options.allowed()) return
    this.leave()
    this.out?.destroy()
  }

  /** Settles when the reader takes more, or has left. */
  protected async drained(out: Writable): Promise<void> {
    while (!this.left && out.writableNeedDrain)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
  }
  /** The client has left or was disconnected: the source is told at once and may clean up. */
  protected leave(): void {
    if (this.left) return
    this.left = true
    this.#resume()
    this.#returned = (async () => {
      try {
        await this.iterator.return?.()
      } catch (error) {
        this.#options.failed(error)
      }
    })()
  }

  async #run(out: Writable): Promise<void> {
    await this.pump(out)
    this.#options.keepAlive.delete(this)
    await this.#returned
    this.#options.ended()
  }
  #resume(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}

/**
 * Serves every open stream from one timer, so that proxies and clients keep the connection. The timer runs twice per
 * configured interval, so that no stream is idle for longer than the interval.
 */
export class KeepAlive {
  #streams = new Set<StreamedBody>()
  #timer: NodeJS.Timeout | undefined
  #ms: () => number
  constructor(ms: () => number) {
    this.#ms = ms
  }

  add(stream: StreamedBody): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => {
      for (const one of this.#streams) one.keepAlive()
    }, this.#ms() / 2).unref()
  }
  delete(stream: StreamedBody): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0 || this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
  /** Ends the streams whose readers may no longer read. */
  sweep(): void {
    for (const one of this.#streams) one.check()
  }
  /** Ends the streams: only feeds, or all. */
  end(which: 'feeds' | 'all'): void {
    for (const one of this.#streams) if (which === 'all' || one.feed) one.close()
  }
  get size(): number {
    return this.#streams.size
  }
}
