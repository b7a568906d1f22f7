import { readOwnJson } from '../schema/nesting.ts'

/** Where one key of a TOML file is written. Offsets count UTF-16 units of the text. */
export interface KeyPlace {
  readonly path: readonly string[]
  /** Of the key, from 1. */
  readonly line: number
  readonly column: number
  /** The value without surrounding whitespace; for a table header both are the end of its line. */
  readonly start: number
  readonly end: number
  readonly kind: 'value' | 'table'
  /** The table this key belongs to. */
  readonly table: readonly string[]
}

/**
 * The keys and table headers of a TOML text, in order. Parses only what is needed to find them; smol-toml has checked
 * that the text is valid.
 */
export function indexToml(text: string): KeyPlace[] {
  return new TomlScanner(text).scan()
}

class TomlScanner {
  readonly #text: string
  readonly #places: KeyPlace[] = []
  /** How many elements each array of tables has so far. */
  readonly #arrays = new Map<string, number>()
  #table: string[] = []
  #at = 0
  #line = 1
  #lineStart = 0

  constructor(text: string) {
    this.#text = text
  }

  scan(): KeyPlace[] {
    while (this.#at < this.#text.length) {
      this.#skipBlanks()
      const char = this.#text[this.#at]
      if (char === '[') this.#readHeader()
      else if (char !== '#' && char !== '\n' && char !== '\r' && char !== undefined) this.#readPair()
      this.#skipLine()
      if (this.#text[this.#at] === '\n') this.#startLine()
      this.#at++
    }
    return this.#places
  }

  #readHeader(): void {
    const { line, column } = this.#position()
    const isArray = this.#text[this.#at + 1] === '['
    this.#at += isArray ? 2 : 1
    const path = this.#inArrays(this.#readKey())
    if (isArray) {
      const name = path.join('\0')
      const index = this.#arrays.get(name) ?? 0
      this.#arrays.set(name, index + 1)
      path.push(String(index))
    }
    this.#table = path
    this.#skipLine()
    this.#places.push({ path, line, column, start: this.#at, end: this.#at, kind: 'table', table: path })
  }

  /** `[list.table]` belongs to the last element of `[[list]]`. */
  #inArrays(key: readonly string[]): string[] {
    return key.reduce<string[]>((path, part, depth) => {
      path.push(part)
      const count = depth < key.length - 1 ? this.#arrays.get(path.join('\0')) : undefined
      if (count !== undefined) path.push(String(count - 1))
      return path
    }, [])
  }

  #readPair(): void {
    const { line, column } = this.#position()
    const table = this.#table
    const path = [...table, ...this.#readKey()]
    this.#at++ // the equals sign
    this.#skipBlanks()
    const start = this.#at
    this.#skipValue()
    const end = start + this.#text.slice(start, this.#at).trimEnd().length
    this.#places.push({ path, line, column, start, end, kind: 'value', table })
  }

  #position(): { readonly line: number; readonly column: number } {
    return { line: this.#line, column: this.#at - this.#lineStart + 1 }
  }
  #startLine(): void {
    this.#line++
    this.#lineStart = this.#at + 1
  }
  #skipBlanks(): void {
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at++
  }
  #skipLine(): void {
    while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++
  }

  /** A basic or literal string, one line or several, with its quotes. */
  #skipString(): void {
    const text = this.#text
    const quote = text[this.#at] ?? ''
    const isLong = text.startsWith(quote.repeat(3), this.#at)
    this.#at += isLong ? 3 : 1
    while (this.#at < text.length) {
      if (text[this.#at] === '\\' && quote === '"') this.#at++
      else if (isLong ? text.startsWith(quote.repeat(3), this.#at) : text[this.#at] === quote) break
      if (text[this.#at] === '\n') this.#startLine()
      this.#at++
    }
    this.#at += isLong ? 3 : 1
    // Up to two quotes may precede the closing three.
    if (isLong) while (text[this.#at] === quote) this.#at++
  }

  #readKey(): string[] {
    const parts: string[] = []
    for (;;) {
      this.#skipBlanks()
      parts.push(this.#readKeyPart())
      this.#skipBlanks()
      if (this.#text[this.#at] !== '.') return parts
      this.#at++
    }
  }
  #readKeyPart(): string {
    const start = this.#at
    if (this.#text[start] === '"' || this.#text[start] === "'") {
      this.#skipString()
      const raw = this.#text.slice(start, this.#at)
      return raw.startsWith('"') ? unescape(raw) : raw.slice(1, -1)
    }
    while (/[\w-]/.test(this.#text[this.#at] ?? '')) this.#at++
    return this.#text.slice(start, this.#at)
  }

  #skipValue(): void {
    for (let depth = 0; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at]
      if (depth === 0 && (char === '#' || char === '\n')) return
      if (char === '"' || char === "'") {
        this.#skipString()
        this.#at--
      } else if (char === '[' || char === '{') depth++
      else if (char === ']' || char === '}') depth--
      else if (char === '#') {
        this.#skipLine()
        this.#at--
      } else if (char === '\n') this.#startLine()
    }
  }
}

function unescape(quoted: string): string {
  // Escapes beyond those of JSON are legal in keys and rare; error messages then show the raw text.
  try {
    return String(readOwnJson(quoted))
  } catch {
    return quoted.slice(1, -1)
  }
}

/** The place of a key, or of the nearest table or value that contains it. */
export function findPlace(places: readonly KeyPlace[], path: readonly string[]): KeyPlace | undefined {
  for (let length = path.length; length > 0; length--) {
    const found = places.find(
      (place) =>
        place.path.length >= length &&
        path.slice(0, length).every((part, depth) => place.path[depth] === part) &&
        (place.path.length === length || length === path.length),
    )
    if (found) return found
  }
  return undefined
}
