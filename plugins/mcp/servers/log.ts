/** The end of what a server wrote, in a bounded number of bytes. */
export class ServerLog {
  readonly #maxChars: number
  #text = ''
  #dropped = 0
  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  add(text: string): void {
    this.#text += text
    const over = this.#text.length - this.#maxChars
    if (over <= 0) return
    // Cut at the beginning of a line where there is one.
    const line = this.#text.indexOf('\n', over)
    const cut = line === -1 ? over : line + 1
    this.#dropped += cut
    this.#text = this.#text.slice(cut)
  }
  note(at: string, text: string): void {
    this.add(`${this.#text === '' || this.#text.endsWith('\n') ? '' : '\n'}[svc ${at}] ${text}\n`)
  }
  read(): { readonly text: string; readonly dropped: number } {
    return { text: this.#text, dropped: this.#dropped }
  }
}
