import type { LogLine } from './text.ts'

/** A line with its number, which grows by one from the start of the daemon. */
export interface NumberedLine {
  readonly seq: number
  readonly line: LogLine
}

/** The last lines of the log, and those to come, for whoever reads along. Lines are masked before they get here. */
export class LogFeed {
  readonly #keep: number
  readonly #lines: NumberedLine[] = []
  readonly #readers = new Set<(line: NumberedLine) => void>()
  #seq = 0

  /** `keep`: how many lines are remembered. */
  constructor(keep = 500) {
    this.#keep = keep
  }

  push(line: LogLine): void {
    const numbered = { seq: ++this.#seq, line }
    this.#lines.push(numbered)
    // Cut in pieces: taking one off the front of a list for every line would move all the others.
    if (this.#lines.length >= this.#keep * 2) this.#lines.splice(0, this.#lines.length - this.#keep)
    for (const reader of this.#readers) reader(numbered)
  }

  /** The newest lines, the oldest of them first. */
  recent(count: number): readonly NumberedLine[] {
    return count === 0 ? [] : this.#lines.slice(-Math.min(count, this.#keep))
  }

  /**
   * Calls back for every line from now on, until the returned function is called. The reader must not throw and not
   * log.
   */
  follow(reader: (line: NumberedLine) => void): () => void {
    this.#readers.add(reader)
    return () => {
      this.#readers.delete(reader)
    }
  }
}
