import { ExpressionError, readTokens } from './tokens.ts'
import type { Token } from './tokens.ts'

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'contains' | 'matches'
export type Node =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'path'; readonly name: string; readonly keys: readonly (string | number)[]; readonly at: number }
  | { readonly kind: 'length' | 'not'; readonly of: Node }
  | { readonly kind: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | {
      readonly kind: 'compare'
      readonly by: Comparison
      readonly left: Node
      readonly right: Node
      readonly at: number
    }

export const MAX_CHARS = 2_000
const MAX_DEPTH = 50
const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=', 'contains', 'matches'])
const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'not', 'contains', 'matches', 'length'])
const CONSTANTS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null }
const isComparison = (text: string): text is Comparison => COMPARISONS.has(text)

/** Throws `ExpressionError`. */
export function parseNode(text: string): Node {
  if (text.trim() === '') throw new ExpressionError('The expression is empty', 0, text)
  if (text.length > MAX_CHARS)
    throw new ExpressionError(`The expression is longer than ${MAX_CHARS} characters`, MAX_CHARS, text)
  return new Parser(text).parse()
}

/** Recursive descent: or, and, not, comparison, value. */
class Parser {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = readTokens(text)
  }

  parse(): Node {
    const node = this.#or()
    const rest = this.#token
    if (rest.kind !== 'end') throw this.#error(`"${rest.text}" was not expected`, rest)
    return node
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: 'the end', at: this.#text.length }
  }
  #error(message: string, { at }: Token): ExpressionError {
    return new ExpressionError(message, at, this.#text)
  }
  /** Whether the next token is this word or symbol; it is taken then. */
  #take(text: string): boolean {
    const { kind, text: found } = this.#token
    if (found !== text || kind === 'string') return false
    this.#at++
    return true
  }
  #expect(text: string): void {
    if (!this.#take(text)) throw this.#error(`"${text}" is missing`, this.#token)
  }

  #or(): Node {
    let left = this.#and()
    while (this.#take('or')) left = { kind: 'or', left, right: this.#and() }
    return left
  }
  #and(): Node {
    let left = this.#not()
    while (this.#take('and')) left = { kind: 'and', left, right: this.#not() }
    return left
  }
  #not(): Node {
    if (!this.#take('not')) return this.#comparison()
    return this.#nested(() => ({ kind: 'not', of: this.#not() }))
  }
  #comparison(): Node {
    const left = this.#value()
    const { text, at, kind } = this.#token
    if (kind === 'string' || !isComparison(text)) return left
    this.#at++
    return { kind: 'compare', by: text, left, right: this.#value(), at }
  }

  #value(): Node {
    const token = this.#token
    if (this.#take('(')) return this.#inParentheses()
    this.#at++
    if (token.kind === 'string') return { kind: 'literal', value: token.text }
    if (token.kind === 'number') return { kind: 'literal', value: Number(token.text) }
    if (token.kind !== 'name') throw this.#error('A value is missing', token)
    if (Object.hasOwn(CONSTANTS, token.text)) return { kind: 'literal', value: CONSTANTS[token.text] ?? null }
    if (token.text === 'length') {
      this.#expect('(')
      return { kind: 'length', of: this.#inParentheses() }
    }
    if (WORDS.has(token.text)) throw this.#error(`A value is missing before "${token.text}"`, token)
    return { kind: 'path', name: token.text, keys: this.#keys(), at: token.at }
  }
  #inParentheses(): Node {
    return this.#nested(() => {
      const node = this.#or()
      this.#expect(')')
      return node
    })
  }
  #keys(): readonly (string | number)[] {
    const keys: (string | number)[] = []
    for (;;) {
      if (this.#take('.')) keys.push(this.#key('name', 'The name of a field'))
      else if (this.#take('[')) {
        const { kind, text } = this.#token
        keys.push(kind === 'string' ? this.#key('string', '') : Number(this.#key('number', 'The number of an element')))
        if (kind === 'number' && !/^\d+$/.test(text))
          throw this.#error('An element has a whole number from 0', this.#tokens[this.#at - 1] ?? this.#token)
        this.#expect(']')
      } else return keys
    }
  }
  #key(kind: Token['kind'], what: string): string {
    const token = this.#token
    if (token.kind !== kind) throw this.#error(`${what} is missing`, token)
    this.#at++
    return token.text
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.#error(`Deeper than ${MAX_DEPTH} levels`, this.#token)
    const node = read()
    this.#depth--
    return node
  }
}
