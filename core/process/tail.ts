/** The end of a byte stream: beyond `maxBytes` the oldest bytes are dropped. */
export class Tail {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
  #bytes = 0
  #dropped = 0
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    // Compact now and then, so that small chunks do not each keep a large buffer alive.
    if (this.#bytes > this.#maxBytes * 2 || this.#chunks.length > 1024) this.#trim()
  }

  /** The output since the last `take`, and how many bytes of it were dropped. */
  take(): { readonly text: string; readonly droppedBytes: number } {
    this.#trim()
    const bytes = this.#chunks[0] ?? Buffer.alloc(0)
    const droppedBytes = this.#dropped
    this.#chunks = []
    this.#bytes = 0
    this.#dropped = 0
    return { text: bytes.toString('utf8', droppedBytes > 0 ? startOfCharacter(bytes) : 0), droppedBytes }
  }

  #trim(): void {
    const all = Buffer.concat(this.#chunks, this.#bytes)
    const kept = all.byteLength > this.#maxBytes ? Buffer.from(all.subarray(all.byteLength - this.#maxBytes)) : all
    this.#dropped += all.byteLength - kept.byteLength
    this.#chunks = [kept]
    this.#bytes = kept.byteLength
  }
}

/** Skips the rest of a UTF-8 character that was cut. */
function startOfCharacter(bytes: Buffer): number {
  let at = 0
  while (at < 4 && at < bytes.byteLength && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++
  return at
}
