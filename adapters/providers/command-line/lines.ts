import type { Usage } from 'svc/providers'

/** What one line of a program means. `failed` ends the answer; a `warning` only explains an exit without an end. */
export type ProgramEvent =
  | { readonly type: 'text' | 'thinking'; readonly delta: string }
  | { readonly type: 'done'; readonly stop: 'done' | 'length' | 'refused'; readonly usage: Usage | undefined }
  | { readonly type: 'failed' | 'warning'; readonly message: string; readonly status?: number }
/** Reads the lines of one answer in their order. An unknown line has no events. */
export type LineReader = (json: unknown) => readonly ProgramEvent[]

/** Splits chunks of bytes into lines. `undefined` in the place of a line: it is longer than `maxChars`. */
export class LineSplitter {
  readonly #utf8 = new TextDecoder()
  readonly #maxChars: number
  #rest = ''

  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  feed(bytes: Uint8Array): readonly (string | undefined)[] {
    const lines = (this.#rest + this.#utf8.decode(bytes, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    return this.#rest.length > this.#maxChars ? [...lines, undefined] : lines
  }
  /** What follows the last line break. */
  finish(): string {
    return this.#rest + this.#utf8.decode()
  }
}
