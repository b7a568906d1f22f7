import { expect, it } from 'vitest'
import { readValue } from '../../../plugins/kv/json-text.ts'

const read = (body: Uint8Array, depth: number): string => readValue(body, 'theme', depth)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

it.each([
  ['{"value":1}', '1'],
  ['{ "key": "theme", "value" : {"value": 2} }', '{"value": 2}'],
  ['{"value":null}', 'null'],
  ['{"v\\u0061lue":"}\\","}', '"}\\","'],
  ['{"value":1,"value":2}', '2'],
  ['{"value":12345678901234567890.1e400}', '12345678901234567890.1e400'],
  ['{"k\\u0065y":"theme","value":"v"}', '"v"'],
  ['\ufeff {"value":"\\\\"} ', '"\\\\"'],
])('the value of %s is %s', (body, value) => {
  expect(read(bytes(body), 10)).toBe(value)
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
  '{"vlaue":5}',
])('%s has no member value', (body) => {
  expect(() => read(bytes(body), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/^value: is missing/) }),
  )
})

it.each([
  ['{"value":1,"vlaue":2}', 'vlaue: is no field'],
  ['{"value":1,"key":"other"}', 'key: the body names another key'],
  ['{"value":1,"key":null}', 'key: the body names another key'],
])('%s has more than can be kept', (body, message) => {
  expect(() => read(bytes(body), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(message) }),
  )
})

it.each(['', ' ', '{', '{"value":}', '{"value":1}x', '\u00a01', "{'value':1}", '{"value":"a\nb"}', 'undefined', 'NaN'])(
  '%j is refused',
  (body) => {
    expect(() => read(bytes(body), 10)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  },
)

it('bytes that are not UTF-8 are refused', () => {
  expect(() => read(new Uint8Array([0x22, 0xff, 0x22]), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})

it('nesting is limited, and brackets in strings do not count', () => {
  expect(() => read(bytes('['.repeat(11) + ']'.repeat(11)), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
  expect(() => read(bytes('['.repeat(100_000) + ']'.repeat(100_000)), 10)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
  expect(read(bytes('{"value":"[[[[[[[[[[[[[["}'), 10)).toBe('"[[[[[[[[[[[[[["')
})
