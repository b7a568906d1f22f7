import { UpstreamFailure } from 'svc/sdk'

/** So many malformed events make the stream malformed; a single one is skipped. */
const MAX_MALFORMED = 3
const NOTHING: readonly TextEvent[] = []

export interface TextEvent {
  readonly type: 'text' | 'thinking'
  readonly delta: string
}

/**
 * Collects text and thinking of one streamed answer, in order. Pieces between two takes become one event. Also counts
 * malformed events and throws when there are too many. `system` is named in failures.
 */
export class StreamedText {
  readonly #system: string
  #events: TextEvent[] = []
  #text = ''
  #thinking = ''
  #malformed = 0
  /** Whether the stream contained a valid event. */
  hasEvents = false
  /** Characters of the answer, with those the decoder adds, such as arguments of calls. Updated by each take. */
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
  /** Characters of text and thinking so far, including those since the last take. */
  get total(): number {
    return this.chars + this.#text.length + this.#thinking.length
  }
  /** The events since the last take. */
  take(): readonly TextEvent[] {
    // The usual case: a chunk holds text alone.
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
  /** Returns the end. Throws `malformed` when the stream had no valid event, and `cut` when it has no end. */
  requireEnd<End extends object>(end: End | undefined): End {
    if (!this.hasEvents) throw this.malformed('sent an answer without a valid event')
    if (end === undefined)
      throw new UpstreamFailure(this.#system, `${this.#system} stopped in the middle of its answer`, {
        reason: 'cut',
        retry: 'later',
      })
    return end
  }

  /** Skips one malformed event. Throws when there were too many. */
  skip(): void {
    if (++this.#malformed >= MAX_MALFORMED) throw this.malformed('sent an answer that cannot be read')
  }
  /** The failure of a malformed stream. */
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
