/** What is wrong with an expression, and where. */
export class ExpressionError extends Error {
  /** Of the character, from 0. */
  readonly at: number
  constructor(message: string, at: number, text: string) {
    super(`${message} at character ${at + 1}: ${excerpt(text, at)}`)
    this.name = 'ExpressionError'
    this.at = at
  }
}
/** The text around a character, with a mark before it. */
function excerpt(text: string, at: number): string {
  const around = 20
  const before = text.slice(Math.max(at - around, 0), at)
  const after = text.slice(at, at + around)
  return `${at > around ? '…' : ''}${before}▸${after}${at + around < text.length ? '…' : ''}`
}

export type TokenKind = 'name' | 'string' | 'number' | 'symbol' | 'end'
export interface Token {
  readonly kind: TokenKind
  /** Of a string, without quotes and escapes. */
  readonly text: string
  readonly at: number
}

/** Each piece of a text begins where the one before it ended. */
const PIECE = /\s+|[A-Za-z_][A-Za-z0-9_-]*|-?\d+(?:\.\d+)?|[=!<>]=|[<>()[\].,]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/suy
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }

/** Throws `ExpressionError`. The last token is the end. */
export function readTokens(text: string): readonly Token[] {
  const tokens: Token[] = []
  PIECE.lastIndex = 0
  for (let at = 0; at < text.length; at = PIECE.lastIndex) {
    PIECE.lastIndex = at
    const [piece] = PIECE.exec(text) ?? []
    if (piece === undefined) throw unreadable(text, at)
    if (piece.trim() !== '') tokens.push(toToken(piece, at))
  }
  tokens.push({ kind: 'end', text: 'the end', at: text.length })
  return tokens
}

function unreadable(text: string, at: number): ExpressionError {
  const char = String.fromCodePoint(text.codePointAt(at) ?? 0)
  if (char === '"' || char === "'") return new ExpressionError('The text in quotes does not end', at, text)
  if (char === '=') return new ExpressionError('A comparison is written ==', at, text)
  if (char === '&') return new ExpressionError('"and" joins conditions', at, text)
  if (char === '|') return new ExpressionError('"or" joins conditions', at, text)
  if (char === '!') return new ExpressionError('"not" negates a condition', at, text)
  return new ExpressionError(`"${char}" means nothing here`, at, text)
}

function toToken(piece: string, at: number): Token {
  if (/^["']/.test(piece)) {
    const text = piece.slice(1, -1).replace(/\\(.)/gsu, (_, char: string) => ESCAPES[char] ?? char)
    return { kind: 'string', text, at }
  }
  if (/^-?\d/.test(piece)) return { kind: 'number', text: piece, at }
  return { kind: /^[A-Za-z_]/.test(piece) ? 'name' : 'symbol', text: piece, at }
}
