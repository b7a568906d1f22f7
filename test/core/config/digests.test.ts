import { expect, it } from 'vitest'
import * as v from 'valibot'
import { withoutDefaults } from '../../../core/config/digests.ts'

it('a default that is written out is as one that is not, at every depth', () => {
  const schema = v.object({
    adopt: v.optional(v.boolean(), true),
    sources: v.optional(v.array(v.string()), ['npm']),
    limits: v.optional(v.object({ bytes: v.optional(v.number(), 5), files: v.optional(v.number(), 2) }), {}),
  })
  expect(withoutDefaults(schema, { adopt: true, sources: ['npm'], limits: { bytes: 5, files: 3 } })).toEqual({
    limits: { files: 3 },
  })
  expect(withoutDefaults(schema, { adopt: false, sources: [], unknown: 1 })).toEqual({
    adopt: false,
    sources: [],
    unknown: 1,
  })
  expect(withoutDefaults(v.object({ needed: v.string() }), { needed: 'a' })).toEqual({ needed: 'a' })
})
