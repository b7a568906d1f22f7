import { crc32 } from 'node:zlib'
import { EventStreamCodec } from '@smithy/eventstream-codec'

/** A frame larger than this is a fault of the other side; AWS allows 16 MiB. */
const MAX_FRAME = 16_777_216
const PRELUDE = 12
const CHECKSUM = 4

export interface Frame {
  /** Those that are text, by their names; the others tell nothing that is of use here. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string
}

/**
 * Cuts bytes into frames of `application/vnd.amazon.eventstream`, wherever the network cut them; the codec reads
 * each. A length is believed
 * once the checksum of the prelude is right. Throws what `broken` makes.
 */
export class FrameReader {
  readonly #broken: (what: string) => Error
  #rest: Buffer = Buffer.alloc(0)
  /** The pieces of a frame that is not there in whole, so that a long one is not copied with each of them. */
  #pieces: Buffer[] = []
  #missing = 0

  constructor(broken: (what: string) => Error) {
    this.#broken = broken
  }

  /** Whether a frame was begun and not ended. */
  get open(): boolean {
    return this.#rest.length > 0 || this.#pieces.length > 0
  }

  feed(chunk: Uint8Array, onFrame: (frame: Frame) => void): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (this.#missing > bytes.length) {
      this.#pieces.push(bytes)
      this.#missing -= bytes.length
      return
    }
    let all =
      this.#pieces.length > 0 || this.#rest.length > 0 ? Buffer.concat([...this.#pieces, this.#rest, bytes]) : bytes
    this.#pieces = []
    this.#missing = 0
    while (all.length >= PRELUDE) {
      const total = all.readUInt32BE(0)
      if (crc32(all.subarray(0, 8)) !== all.readUInt32BE(8))
        throw this.#broken('sent a frame whose beginning is damaged')
      if (total > MAX_FRAME || total < PRELUDE + CHECKSUM) throw this.#broken(`sent a frame of ${total} bytes`)
      if (all.length < total) break
      onFrame(this.#frame(all.subarray(0, total)))
      all = all.subarray(total)
    }
    if (all.length >= PRELUDE) {
      this.#missing = all.readUInt32BE(0) - all.length
      this.#pieces = [all]
      this.#rest = Buffer.alloc(0)
    } else this.#rest = all
  }

  #frame(bytes: Buffer): Frame {
    try {
      const { headers, body } = codec.decode(bytes)
      const texts: Record<string, string> = {}
      for (const [name, header] of Object.entries(headers)) if (header.type === 'string') texts[name] = header.value
      return { headers: texts, payload: toText(body) }
    } catch (cause) {
      throw this.#broken(`sent a frame that is damaged: ${cause instanceof Error ? cause.message : String(cause)}`)
    }
  }
}

const toText = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string' ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
const codec = new EventStreamCodec(toText, (text) => Buffer.from(text))
