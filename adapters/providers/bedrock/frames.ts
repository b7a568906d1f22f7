import { crc32 } from 'node:zlib'
import { EventStreamCodec } from '@smithy/eventstream-codec'

/** A larger frame is malformed: AWS allows 16 MiB. */
const MAX_FRAME = 16_777_216
const PRELUDE = 12
const CHECKSUM = 4

export interface Frame {
  /** The headers whose values are text, by name. The others are not used. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string
}

/**
 * Splits chunks of bytes into frames of `application/vnd.amazon.eventstream`. The checksum of the prelude is verified
 * before its length is used; the codec verifies the rest. Throws the errors that `toError` makes.
 */
export class FrameReader {
  readonly #toError: (what: string) => Error
  #rest: Buffer = Buffer.alloc(0)
  /** The pieces of an incomplete frame. Joined once, so that a long frame is not copied with each piece. */
  #pieces: Buffer[] = []
  #missing = 0

  constructor(toError: (what: string) => Error) {
    this.#toError = toError
  }

  /** Whether a frame is incomplete. */
  get hasPartialFrame(): boolean {
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
      if (crc32(all.subarray(0, 8)) !== all.readUInt32BE(8)) throw this.#toError('sent a frame with a damaged prelude')
      if (total > MAX_FRAME || total < PRELUDE + CHECKSUM) throw this.#toError(`sent a frame of ${total} bytes`)
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
      throw this.#toError(`sent a damaged frame: ${cause instanceof Error ? cause.message : String(cause)}`)
    }
  }
}

const toText = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string' ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
const codec = new EventStreamCodec(toText, (text) => Buffer.from(text))
