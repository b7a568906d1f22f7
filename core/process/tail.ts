/** The end of a stream of bytes: of more than `most`, the beginning is dropped. */
export class Tail {
  readonly #most: number
  #chunks: Buffer[] = []
  #bytes = 0
  #dropped = 0
  constructor(mostBytes: number) {
    this.#most = mostBytes
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    // Copied together now and then, so that many small pieces do not each keep a large buffer alive.
    if (this.#bytes > this.#most * 2 || this.#chunks.length > 1024) this.#trim()
  }

  /** What came since the last `take`, and how many bytes of it were dropped. */
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
    const kept = all.byteLength > this.#most ? Buffer.from(all.subarray(all.byteLength - this.#most)) : all
    this.#dropped += all.byteLength - kept.byteLength
    this.#chunks = [kept]
    this.#bytes = kept.byteLength
  }
}

/** The first byte that does not continue a character that was cut. */
function startOfCharacter(bytes: Buffer): number {
  let at = 0
  while (at < 4 && at < bytes.byteLength && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++
  return at
}
