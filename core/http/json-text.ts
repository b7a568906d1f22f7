import { isUtf8 } from 'node:buffer'
import { Refusal } from '../errors/error.ts'
import { nestingLimit, readJson, NestingError } from '../schema/nesting.ts'

/** Bytes as a JSON value. Throws `invalid_request` with the position of the first error (Interface 7). */
export function parseJson(bytes: Uint8Array, maxDepth: number = nestingLimit()): unknown {
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'The body is not valid UTF-8')
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const text = raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw
  let value: unknown
  try {
    value = readJson(text, maxDepth)
  } catch (error) {
    if (error instanceof NestingError)
      throw new Refusal('invalid_request', `The body is ${error.message}`, {
        details: error.position === undefined ? {} : { position: error.position },
        cause: error,
      })
    const position = errorPosition(text)
    const before = text.slice(0, position)
    const line = before.split('\n').length
    const column = position - before.lastIndexOf('\n')
    const what = position >= text.length ? 'it ends too early' : `unexpected ${JSON.stringify(text[position])}`
    throw new Refusal('invalid_request', `The body is not valid JSON: ${what} at line ${line}, column ${column}`, {
      details: { position, line, column },
    })
  }
  // The key may be written with escapes, so either sign asks for a look at the value itself.
  if (text.includes('__proto__') || text.includes('\\u')) dropProto(value)
  return value
}

/** `__proto__` is an own key after JSON.parse; copied into another object it would become its prototype. */
function dropProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__')
  for (const inner of Object.values(value)) dropProto(inner)
}

const word = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Where a string that begins here ends, or as a negative number (-1 - position) where it stops being one. */
function scanString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) return -1 - at
    if (code !== 0x5c) continue
    const escape = text[++at] ?? ''
    if (escape === 'u' ? !/^[0-9a-fA-F]{4}$/.test(text.slice(at + 1, at + 5)) : !'"\\/bfnrt'.includes(escape))
      return -1 - Math.min(at, text.length)
  }
  return -1 - text.length
}

/** Where a text stops being JSON. V8 names the position for some errors only. */
function errorPosition(text: string): number {
  const open: Container[] = []
  let expected: Expected = 'value'
  let at = 0
  for (;;) {
    const start = skipSpace(text, at)
    const end = scanToken(text, start)
    // In a place where no string may stand, its beginning is the error.
    if (end < 0) return expected === 'colon' || expected === 'more' ? start : -1 - end
    const next: Expected | undefined = end === start ? undefined : follow(expected, kindOf(text[start]), open)
    if (next === undefined) return start
    expected = next
    at = end
  }
}

type Container = '{' | '['
type Sign = '{' | '}' | '[' | ']' | ':' | ','
type Token = Sign | 'string' | 'word'
/** What may stand next: `first-…` also the end of the container, `more` a comma or the end. */
type Expected = 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'more'

/** Where a token ends; `start` when none begins there, and a negative number as of `scanString`. */
function scanToken(text: string, start: number): number {
  const kind = kindOf(text[start])
  if (kind === 'string') return scanString(text, start)
  if (kind !== 'word') return start + 1
  word.lastIndex = start
  return word.test(text) ? word.lastIndex : start
}

function kindOf(first = ''): Token {
  if (first === '"') return 'string'
  return first !== '' && '{}[]:,'.includes(first) ? (first as Sign) : 'word'
}

/** What may follow a token, with `open` as it is then; `undefined` when the token is the error. */
function follow(expected: Expected, token: Token, open: Container[]): Expected | undefined {
  switch (expected) {
    case 'colon':
      return token === ':' ? 'value' : undefined
    case 'first-key':
      if (token === '}') return close(open)
      return token === 'string' ? 'colon' : undefined
    case 'key':
      return token === 'string' ? 'colon' : undefined
    case 'more':
      return followMore(token, open)
    case 'first-value':
      return token === ']' ? close(open) : followValue(token, open)
    case 'value':
      return followValue(token, open)
  }
}
function followMore(token: Token, open: Container[]): Expected | undefined {
  const inside = open.at(-1)
  if (token === ',' && inside !== undefined) return inside === '{' ? 'key' : 'value'
  const isEnd = (token === '}' && inside === '{') || (token === ']' && inside === '[')
  return isEnd ? close(open) : undefined
}
function followValue(token: Token, open: Container[]): Expected | undefined {
  if (token === 'string' || token === 'word') return 'more'
  if (token !== '{' && token !== '[') return undefined
  open.push(token)
  return token === '{' ? 'first-key' : 'first-value'
}
function close(open: Container[]): Expected {
  open.pop()
  return 'more'
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (' \t\n\r'.includes(text[at] ?? 'x')) at++
  return at
}
