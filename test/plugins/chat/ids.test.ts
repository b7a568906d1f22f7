import { describe, expect, it } from 'vitest'
import { timeId } from '../../../plugins/chat/ids.ts'

describe('ids by time', () => {
  it('are UUIDs of version 7, all different and in order, also within a millisecond and when the clock goes back', () => {
    const ids = [
      ...Array.from({ length: 10_000 }, () => timeId(1_800_000_000_000)),
      timeId(1_700_000_000_000),
      timeId(1_900_000_000_000),
    ]
    expect(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))).toBe(
      true,
    )
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual(ids)
    expect(ids.at(-1)?.replaceAll('-', '').startsWith((1_900_000_000_000.).toString(16).padStart(12, '0'))).toBe(true)
  })
})
