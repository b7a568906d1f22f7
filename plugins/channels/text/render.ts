import { dialects } from './dialects.ts'
import type { DialectRules } from './dialects.ts'
import type { Mark, Run } from './document.ts'
import type { Dialect } from 'svc/channels'

/**
 * Writes runs in a dialect. Everything that is opened is closed. `begun` are marks that earlier messages began: their
 * list items get no second bullet.
 */
export function renderRuns(runs: readonly Run[], dialect: Dialect, begun: ReadonlySet<Mark> = new Set()): string {
  const writer = new Writer(dialect, begun)
  for (const run of runs) writer.write(run)
  return writer.text
}

const isCode = ({ kind }: Mark): boolean => kind === 'code' || kind === 'code-block'

/** Writes runs one by one; `text` is complete after each. */
export class Writer {
  readonly #rules: DialectRules
  /** Marks whose first line was written. */
  readonly #begun: Set<Mark>
  readonly #stack: Mark[] = []
  #parts: string[] = []
  #isLineStart = true
  /** How many parts `takeAdded` returned. */
  #taken = 0
  /** What closes the open marks; `undefined` when they changed. */
  #closing: string | undefined = ''

  constructor(dialect: Dialect, begun: ReadonlySet<Mark>) {
    this.#rules = dialects[dialect]
    this.#begun = new Set(begun)
  }

  /** What was written since the last call, with the open marks still open. */
  takeAdded(): string {
    const added = this.#parts.slice(this.#taken).join('')
    this.#taken = this.#parts.length
    return added
  }

  /** What closes the open marks. */
  get closing(): string {
    return (this.#closing ??= this.#closeAll())
  }

  get text(): string {
    return this.#parts.join('') + this.closing
  }

  write({ text, marks, isGap }: Run): void {
    let shared = 0
    while (shared < marks.length && this.#stack[shared] === marks[shared]) shared++
    while (this.#stack.length > shared) this.#lines(this.#popClosing())
    for (const mark of marks.slice(shared)) this.#open(mark)
    if (!isGap || !this.#rules.hasBlocks) this.#text(text, marks.some(isCode))
  }

  #open(mark: Mark): void {
    const opening = this.#rules.open(mark, this.#stack)
    this.#stack.push(mark)
    this.#closing = undefined
    this.#lines(opening)
  }

  #popClosing(): string {
    const mark = this.#stack.pop()
    this.#closing = undefined
    return mark ? this.#rules.close(mark, this.#stack) : ''
  }

  #closeAll(): string {
    const [stack, parts, isLineStart] = [[...this.#stack], this.#parts, this.#isLineStart]
    this.#parts = []
    while (this.#stack.length > 0) this.#lines(this.#popClosing())
    const closing = this.#parts.join('')
    this.#stack.push(...stack)
    this.#parts = parts
    this.#isLineStart = isLineStart
    return closing
  }

  #text(text: string, code: boolean): void {
    const { lineBreak } = this.#rules
    this.#lines(text, (line, isLineStart) => this.#rules.escape(line, code, isLineStart), code ? '\n' : lineBreak)
  }

  /** Writes lines, each behind the prefixes of the marks around it. */
  #lines(
    text: string,
    toLine: (line: string, isLineStart: boolean) => string = (line) => line,
    lineBreak = '\n',
  ): void {
    if (text === '') return
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) {
        this.#parts.push(lineBreak)
        this.#isLineStart = true
      }
      if (line === '') continue
      const isLineStart = this.#isLineStart
      if (isLineStart) this.#parts.push(this.#prefix())
      this.#isLineStart = false
      this.#parts.push(toLine(line, isLineStart))
    }
  }

  #prefix(): string {
    let prefix = ''
    for (const mark of this.#stack) {
      prefix += this.#rules.prefix(mark, !this.#begun.has(mark))
      this.#begun.add(mark)
    }
    return prefix
  }
}
