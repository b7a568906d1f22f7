import { describe, expect, expectTypeOf, it } from 'vitest'
import { isObject, omitUndefined } from '../../../core/schema/object.ts'

describe('omitUndefined', () => {
  it('leaves out what is undefined, and nothing else', () => {
    expect(Object.keys(omitUndefined({ a: undefined, b: null, c: 0, d: '', e: false }))).toEqual(['b', 'c', 'd', 'e'])
  })
  it('has keys that may be missing, and are never undefined', () => {
    const given: { readonly id: string; readonly name: string | undefined } = { id: '1', name: undefined }
    const omitted = omitUndefined(given)
    expectTypeOf(omitted.id).toEqualTypeOf<string>()
    const exact: { id: string; name?: string } = omitted
    expect('name' in exact).toBe(false)
  })
})

describe('isObject', () => {
  it('is what JSON writes between braces', () => {
    expect([{}, { a: 1 }, [], null, undefined, 'a', 1].map(isObject)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })
})
