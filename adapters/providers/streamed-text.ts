import { UpstreamFailure } from 'svc/sdk'

/** So many malformed events are a broken stream; a single one is skipped. */
const MAX_MALFORMED = 3
const NOTHING: readonly TextEvent[] = []

export interface TextEvent {
  readonly type: 'text' | 'thinking'
  readonly delta: string
}

/**
 * Text and thinking of one streamed answer, in order: pieces between two takes become one event. Also counts
 * malformed events and decides
 * when a stream is too broken to go on. `system` is named in failures.
 */
export class StreamedText {
  readonly #system: string
  #events: TextEvent[] = []
  #text = ''
  #thinking = ''
  #malformed = 0
  /** Whether any event of the stream was understood. */
  understood = false
  /** Characters the model wrote, with those the decoder adds, such as arguments of calls. Up to date after a take. */
  chars = 0

  constructor(system: string) {
    this.#system = system
  }

  addText(text: string): void {
    if (this.#thinking !== '') this.#flush()
    this.#text += text
  }
  addThinking(text: string): void {
    if (this.#text !== '') this.#flush()
    this.#thinking += text
  }
  /** Characters written so far, those since the last take included. */
  get total(): number {
    return this.chars + this.#text.length + this.#thinking.length
  }
  /** What was added since the last take. */
  take(): readonly TextEvent[] {
    // Nearly always: one chunk of the network holds text alone.
    if (this.#events.length === 0 && this.#thinking === '') {
      const delta = this.#text
      if (delta === '') return NOTHING
      this.#text = ''
      this.chars += delta.length
      return [{ type: 'text', delta }]
    }
    this.#flush()
    const events = this.#events
    this.#events = []
    return events
  }
  /**
   * The proof that nothing is missing. Throws `malformed` when no event was understood, and `cut` when there is no
   * proof.
   */
  requireEnd<Proof extends object>(end: Proof | undefined): Proof {
    if (!this.understood) throw this.malformed('sent an answer without an event')
    if (end === undefined)
      throw new UpstreamFailure(this.#system, `${this.#system} stopped in the middle of its answer`, {
        reason: 'cut',
        retry: 'later',
      })
    return end
  }

  /** Leaves out one malformed event. Throws when there were too many. */
  skip(): void {
    if (++this.#malformed >= MAX_MALFORMED) throw this.malformed('sent an answer that cannot be read')
  }
  /** The failure of a stream that cannot be used. */
  malformed(what: string): UpstreamFailure {
    return new UpstreamFailure(this.#system, `${this.#system} ${what}`, { reason: 'malformed', retry: 'later' })
  }

  #flush(): void {
    if (this.#thinking !== '') this.#events.push({ type: 'thinking', delta: this.#thinking })
    if (this.#text !== '') this.#events.push({ type: 'text', delta: this.#text })
    this.chars += this.#thinking.length + this.#text.length
    this.#thinking = this.#text = ''
  }
}
