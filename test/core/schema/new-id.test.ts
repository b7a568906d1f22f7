import { validate, version } from 'uuid'
import { afterEach, expect, it, vi } from 'vitest'
import { newId } from '../../../core/schema/new-id.ts'

const timeOf = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

afterEach(() => {
  vi.useRealTimers()
})

it('makes ids of version 7 with the time, that sort in the order they were made, each once', () => {
  // Another test of this process may have made ids while a clock of its own was ahead.
  const now = Math.max(Date.now(), timeOf(newId()) + 1)
  vi.useFakeTimers({ toFake: ['Date'], now })
  const ids = Array.from({ length: 5_000 }, newId)
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  expect(timeOf(ids[0] ?? '')).toBe(now)
})

it('keeps the order while the clock is set back', () => {
  const before = newId()
  vi.useFakeTimers({ toFake: ['Date'], now: timeOf(before) - 60_000 })
  expect(newId() > before).toBe(true)
})
