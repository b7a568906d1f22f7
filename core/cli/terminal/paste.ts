import { Transform } from 'node:stream'
import type { TransformCallback } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

const START = '\u001b[200~'
const END = '\u001b[201~'
/** A terminal that is told this says where a pasted text begins and ends. */
export const pasteMode = { on: '\u001b[?2004h', off: '\u001b[?2004l' } as const

/** How the end of a line looks in the line that is edited; the variation selector tells a real arrow from it. */
const BREAK = '↵'
const REAL = '\uFE0E'
/** A longer text is shown by its size: the editor takes its time for every character. */
const MAX_SHOWN = 800

/**
 * What is typed, on its way from the terminal to the editor of the line. A pasted text becomes part of that line
 * however many lines it has, and none of its characters is taken for a key.
 */
export class PasteFilter extends Transform {
  readonly isTTY = true
  readonly #terminal: NodeJS.ReadStream
  readonly #decoder = new StringDecoder('utf8')
  readonly #pasted = new Map<string, string>()
  #held = ''
  #paste: string | undefined
  constructor(terminal: NodeJS.ReadStream) {
    super({ decodeStrings: false, encoding: 'utf8' })
    this.#terminal = terminal
    terminal.pipe(this)
  }

  /** Called by the editor of the line. */
  setRawMode(raw: boolean): this {
    this.#terminal.setRawMode(raw)
    return this
  }

  /** Whether the line has no text that is only shown by its size. */
  isWhole(line: string): boolean {
    return ![...this.#pasted.keys()].some((chip) => line.includes(chip))
  }

  /** What was typed and pasted, by the line that the editor made of it. */
  expand(line: string): string {
    return line
      .split(/(\[pasted text \d+, \d+ lines?\])/)
      .map(
        (part) => this.#pasted.get(part) ?? part.replaceAll(/↵(\uFE0E?)/g, (_, real) => (real === '' ? '\n' : BREAK)),
      )
      .join('')
  }

  override _transform(chunk: string | Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const text = this.#held + (typeof chunk === 'string' ? chunk : this.#decoder.write(chunk))
    this.#held = ''
    // The end of a paste that never comes must not swallow the key that ends everything.
    if (this.#paste !== undefined && text === '\u0003') {
      this.#paste = undefined
      done(null, text)
      return
    }
    done(null, this.#read(text))
  }
  override _flush(done: TransformCallback): void {
    const rest = this.#held
    this.#held = ''
    done(null, rest)
  }

  #read(text: string): string {
    let out = ''
    let rest = text
    while (rest !== '') {
      const mark = this.#paste === undefined ? START : END
      const at = rest.indexOf(mark)
      const held = at < 0 ? beginning(rest, mark) : 0
      const piece = at < 0 ? rest.slice(0, rest.length - held) : rest.slice(0, at)
      if (this.#paste === undefined) out += piece.replaceAll(BREAK, BREAK + REAL)
      else this.#paste += piece
      if (at < 0) {
        this.#held = rest.slice(rest.length - held)
        return out
      }
      rest = rest.slice(at + mark.length)
      if (this.#paste === undefined) this.#paste = ''
      else {
        out += this.#show(this.#paste)
        this.#paste = undefined
      }
    }
    return out
  }
  #show(pasted: string): string {
    const text = pasted
      .replaceAll(/\r\n?|[\u2028\u2029]/g, '\n')
      .replaceAll(/(?![\t\n])\p{Cc}/gu, '')
      // A Tab at the end would complete the line.
      .replace(/[\t\n]+$/, '')
    if (text.length <= MAX_SHOWN) return text.replaceAll(BREAK, BREAK + REAL).replaceAll('\n', BREAK)
    const lines = text.split('\n').length
    const chip = `[pasted text ${this.#pasted.size + 1}, ${lines} line${lines === 1 ? '' : 's'}]`
    this.#pasted.set(chip, text)
    return chip
  }
}

/** How many characters at the end of a text may be the beginning of the mark; a lone Escape is a key. */
function beginning(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length >= 2; length--)
    if (text.endsWith(mark.slice(0, length))) return length
  return 0
}
