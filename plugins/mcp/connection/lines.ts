const NEWLINE = 10

/** Splits the output of a program into lines. A line of more than `maxBytes` is reported once and ends the reading. */
export class LineReader {
  readonly #maxBytes: number
  readonly #onLine: (line: string) => void
  readonly #onTooLong: () => void
  #held: Uint8Array[] = []
  #bytes = 0
  #ended = false

  constructor(options: {
    readonly maxBytes: number
    readonly onLine: (line: string) => void
    readonly onTooLong: () => void
  }) {
    this.#maxBytes = options.maxBytes
    this.#onLine = options.onLine
    this.#onTooLong = options.onTooLong
  }

  add(chunk: Uint8Array): void {
    let from = 0
    while (!this.#ended) {
      const end = chunk.indexOf(NEWLINE, from)
      if (end === -1) break
      const line = this.#take(chunk.subarray(from, end))
      if (line === undefined) return
      from = end + 1
      if (line.trim() !== '') this.#onLine(line)
    }
    if (this.#ended || from === chunk.length) return
    this.#bytes += chunk.length - from
    if (this.#bytes > this.#maxBytes) return this.#tooLong()
    // A copy: the chunk belongs to the stream.
    this.#held.push(chunk.slice(from))
  }

  /** Nothing is read any more. */
  end(): void {
    this.#ended = true
    this.#held = []
    this.#bytes = 0
  }

  #take(rest: Uint8Array): string | undefined {
    if (this.#bytes + rest.length > this.#maxBytes) {
      this.#tooLong()
      return undefined
    }
    const bytes = this.#held.length === 0 ? rest : Buffer.concat([...this.#held, rest])
    this.#held = []
    this.#bytes = 0
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  }
  #tooLong(): void {
    this.end()
    this.#onTooLong()
  }
}
