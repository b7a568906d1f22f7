import { nextHop, readHops } from 'svc/internal'
import { expect, it } from 'vitest'

const limit = { max: 3, key: 'a2a.max_hops' }

it('counts the daemons that a message came through, up to a limit', () => {
  expect(readHops(undefined, limit)).toBe(0)
  expect(readHops(3, limit)).toBe(3)
  expect(() => readHops(4, limit)).toThrow('came through 4 daemons, a2a.max_hops allows 3')
  expect(nextHop(undefined, limit)).toBe(1)
  expect(nextHop(2, limit)).toBe(3)
  expect(() => nextHop(3, limit)).toThrow('a2a.max_hops')
})
it.each([-1, 1.5, '1', Number.NaN, 2 ** 60, {}, [1]])('refuses %s for a count', (value) => {
  expect(() => readHops(value, limit)).toThrow('must be a whole number')
})
