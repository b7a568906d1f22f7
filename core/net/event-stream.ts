import { createParser } from 'eventsource-parser'

/** A line or an event that grows over this is a fault of the other side. In characters. */
const MAX_LINE = 8_388_608

/** One event of a `text/event-stream`. `event` is absent where the sender did not name it. */
export interface StreamedEvent {
  /** The `data` of the event; several lines are joined by line feeds. */
  readonly data: string
  /** The name of the event. */
  readonly event?: string | undefined
  /** The id of the event, where the sender numbers them: `Last-Event-ID` of the next connection. */
  readonly id?: string | undefined
}

/**
 * Cuts the bytes of a `text/event-stream` into events, whatever its line ends are and wherever the network cut it.
 * `feed` and `finish`
 * call back for each event before they return. Throws what `tooLong` makes when one line has no end. Holds no timers
 * and no connections.
 */
export class EventStreamReader {
  readonly #utf8 = new TextDecoder()
  readonly #parser: ReturnType<typeof createParser>
  #carriage = false

  constructor(onEvent: (event: StreamedEvent) => void, tooLong: (maxChars: number) => Error) {
    this.#parser = createParser({
      maxBufferSize: MAX_LINE,
      onEvent,
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') throw tooLong(MAX_LINE)
      },
    })
  }

  /** Takes the next bytes as they arrived. */
  feed(bytes: Uint8Array): void {
    let text = this.#utf8.decode(bytes, { stream: true })
    if (text.length === 0) return
    // The parser waits for the next character after a CR, so a stream with CR alone would always be one event late.
    if (this.#carriage && text.startsWith('\n')) text = text.slice(1)
    this.#carriage = text.endsWith('\r')
    if (text.includes('\r')) text = text.replaceAll(/\r\n?/g, '\n')
    this.#parser.feed(text)
  }

  /** An event at the end of a stream that was not followed by its empty line. */
  finish(): void {
    this.#parser.feed('\n\n')
  }
}
