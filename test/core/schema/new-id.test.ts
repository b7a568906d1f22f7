import { validate, version } from 'uuid'
import { expect, it } from 'vitest'
import { newId } from '../../../core/schema/new-id.ts'

it('makes ids of version 7 that sort in the order they were made, each once', () => {
  const before = Date.now()
  const ids = Array.from({ length: 5_000 }, newId)
  const time = Number.parseInt((ids[0] ?? '').replace('-', '').slice(0, 12), 16)
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  expect(time).toBeGreaterThanOrEqual(before)
  expect(time).toBeLessThanOrEqual(Date.now())
})
