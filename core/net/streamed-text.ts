import { UpstreamFailure } from '../errors/error.ts'

/** So many broken events are a broken stream; a single one is skipped. */
const MOST_MALFORMED = 3
const NOTHING: readonly TextEvent[] = []

export interface TextEvent {
  readonly type: 'text' | 'thinking'
  readonly delta: string
}

/**
 * What a model says in one streamed answer, in the order it was said: pieces between two takes are one event. Knows as well when a stream is
 * too broken to go on. `system` is named in failures.
 */
export class StreamedText {
  readonly #system: string
  #events: TextEvent[] = []
  #text = ''
  #thinking = ''
  #malformed = 0
  /** Whether anything of the stream was understood. */
  seen = false
  /** Characters of all that was said, and of what the decoder adds, such as arguments of calls. Up to date after a take. */
  chars = 0

  constructor(system: string) {
    this.#system = system
  }

  say(text: string): void {
    if (this.#thinking !== '') this.#flush()
    this.#text += text
  }
  think(text: string): void {
    if (this.#text !== '') this.#flush()
    this.#thinking += text
  }
  /** What was said since the last time. */
  take(): readonly TextEvent[] {
    // Nearly always: one piece of the network holds text alone.
    if (this.#events.length === 0 && this.#thinking === '') {
      const delta = this.#text
      if (delta === '') return NOTHING
      this.#text = ''
      this.chars += delta.length
      return [{ type: 'text', delta }]
    }
    this.#flush()
    const said = this.#events
    this.#events = []
    return said
  }
  /** What proves that nothing is missing, as given. Throws `malformed` when there was no answer at all, and `cut` when there is no proof. */
  requireEnd<Proof>(end: Proof | false | undefined): Proof {
    if (!this.seen) throw this.broken('sent an answer without an event')
    if (end === undefined || end === false)
      throw new UpstreamFailure(this.#system, `${this.#system} stopped in the middle of its answer`, {
        reason: 'cut',
        retry: 'later',
      })
    return end
  }

  /** Leaves out an event that cannot be read; too many of them are thrown as `malformed`. */
  skip(): void {
    if (++this.#malformed >= MOST_MALFORMED) throw this.broken('sent an answer that cannot be read')
  }
  /** The failure of a stream that is of no use. */
  broken(what: string): UpstreamFailure {
    return new UpstreamFailure(this.#system, `${this.#system} ${what}`, { reason: 'malformed', retry: 'later' })
  }

  #flush(): void {
    if (this.#thinking !== '') this.#events.push({ type: 'thinking', delta: this.#thinking })
    if (this.#text !== '') this.#events.push({ type: 'text', delta: this.#text })
    this.chars += this.#thinking.length + this.#text.length
    this.#thinking = this.#text = ''
  }
}
