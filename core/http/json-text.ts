import { isUtf8 } from 'node:buffer'
import { Refusal } from '../errors/error.ts'
import { nestingLimit, readJson, TooDeep } from '../schema/nesting.ts'

/** Bytes as a JSON value. Throws `invalid_request` with the position of the first error (Interface 7). */
export function parseJson(bytes: Uint8Array, maxDepth: number = nestingLimit()): unknown {
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'The body is not valid UTF-8')
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const text = raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw
  let value: unknown
  try {
    value = readJson(text, maxDepth)
  } catch (error) {
    if (error instanceof TooDeep)
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
  const open: ('{' | '[')[] = []
  let expect: 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'more' = 'value'
  let at = 0
  for (;;) {
    const start = skipSpace(text, at)
    const first = text[start]
    if (first === undefined) return start
    const sign = '{}[]:,'.includes(first) ? first : undefined
    const string = first === '"'
    let end = start + 1
    if (string) {
      end = scanString(text, start)
      // In a place where no string may stand, that is the error.
      if (end < 0) return expect === 'colon' || expect === 'more' ? start : -1 - end
    } else if (sign === undefined) {
      word.lastIndex = start
      if (!word.test(text)) return start
      end = word.lastIndex
    }
    if (expect === 'colon') {
      if (sign !== ':') return start
      expect = 'value'
    } else if (expect === 'key' || expect === 'first-key') {
      if (string) expect = 'colon'
      else if (sign === '}' && expect === 'first-key') {
        open.pop()
        expect = 'more'
      } else return start
    } else if (expect === 'more') {
      const inside = open.at(-1)
      if (sign === ',' && inside) expect = inside === '{' ? 'key' : 'value'
      else if ((sign === '}' && inside === '{') || (sign === ']' && inside === '[')) open.pop()
      else return start
    } else if (sign === '{') {
      open.push('{')
      expect = 'first-key'
    } else if (sign === '[') {
      open.push('[')
      expect = 'first-value'
    } else if (sign === ']' && expect === 'first-value') {
      open.pop()
      expect = 'more'
    } else if (sign === undefined) expect = 'more'
    else return start
    at = end
  }
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (' \t\n\r'.includes(text[at] ?? 'x')) at++
  return at
}
