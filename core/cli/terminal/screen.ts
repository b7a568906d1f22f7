import type { Interface } from 'node:readline'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

/**
 * What stays below everything that is printed: an unfinished part of an answer, what is waited for, and the line that
 * is edited.
 */
export class Screen {
  readonly #out: NodeJS.WriteStream
  #editor: Interface | undefined
  #live: readonly string[] = []
  constructor(out: NodeJS.WriteStream) {
    this.#out = out
  }

  get width(): number {
    return Math.max(20, this.#out.columns || 80)
  }

  /** From now on the line of this editor is the last one. */
  edit(editor: Interface): void {
    this.#editor = editor
    editor.once('close', () => {
      // The cursor is below the line that was edited.
      if (this.#editor === editor) this.#editor = undefined
      this.#live = []
    })
    editor.prompt()
  }

  /** Prints lines that stay, above what is live. */
  print(text: string): void {
    this.#draw(text === '' || text.endsWith('\n') ? text : `${text}\n`, this.#live)
  }
  /** What is shown until it is replaced: cut to the height of the terminal, newest lines last. */
  live(lines: readonly string[]): void {
    this.#draw('', this.#fit(lines))
  }
  both(text: string, lines: readonly string[]): void {
    this.#draw(text, this.#fit(lines))
  }

  /** A line was sent: what the editor left of it gives way to what is printed instead. */
  sent(line: string, shown: string): void {
    const rows = Math.floor(stringWidth(line) / this.width) + 1
    this.#draw(`${shown}\n`, this.#live, rows)
  }

  #fit(lines: readonly string[]): string[] {
    const maxLines = Math.max(2, (this.#out.rows || 24) - 6)
    const all = lines.flatMap((line) => wrapAnsi(line, this.width, { hard: true, trim: false }).split('\n'))
    return all.slice(-maxLines)
  }
  #draw(text: string, live: readonly string[], above = 0): void {
    const cursor = this.#editor?.getCursorPos().rows ?? 0
    const up = this.#rows(this.#live) + (above > 0 ? above : cursor)
    this.#live = live
    const below = live.length === 0 ? '' : `${live.join('\n')}\n`
    // The editor goes up by the rows that its line had above the cursor before it draws it again.
    const again = this.#editor ? '\n'.repeat(cursor) : ''
    // A terminal that knows synchronized output shows what comes between the two marks at once.
    this.#out.write(`\u001b[?2026h\r${up > 0 ? `\u001b[${up}A` : ''}\u001b[J${text}${below}${again}`)
    this.#editor?.prompt(true)
    this.#out.write('\u001b[?2026l')
  }
  /** Rows that lines take which may have been drawn when the terminal was wider. */
  #rows(lines: readonly string[]): number {
    return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / this.width)), 0)
  }
}
