import { stableId } from 'svc/internal'
import { expect, it } from 'vitest'

it.each([
  ['the separator', ['a\0b', 'c'], ['a', 'b\0c']],
  ['the separator at an end', ['a\0', 'b'], ['a', '\0b']],
  ['a part that holds two', ['a\0b'], ['a', 'b']],
  ['halves of characters', ['\ud800'], ['\ud801']],
  ['an escape', ['\\u0000'], ['\0']],
])('ids of other parts differ, also with %s in them', (_, some, others) => {
  expect(stableId(...some)).not.toBe(stableId(...others))
  expect(stableId(...some)).toBe(stableId(...some))
})
it('keeps the ids that were given out before', () => {
  expect(stableId('tool', 'turn', 'call')).toBe('fdbfcadb-6acb-5e2a-b987-693f875a7faf')
})
