import { v7 } from 'uuid'
import { afterEach, describe, expect, it, vi } from 'vitest'

// Rows of one batch and of one millisecond are read back in the order of their ids, so the package has to keep that
// order.
describe('ids by time', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('are different UUIDv7 in order, also within a millisecond and when the clock goes back', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const at = (time: number): string => {
      vi.setSystemTime(time)
      return v7()
    }
    const ids = [
      ...Array.from({ length: 10_000 }, () => at(1_800_000_000_000)),
      at(1_700_000_000_000),
      at(1_900_000_000_000),
    ]
    expect(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))).toBe(
      true,
    )
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual(ids)
    expect(ids.at(-1)?.replaceAll('-', '').startsWith((1_900_000_000_000).toString(16).padStart(12, '0'))).toBe(true)
  })
})
