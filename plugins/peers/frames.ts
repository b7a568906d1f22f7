import { isSame, LinkRefusal, mac } from './mac.ts'

/** Bytes of one frame before the other side has proven anything, and after. */
export const OPEN_BYTES = 65_536
export const LINK_BYTES = 16 * 1024 * 1024
const LENGTH_BYTES = 4
/** The code follows the body as hexadecimal digits; the length covers both (API facts, appendix C). */
const MAC_CHARS = 64

/** Makes frames of one direction, or reads them. */
export interface FrameCodec {
  /** A whole frame. Throws for a body that no one would take. */
  seal(body: Uint8Array): Buffer
  /** The body of a frame. Throws when the frame is not the next one of this link, or was changed. */
  open(content: Buffer): Buffer
}

/** One direction of a link: numbers its frames, so that none can be left out, repeated or put elsewhere. */
export class FrameSeal implements FrameCodec {
  readonly #key: Buffer
  readonly #direction: string
  #counter = 0n
  constructor(key: Buffer, direction: 'initiator' | 'responder') {
    this.#key = key
    this.#direction = direction
  }

  seal(body: Uint8Array): Buffer {
    if (body.byteLength + MAC_CHARS > LINK_BYTES) throw new LinkRefusal(400, `A frame has at most ${LINK_BYTES} bytes`)
    return frame(Buffer.concat([body, Buffer.from(this.#next(body).toString('hex'), 'latin1')]))
  }

  open(content: Buffer): Buffer {
    const body = content.subarray(0, Math.max(0, content.byteLength - MAC_CHARS))
    const given = content.subarray(body.byteLength).toString('latin1')
    if (!/^[0-9a-f]{64}$/.test(given) || !isSame(this.#expected(body), Buffer.from(given, 'hex')))
      throw new LinkRefusal(403, 'A frame is not what the peer sent next')
    this.#counter++
    return body
  }

  #next(body: Uint8Array): Buffer {
    const code = this.#expected(body)
    this.#counter++
    return code
  }
  #expected(body: Uint8Array): Buffer {
    const number = Buffer.allocUnsafe(8)
    number.writeBigUInt64BE(this.#counter)
    return mac(this.#key, 'frame', this.#direction, number, body)
  }
}

export function frame(content: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(LENGTH_BYTES + content.byteLength)
  out.writeUInt32BE(content.byteLength)
  out.set(content, LENGTH_BYTES)
  return out
}

/** Splits a byte stream into frame contents. Buffers at most one frame; refuses a longer one by its length. */
export class FrameReader {
  #maxBytes: number
  #chunks: Buffer[] = []
  #size = 0
  /** `maxBytes` may be raised once, when the handshake is done. */
  constructor(maxBytes = OPEN_BYTES) {
    this.#maxBytes = maxBytes
  }

  raise(maxBytes: number): void {
    this.#maxBytes = maxBytes
  }

  /** The contents of the frames that are whole now. Throws for one that is too long or empty. */
  push(chunk: Uint8Array): readonly Buffer[] {
    this.#chunks.push(Buffer.from(chunk))
    this.#size += chunk.byteLength
    const contents: Buffer[] = []
    for (;;) {
      if (this.#size < LENGTH_BYTES) break
      const length = this.#first(LENGTH_BYTES).readUInt32BE(0)
      if (length === 0) throw new LinkRefusal(400, 'A frame is empty')
      if (length > this.#maxBytes)
        throw new LinkRefusal(400, `A frame of ${length} bytes is longer than ${this.#maxBytes}`)
      // Put together once it is whole: a long frame in small pieces would be copied with each of them.
      if (this.#size < LENGTH_BYTES + length) break
      const whole = this.#first(LENGTH_BYTES + length)
      contents.push(Buffer.from(whole.subarray(LENGTH_BYTES, LENGTH_BYTES + length)))
      const rest = whole.subarray(LENGTH_BYTES + length)
      this.#chunks[0] = rest
      this.#size -= LENGTH_BYTES + length
    }
    return contents
  }

  /** The first chunk, with at least so many bytes in it. */
  #first(bytes: number): Buffer {
    let first = this.#chunks[0] ?? Buffer.alloc(0)
    if (first.byteLength < bytes) this.#chunks = [(first = Buffer.concat(this.#chunks))]
    return first
  }
}
