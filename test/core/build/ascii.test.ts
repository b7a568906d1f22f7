import { expect, test } from 'vitest'
import { toAscii } from '../../../core/build/ascii.ts'

test('characters that are not ASCII become escapes that mean the same in strings, templates and expressions', () => {
  const code = String.fromCodePoint(0x2026, 0x1fab6, 0x431)
  const evaluate = (text: string): unknown => JSON.parse(toAscii(JSON.stringify(text)))
  expect(evaluate(code)).toBe(code)
  expect(toAscii(`/[${code}]/u`)).toBe(String.raw`/[\u2026\ud83e\udeb6\u0431]/u`)
  expect(new RegExp(toAscii(`^[${code}]+$`), 'u').test(code)).toBe(true)
})

test('backslashes before them are counted', () => {
  const dots = String.fromCodePoint(0x2026)
  expect(toAscii(`'\\\\${dots}'`)).toBe(String.raw`'\\\u2026'`)
  expect(toAscii(`'\\${dots}'`)).toBe(String.raw`'\u2026'`)
})

test('a raw template would show its escapes: it is refused', () => {
  const raw = 'String.raw`' + String.fromCodePoint(0x2026) + '`'
  expect(() => toAscii(raw)).toThrow('String.raw')
})
