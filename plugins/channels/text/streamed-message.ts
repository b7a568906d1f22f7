import { UpstreamFailure } from 'svc/sdk'
import type { SentMessage } from 'svc/channels'
import type { RenderedMessage } from './split.ts'

/** One message of the platform that shows a part of the answer. */
export interface StreamedPart {
  readonly sent: SentMessage
  /** What it shows now, in the dialect. */
  readonly text: string
}
export interface StreamedMessageDeps {
  /** The messages of the text so far, as `renderMessages` makes them. */
  readonly render: (markdown: string) => readonly RenderedMessage[]
  /** Sends the part with this number, from 0. Records it durably before it settles. */
  readonly send: (message: RenderedMessage, part: number) => Promise<SentMessage>
  readonly edit: (sent: SentMessage, message: RenderedMessage, part: number) => Promise<void>
  /** The platform's shortest time between two edits. */
  readonly minIntervalMs: number
  /** Settles after a time; rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** A failure that the stream survives, for the log. */
  readonly failed?: (error: unknown) => void
}

/** Nothing is shown before the text is this long: a short answer comes in one piece. */
const MIN_CHARS = 24
/** A pause that the platform asks for is kept up to here; after a longer one only the final text is sent. */
const MAX_PAUSE_SECS = 30

/**
 * Shows an answer while it is written: always the newest text, never more often than the platform allows. A text beyond
 * the limit of a message goes on in the next one. The final text is the caller's: `stop` returns what is shown by then,
 * which may have more parts than the final text.
 */
export class StreamedMessage {
  readonly #deps: StreamedMessageDeps
  readonly #parts: StreamedPart[] = []
  readonly #ended = new AbortController()
  #newest = ''
  #loop: Promise<void> | undefined

  constructor(deps: StreamedMessageDeps) {
    this.#deps = deps
  }

  /** The whole text so far. Returns at once. */
  update(markdown: string): void {
    this.#newest = markdown
    if (this.#ended.signal.aborted || markdown.length < MIN_CHARS) return
    this.#loop ??= this.#show()
  }

  /** Ends the stream, waits for a request under way, and returns what is shown. Never rejects. */
  async stop(): Promise<readonly StreamedPart[]> {
    this.#ended.abort()
    await this.#loop
    return this.#parts
  }

  async #show(): Promise<void> {
    const { signal } = this.#ended
    while (!signal.aborted) {
      const pauseMs = await this.#tryShow(this.#newest)
      if (pauseMs === undefined) return
      if (!(await this.#pause(Math.max(pauseMs, this.#deps.minIntervalMs)))) return
    }
  }

  /** Milliseconds to wait before the next attempt; `undefined` ends the stream. */
  async #tryShow(markdown: string): Promise<number | undefined> {
    try {
      await this.#showParts(markdown)
      return 0
    } catch (error) {
      this.#deps.failed?.(error)
      return pauseAfter(error)
    }
  }

  /** Sends or edits what differs. */
  async #showParts(markdown: string): Promise<void> {
    for (const [part, message] of this.#deps.render(markdown).entries()) {
      if (this.#ended.signal.aborted) return
      const present = this.#parts[part]
      if (present?.text === message.text) continue
      if (present) await this.#deps.edit(present.sent, message, part)
      const sent = present?.sent ?? (await this.#deps.send(message, part))
      this.#parts[part] = { sent, text: message.text }
    }
  }

  /** Whether the stream goes on. A wait that was ended, such as by a lost connection, ends it. */
  async #pause(ms: number): Promise<boolean> {
    const { signal } = this.#ended
    try {
      await this.#deps.sleep(ms, signal)
    } catch (error) {
      if (!signal.aborted) this.#deps.failed?.(error)
      return false
    }
    return true
  }
}

/** Milliseconds until the next attempt; `undefined` when the stream has to end. */
function pauseAfter(error: unknown): number | undefined {
  if (!(error instanceof UpstreamFailure) || error.retry === 'never') return undefined
  const seconds = error.retryAfterSecs ?? 1
  return seconds > MAX_PAUSE_SECS ? undefined : seconds * 1000
}
