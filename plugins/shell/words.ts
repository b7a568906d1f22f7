export type SplitCommand =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  /** The command needs a shell because of this operator. */
  | { readonly kind: 'shell'; readonly operator: string }
  | { readonly kind: 'malformed'; readonly reason: string }
type SplitFailure = Exclude<SplitCommand, { readonly kind: 'words' }>

/** Characters a shell interprets outside quotes. */
const operators = new Set('|&;<>()$`*?[]{}~#!\n')
/** Characters a shell interprets inside double quotes. */
const quotedOperators = new Set('$`')
/** Characters a backslash escapes inside double quotes. */
const quotedEscapes = new Set('"\\$`\n')
const blanks = new Set(' \t\r')

/**
 * Splits a command into the arguments of a program, with single quotes, double quotes and backslashes as in a POSIX
 * shell. Nothing is expanded. `literal` lists operators that count as ordinary characters: a pattern contains `*`.
 */
export function splitWords(command: string, literal = ''): SplitCommand {
  return new CommandSplitter(command, literal).split()
}

class CommandSplitter {
  readonly #command: string
  readonly #literal: string
  readonly #words: string[] = []
  /** `undefined` between two words; an empty string after `""`. */
  #word: string | undefined
  /** The index of the next character. */
  #next = 0

  constructor(command: string, literal: string) {
    this.#command = command
    this.#literal = literal
  }

  split(): SplitCommand {
    while (this.#next < this.#command.length) {
      const failure = this.#readNext()
      if (failure) return failure
    }
    this.#endWord()
    return this.#words.length === 0
      ? { kind: 'malformed', reason: 'it is empty' }
      : { kind: 'words', words: this.#words }
  }

  #readNext(): SplitFailure | undefined {
    const char = this.#take()
    if (char === "'") return this.#readSingleQuoted()
    if (char === '"') return this.#readDoubleQuoted()
    if (char === '\\') return this.#readEscaped()
    if (blanks.has(char)) {
      this.#endWord()
      return undefined
    }
    if (operators.has(char) && !this.#literal.includes(char) && !isHarmless(char, this.#word, this.#peek()))
      return { kind: 'shell', operator: char === '\n' ? 'a line break' : char }
    this.#append(char)
    return undefined
  }

  #readSingleQuoted(): SplitFailure | undefined {
    const end = this.#command.indexOf("'", this.#next)
    if (end < 0) return unclosed("'")
    this.#append(this.#command.slice(this.#next, end))
    this.#next = end + 1
    return undefined
  }

  #readDoubleQuoted(): SplitFailure | undefined {
    this.#append('')
    while (this.#next < this.#command.length) {
      const char = this.#take()
      if (char === '"') return undefined
      if (quotedOperators.has(char)) return { kind: 'shell', operator: char }
      if (char === '\\' && quotedEscapes.has(this.#peek())) this.#appendEscaped()
      else this.#append(char)
    }
    return unclosed('"')
  }

  #readEscaped(): SplitFailure | undefined {
    if (this.#next >= this.#command.length) return { kind: 'malformed', reason: 'it ends in a backslash' }
    this.#appendEscaped()
    return undefined
  }

  /** An escaped line break continues the line and adds nothing. */
  #appendEscaped(): void {
    const char = this.#take()
    if (char !== '\n') this.#append(char)
  }

  #append(text: string): void {
    this.#word = (this.#word ?? '') + text
  }
  #endWord(): void {
    if (this.#word !== undefined) this.#words.push(this.#word)
    this.#word = undefined
  }
  #take(): string {
    return this.#command.charAt(this.#next++)
  }
  #peek(): string {
    return this.#command.charAt(this.#next)
  }
}

const unclosed = (quote: string): SplitFailure => ({ kind: 'malformed', reason: `a ${quote} is not closed` })

/** Operators that a shell interprets in certain positions only: `a~`, `a#b`, `!=`, `{}`. */
function isHarmless(operator: string, word: string | undefined, next: string): boolean {
  if (operator === '~' || operator === '#') return word !== undefined
  if (operator === '!') return true
  if (operator === '{') return next === '}'
  return operator === '}' && (word?.endsWith('{') ?? false)
}
