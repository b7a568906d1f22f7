import type { JSONRPCMessage } from '@modelcontextprotocol/server'

/** How long an answer may take and still go out as plain JSON. */
const MOMENT_MS = 20

/**
 * A request whose handler runs, and whose client has got nothing yet. When its answer is the first message about it, and
 * comes in a moment, it is all that the client gets; otherwise a stream has everything, in order.
 */
export class FirstAnswer {
  readonly #answer = Promise.withResolvers<JSONRPCMessage | undefined>()
  readonly #stream = Promise.withResolvers<void>()
  readonly #timer = setTimeout(() => this.needStream(), MOMENT_MS)
  #sent = this.#stream.promise
  #needsStream = false

  /** `undefined` when there has to be a stream. */
  get answer(): Promise<JSONRPCMessage | undefined> {
    return this.#answer.promise
  }
  /** Whether this answer is all that the client gets. */
  isAll(answer: JSONRPCMessage): boolean {
    if (this.#needsStream) return false
    clearTimeout(this.#timer)
    this.#answer.resolve(answer)
    return true
  }
  needStream(): void {
    this.#needsStream = true
    clearTimeout(this.#timer)
    this.#answer.resolve(undefined)
  }
  /** There is a stream, or there will be none. */
  streamed(): void {
    this.#stream.resolve()
  }
  /** Runs when there is a stream, after what was sent on it before. */
  onStream(send: () => void | Promise<void>): Promise<void> {
    this.needStream()
    const sent = this.#sent.then(send)
    this.#sent = sent.catch(() => undefined)
    return sent
  }
}
