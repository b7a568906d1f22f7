import type { SentMessage } from './message.ts'

/** Messages that failed half way and whose retry is still to come. */
const MAX_PARTIAL = 1000

/**
 * Messages that take several requests, such as a text and two files. A retry goes on after the last request that
 * succeeded, as long as the process lives.
 */
export class PartialSends {
  readonly #sent = new Map<string, SentMessage[]>()

  /** Runs the steps in order, without those that an earlier attempt has behind it. Returns what the first one sent. */
  async send(id: string, steps: readonly (() => Promise<SentMessage>)[]): Promise<SentMessage> {
    const sent = this.#sent.get(id) ?? []
    for (const step of steps.slice(sent.length)) {
      sent.push(await step())
      this.#keep(id, sent)
    }
    this.#sent.delete(id)
    return sent[0] ?? { id: '' }
  }

  #keep(id: string, sent: SentMessage[]): void {
    this.#sent.set(id, sent)
    const oldest = this.#sent.keys().next()
    if (this.#sent.size > MAX_PARTIAL && !oldest.done) this.#sent.delete(oldest.value)
  }
}
