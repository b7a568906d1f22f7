import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { TurnCache } from 'svc/providers'
import type { ToolCall, Turn } from 'svc/providers'
import { HiddenProperty } from '../../../core/schema/hidden-property.ts'

const said = (text: string): Extract<Turn, { role: 'assistant' }> => ({ role: 'assistant', text, calls: [] })
const call = (id: string): ToolCall => ({ id, name: 'look', args: {} })
const COUNT = 150_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
function bytesAlive(): number {
  collect()
  return getHeapStatistics().used_heap_size
}

const encode = (turn: Turn): string => JSON.stringify(turn)

describe('what is kept with a turn', () => {
  it.each<[string, () => (text: string) => unknown]>([
    [
      'encoded turns',
      () => {
        const cache = new TurnCache()
        return (text) => cache.get(said(text), () => text)
      },
    ],
    [
      'what is worked out for a call',
      () => {
        const lengths = new HiddenProperty<ToolCall, number>()
        return (text) => lengths.get(call(text), ({ id }) => id.length)
      },
    ],
  ])('%s leave nothing behind', (_, open) => {
    const keep = open()
    keep('first')
    const before = bytesAlive()
    // Until a collection all of them are alive: what is kept by the cache itself has grown to hold them.
    const all = Array.from({ length: COUNT }, (__, at) => keep(String(at)))
    expect(all).toHaveLength(COUNT)
    all.length = 0
    expect(bytesAlive() - before).toBeLessThan(1_000_000)
    keep('last')
  })

  it('is worked out once, and not taken over by a copy that says something else', () => {
    const cache = new TurnCache()
    const turn = said('one')
    expect(cache.get(turn, encode)).toContain('one')
    expect(cache.get(turn, () => 'again')).toContain('one')
    expect(cache.get({ ...turn, text: 'two' }, encode)).toContain('two')
    expect(new TurnCache().get(turn, () => 'of another vendor')).toBe('of another vendor')
    expect(JSON.stringify(turn)).toBe(JSON.stringify(said('one')))
  })
  it('is worked out each time for what cannot hold it', () => {
    const cache = new TurnCache()
    const turn = Object.freeze(said('one'))
    expect(cache.get(turn, encode)).toBe(cache.get(turn, encode))
  })
})
