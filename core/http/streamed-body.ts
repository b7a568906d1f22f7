import type { Writable } from 'node:stream'

/** A body that is written while its source goes on. It has one reader, and is ended by its source, reader or server. */
export abstract class StreamedBody {
  /** Never ends by itself: the server closes it instead of waiting for it. */
  abstract readonly feed: boolean
  /** Called once, after the head of the response was written. */
  abstract pipe(out: Writable): void
  /** Replaces `pipe` when nobody will read: the source may clean up. */
  abstract cancel(): void
  /** Ends the stream, whatever its source is doing. */
  abstract close(): void
  /** Ends the stream if its reader may no longer read it. */
  abstract check(): void
  /** Called at intervals while the stream is open. */
  abstract keepAlive(): void
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
