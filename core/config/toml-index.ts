import { readOwnJson } from '../schema/nesting.ts'
/** Where one key of a TOML file is written. Offsets count UTF-16 units of the text. */
export interface KeyPlace {
  readonly path: readonly string[]
  /** Of the key, from 1. */
  readonly line: number
  readonly column: number
  /** The value without the blanks around it; for a table header both lie at the end of its line. */
  readonly start: number
  readonly end: number
  readonly kind: 'value' | 'table'
  /** The header this key stands under. */
  readonly table: readonly string[]
}

/**
 * The keys and headers of a TOML text in their order. Reads only what is needed to find them; the text has to be
 * valid, which
 * smol-toml checks before.
 */
export function indexToml(text: string): KeyPlace[] {
  const places: KeyPlace[] = []
  const arrays = new Map<string, number>()
  let table: string[] = []
  let at = 0
  let line = 1
  let lineStart = 0

  const newline = (): void => {
    line++
    lineStart = at + 1
  }
  const blanks = (): void => {
    while (text[at] === ' ' || text[at] === '\t') at++
  }
  const restOfLine = (): void => {
    while (at < text.length && text[at] !== '\n') at++
  }

  /** A basic or literal string, one line or several, with the quotes. */
  const skipString = (): void => {
    const quote = text[at] ?? ''
    const long = text.startsWith(quote.repeat(3), at)
    at += long ? 3 : 1
    while (at < text.length) {
      if (text[at] === '\\' && quote === '"') at++
      else if (long ? text.startsWith(quote.repeat(3), at) : text[at] === quote) break
      if (text[at] === '\n') newline()
      at++
    }
    at += long ? 3 : 1
    // Up to two quotes may stand before the closing three.
    if (long) while (text[at] === quote) at++
  }
  const readKey = (): string[] => {
    const parts: string[] = []
    for (;;) {
      blanks()
      const start = at
      if (text[at] === '"' || text[at] === "'") {
        skipString()
        const raw = text.slice(start, at)
        parts.push(raw.startsWith('"') ? unescape(raw) : raw.slice(1, -1))
      } else {
        while (/[\w-]/.test(text[at] ?? '')) at++
        parts.push(text.slice(start, at))
      }
      blanks()
      if (text[at] !== '.') return parts
      at++
    }
  }
  const skipValue = (): void => {
    for (let depth = 0; at < text.length; at++) {
      const char = text[at]
      if (char === '"' || char === "'") {
        skipString()
        at--
      } else if (char === '[' || char === '{') depth++
      else if (char === ']' || char === '}') depth--
      else if (char === '#') {
        if (depth === 0) return
        restOfLine()
        at--
      } else if (char === '\n') {
        if (depth === 0) return
        newline()
      }
    }
  }

  while (at < text.length) {
    blanks()
    const column = at - lineStart + 1
    const here = line
    if (text[at] === '[') {
      const array = text[at + 1] === '['
      at += array ? 2 : 1
      const path = readKey()
      if (array) {
        const name = path.join('\0')
        const position = arrays.get(name) ?? 0
        arrays.set(name, position + 1)
        path.push(String(position))
      }
      table = path
      restOfLine()
      places.push({ path, line: here, column, start: at, end: at, kind: 'table', table })
    } else if (text[at] !== '#' && text[at] !== '\n' && text[at] !== '\r' && at < text.length) {
      const path = [...table, ...readKey()]
      at++ // the equals sign
      blanks()
      const start = at
      skipValue()
      const end = start + text.slice(start, at).trimEnd().length
      places.push({ path, line: here, column, start, end, kind: 'value', table })
    }
    restOfLine()
    if (text[at] === '\n') newline()
    at++
  }
  return places
}

function unescape(quoted: string): string {
  // Keys with escapes beyond those of JSON are legal and do not occur; the raw text serves for the message.
  try {
    return String(readOwnJson(quoted))
  } catch {
    return quoted.slice(1, -1)
  }
}

/** The place of a key, or of the nearest table or value that holds it. */
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
