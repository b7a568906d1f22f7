import type { Writable } from 'node:stream'
import { StreamedBody } from './streamed-body.ts'
import type { StreamedBodyOptions } from './streamed-body.ts'

export interface ByteStreamOptions extends StreamedBodyOptions {
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * The body of a `reply()` whose bytes come one after the other. A stream that fails or is closed before its end breaks
 * the connection, so that nobody takes it for complete; a feed, which is never complete, ends.
 */
export class ByteStreamBody extends StreamedBody<Uint8Array> {
  readonly #options: ByteStreamOptions

  constructor(options: ByteStreamOptions) {
    super(options.bytes, options)
    this.#options = options
  }

  close(): void {
    if (this.left) return
    if (this.feed) this.out?.end()
    else this.out?.destroy()
    this.leave()
  }
  keepAlive(): void {
    this.check()
  }

  protected async pump(out: Writable): Promise<void> {
    let complete = false
    try {
      while (!this.left) {
        const step = await this.iterator.next()
        complete = step.done === true
        if (this.left || step.done === true) break
        out.write(step.value)
        if (out.writableNeedDrain) await this.drained(out)
      }
    } catch (error) {
      if (!this.left) this.#options.failed(error)
    }
    if (complete && !out.destroyed && !out.writableEnded) out.end()
    else if (!this.left) out.destroy()
  }
}
