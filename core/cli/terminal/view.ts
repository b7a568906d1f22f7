import { escapeControls } from '../../log/text.ts'
import { note } from '../output.ts'

/** Where the progress and the answers of a command are shown. */
export interface View {
  readonly colored: boolean
  /** Something beside the answer. */
  note(text: string): void
  /** A piece of the answer. */
  text(delta: string): void
  /** A piece of text that comes before the answer and is shown dimmed. */
  preamble(delta: string): void
  /** What is waited for; `undefined` for nothing. */
  status(text: string | (() => string) | undefined): void
  /** The answer ends here; the next piece of text is another one. */
  endAnswer(): void
}

export const paint = (colored: boolean, code: number, text: string): string =>
  colored ? `\u001b[${code}m${text}\u001b[0m` : text

/** Answers go to standard output as they are, everything else to standard error. */
export class PlainView implements View {
  readonly colored: boolean
  #last = '\n'
  constructor(colored: boolean) {
    this.colored = colored
  }

  note(text: string): void {
    note(this.#last === '\n' ? text : `\n${text}`)
  }
  text(delta: string): void {
    const shown = escapeControls(delta, true)
    if (shown !== '') this.#last = shown.slice(-1)
    process.stdout.write(shown)
  }
  preamble(): void {}
  status(): void {}
  endAnswer(): void {
    if (this.#last !== '\n') process.stdout.write('\n')
    this.#last = '\n'
  }
}
