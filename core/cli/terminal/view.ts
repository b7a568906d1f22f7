import { escapeControls } from '../../log/text.ts'
import { note } from '../output.ts'

/** Where a conversation is shown. */
export interface View {
  readonly colored: boolean
  /** Something beside the answer. */
  note(text: string): void
  /** A piece of the answer. */
  text(delta: string): void
  /** A piece of what the model thinks before it answers. */
  reasoning(delta: string): void
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
  reasoning(): void {}
  status(): void {}
  endAnswer(): void {
    if (this.#last !== '\n') process.stdout.write('\n')
    this.#last = '\n'
  }
}
