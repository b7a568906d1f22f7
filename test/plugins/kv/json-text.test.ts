import { expect, it } from 'vitest'
import { readValue } from '../../../plugins/kv/json-text.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

it.each([
  ['{"value":1}', '1'],
  ['{ "x": 1, "value" : {"value": 2} , "y": [] }', '{"value": 2}'],
  ['{"value":null}', 'null'],
  ['{"v\\u0061lue":"}\\","}', '"}\\","'],
  ['{"value":1,"value":2}', '2'],
  ['{"value":12345678901234567890.1e400}', '12345678901234567890.1e400'],
  ['{"x":"value","value":"v"}', '"v"'],
  ['\ufeff {"value":"\\\\"} ', '"\\\\"'],
])('the value of %s is %s', (body, value) => {
  expect(readValue(bytes(body), 10)).toBe(value)
})

it.each([
  '{}',
  '[{"value":1}]',
  '{"a":{"value":1}}',
  '{"a":["value",{"value":1}]}',
  '5',
  'null',
  '"value"',
  '{"__proto__":{"value":1}}',
])('%s has no member value and is taken whole', (body) => {
  expect(readValue(bytes(body), 10)).toBe(body)
})

it.each(['', ' ', '{', '{"value":}', '{"value":1}x', '\u00a01', "{'value':1}", '{"value":"a\nb"}', 'undefined', 'NaN'])(
  '%j is refused',
  (body) => {
    expect(() => readValue(bytes(body), 10)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  },
)

it('bytes that are not UTF-8 are refused', () => {
  expect(() => readValue(new Uint8Array([0x22, 0xff, 0x22]), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})

it('nesting is limited, and brackets in strings do not count', () => {
  expect(() => readValue(bytes('['.repeat(11) + ']'.repeat(11)), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
  expect(() => readValue(bytes('['.repeat(100_000) + ']'.repeat(100_000)), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
  expect(readValue(bytes('"[[[[[[[[[[[[[["'), 10)).toBe('"[[[[[[[[[[[[[["')
})
