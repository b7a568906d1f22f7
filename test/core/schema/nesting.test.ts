import { expect, it } from 'vitest'
import { checkDepth, NestingError } from '../../../core/schema/nesting.ts'

it('looks at a value once in each level, however often others refer to it', () => {
  // Ten times ten times ten…: a tree of 10^40 values, made of forty.
  let value: unknown = 'x'
  for (let level = 0; level < 40; level++) value = Array.from({ length: 10 }, () => value)
  expect(() => checkDepth(value, 64)).not.toThrow()
  expect(() => checkDepth(value, 39)).toThrow(NestingError)
  const endless: unknown[] = []
  endless.push(endless, endless)
  expect(() => checkDepth(endless, 64)).toThrow(NestingError)
})
