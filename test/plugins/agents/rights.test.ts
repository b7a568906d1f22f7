import { expect, it } from 'vitest'
import { grants } from '../../../plugins/agents/rights.ts'

it.each([
  [['*'], 'note', true, true],
  [['self.*'], 'note', true, true],
  [['self.*'], 'note', false, false],
  [['self.note'], 'note', true, true],
  [['self.note'], 'notes', true, false],
  [['self.a*'], 'b', true, false],
  [['a*c'], 'abbbc', true, true],
  [['a*c'], 'abbb', true, false],
  [['a*b*c'], 'a-b-b-c', true, true],
  [['**'], '', true, true],
  [[''], 'a', true, false],
  [[], 'a', true, false],
  [['x', 'self.*'], 'y', true, true],
  // A pattern is text with stars, never a regular expression.
  [['a.c'], 'abc', true, false],
  [['[a-z]+'], 'abc', true, false],
])('%j and "%s" (own: %s) gives %s', (patterns, name, own, granted) => {
  expect(grants(patterns, name, own)).toBe(granted)
})

// With backtracking this would not end.
it('a hostile pattern is answered', () => {
  expect(grants([`${'*a'.repeat(50)}b`], 'a'.repeat(2000), true)).toBe(false)
})
