import type { Writable } from 'node:stream'
import { StreamedBody } from './streamed-body.ts'
import type { KeepAlive } from './streamed-body.ts'

export interface ByteStreamOptions {
  readonly bytes: AsyncIterable<Uint8Array>
  readonly keepAlive: KeepAlive
  /** Whether the client may still read the stream; checked at every keep-alive. */
  readonly allowed: () => boolean
  /** Called when the source throws. */
  readonly failed: (error: unknown) => void
  readonly feed: boolean
  /** Called once, when the source has ended and nothing more will be written. */
  readonly ended: () => void
}

/**
 * The body of a `reply()` whose bytes come one after the other. The source is pulled only while the client reads. A
 * stream that fails or is closed before its end breaks the connection, so that nobody takes it for complete; a feed,
 * which is never complete, ends.
 */
export class ByteStreamBody extends StreamedBody {
  readonly #options: ByteStreamOptions
  readonly #iterator: AsyncIterator<Uint8Array>
  #out: Writable | undefined
  #wake: (() => void) | undefined
  #left = false
  #returned: Promise<void> | undefined

  constructor(options: ByteStreamOptions) {
    super()
    this.#options = options
    this.#iterator = options.bytes[Symbol.asyncIterator]()
  }
  get feed(): boolean {
    return this.#options.feed
  }

  pipe(out: Writable): void {
    this.#out = out
    if ('flushHeaders' in out && typeof out.flushHeaders === 'function') out.flushHeaders()
    out.on('close', () => this.#leave())
    // A broken connection also emits `close`, where it is handled.
    out.on('error', () => this.#leave())
    out.on('drain', () => this.#resume())
    if (out.destroyed) this.#leave()
    this.#options.keepAlive.add(this)
    void this.#pump(out)
  }
  cancel(): void {
    this.#leave()
    void this.#returned?.then(() => this.#options.ended())
  }
  close(): void {
    if (this.#left) return
    if (this.feed) this.#out?.end()
    else this.#out?.destroy()
    this.#leave()
  }
  check(): void {
    if (this.#left || this.#options.allowed()) return
    this.#leave()
    this.#out?.destroy()
  }
  keepAlive(): void {
    this.check()
  }

  async #pump(out: Writable): Promise<void> {
    let complete = false
    try {
      while (!this.#left) {
        const step = await this.#iterator.next()
        complete = step.done === true
        if (this.#left || step.done === true) break
        out.write(step.value)
        while (!this.#left && out.writableNeedDrain)
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } catch (error) {
      if (!this.#left) this.#options.failed(error)
    }
    if (complete && !out.destroyed && !out.writableEnded) out.end()
    else if (!this.#left) out.destroy()
    this.#options.keepAlive.delete(this)
    await this.#returned
    this.#options.ended()
  }

  #resume(): void {
    this.#wake?.()
    this.#wake = undefined
  }
  /** The client has left or was disconnected: the source is told at once and may clean up. */
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
