import { crc32 } from 'node:zlib'

/** A frame larger than this is a fault of the other side; AWS allows 16 MiB. */
const MOST_FRAME = 16_777_216
const PRELUDE = 12
const CHECKSUM = 4

export interface Frame {
  /** Those that are text, by their names; the others tell nothing that is of use here. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Buffer
}

/**
 * Cuts bytes into frames of `application/vnd.amazon.eventstream`, wherever the network cut them, and checks both checksums of each. Throws
 * what `broken` makes. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html and the Smithy specification
 * of event streams.
 */
export class FrameReader {
  readonly #broken: (what: string) => Error
  #rest: Buffer = Buffer.alloc(0)
  /** The pieces of a frame that is not there in whole, so that a long one is not copied with each of them. */
  #pieces: Buffer[] = []
  #missing = 0
  /** The headers of the frame before: nearly always the next one has the same. */
  #raw: Buffer = Buffer.alloc(0)
  #headers: Readonly<Record<string, string>> = {}

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
      if (total > MOST_FRAME || total < PRELUDE + CHECKSUM) throw this.#broken(`sent a frame of ${total} bytes`)
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
    const end = bytes.length - CHECKSUM
    if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw this.#broken('sent a frame that is damaged')
    const from = PRELUDE + bytes.readUInt32BE(4)
    if (from > end) throw this.#broken('sent a frame whose headers do not fit into it')
    const raw = bytes.subarray(PRELUDE, from)
    if (!raw.equals(this.#raw)) {
      this.#headers = this.#read(raw)
      this.#raw = raw
    }
    return { headers: this.#headers, payload: bytes.subarray(from, end) }
  }

  #read(raw: Buffer): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {}
    let at = 0
    while (at < raw.length) {
      const size = raw[at] ?? 0
      const name = raw.toString('utf8', at + 1, at + 1 + size)
      at += 1 + size
      const kind = raw[at++]
      // Lengths of the kinds of values: true, false, byte, short, integer, long, bytes, text, time, UUID.
      let length = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16][kind ?? -1]
      if (length === undefined) {
        if ((kind !== 6 && kind !== 7) || at + 2 > raw.length)
          throw this.#broken('sent a frame with a header of an unknown kind')
        length = raw.readUInt16BE(at)
        at += 2
      }
      if (at + length > raw.length) throw this.#broken('sent a frame with a header that has no end')
      if (kind === 7) headers[name] = raw.toString('utf8', at, at + length)
      at += length
    }
    return headers
  }
}
