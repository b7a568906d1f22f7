import type { Duplex } from 'node:stream'
import { readJson } from '../schema/nesting.ts'

export interface MessagePipeOptions {
  /** Bytes of a message of the other side. */
  readonly maxBytes: number
  onMessage(message: unknown): void
  /** The other side broke a rule; nothing is read any more. */
  onProblem(reason: string): void
}
/** Messages that are handled before others have their turn. */
const MAX_BURST = 64
/** Deeper than what crosses: every level of a value may be one of encoding, too. */
const MAX_DEPTH = 256
const NEWLINE = 0x0a

/** JSON messages over a pipe, a line each. What arrives is not trusted: it is limited in size, depth and pace. */
export class MessagePipe {
  readonly #stream: Duplex
  readonly #options: MessagePipeOptions
  #pieces: Buffer[] = []
  #bytes = 0
  #lines: Buffer[] = []
  #isWaiting = false
  #hasEnded = false

  constructor(stream: Duplex, options: MessagePipeOptions) {
    this.#stream = stream
    this.#options = options
    stream.on('data', (chunk: Buffer) => this.#read(chunk))
    stream.on('close', () => {
      this.#hasEnded = true
    })
  }

  /** Bytes that the other side has not read. */
  get unread(): number {
    return this.#stream.writableLength
  }

  send(message: object): void {
    if (!this.#hasEnded && this.#stream.writable) this.#stream.write(`${JSON.stringify(message)}\n`)
  }

  #read(chunk: Buffer): void {
    let rest = chunk
    for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE)) {
      this.#pieces.push(rest.subarray(0, at))
      if (!this.#count(at)) return
      this.#lines.push(Buffer.concat(this.#pieces))
      this.#pieces = []
      this.#bytes = 0
      rest = rest.subarray(at + 1)
    }
    this.#pieces.push(rest)
    if (this.#count(rest.length) && !this.#isWaiting) this.#deliver()
  }

  #count(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#bytes <= this.#options.maxBytes) return !this.#hasEnded
    this.#fail(`it sent a message of more than ${this.#options.maxBytes} bytes`)
    return false
  }

  #deliver(): void {
    this.#isWaiting = false
    for (const line of this.#lines.splice(0, MAX_BURST)) {
      if (this.#hasEnded) return
      let message: unknown
      try {
        message = readJson(line.toString('utf8'), MAX_DEPTH)
      } catch {
        return this.#fail('it sent a message that is no JSON')
      }
      this.#options.onMessage(message)
    }
    if (this.#lines.length === 0) {
      this.#stream.resume()
      return
    }
    this.#isWaiting = true
    // Not read meanwhile, so that the other side waits and not this one.
    this.#stream.pause()
    setImmediate(() => this.#deliver())
  }

  #fail(reason: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#pieces = []
    this.#lines = []
    this.#stream.destroy()
    this.#options.onProblem(reason)
  }
}
