import type { Usage } from 'svc/providers'

/**
 * What one line of a program means. `failed` is its last word, `trouble` may pass and counts only when nothing better
 * comes.
 */
export type Said =
  | { readonly type: 'text' | 'thinking'; readonly delta: string }
  | { readonly type: 'done'; readonly stop: 'done' | 'length' | 'refused'; readonly usage: Usage | undefined }
  | { readonly type: 'failed' | 'trouble'; readonly message: string; readonly status?: number }
/** Reads the lines of one answer in their order. A line it does not know means nothing. */
export type LineReader = (json: unknown) => readonly Said[]

/** Cuts bytes into lines, wherever they were cut before. `undefined` in the place of a line: it has no end. */
export class Lines {
  readonly #utf8 = new TextDecoder()
  readonly #most: number
  #rest = ''
  constructor(mostChars: number) {
    this.#most = mostChars
  }

  feed(bytes: Uint8Array): readonly (string | undefined)[] {
    const lines = (this.#rest + this.#utf8.decode(bytes, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    return this.#rest.length > this.#most ? [...lines, undefined] : lines
  }
  finish(): string {
    return this.#rest + this.#utf8.decode()
  }
}
