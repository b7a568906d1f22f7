import { describe, expect, it } from 'vitest'
import { lazyClient } from 'svc/providers'
import type { CompletionEvent, ProviderClient } from 'svc/providers'
import { collect, request, textOf } from '../../contract/provider.ts'

const never = new AbortController().signal
/** A client that counts how often it was asked and left. */
function client(): ProviderClient & { asked: number; left: number } {
  const counted = {
    asked: 0,
    left: 0,
    async *complete(): AsyncGenerator<CompletionEvent> {
      counted.asked++
      try {
        yield { type: 'text', delta: 'a' }
        yield { type: 'text', delta: 'b' }
        yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
      } finally {
        counted.left++
      }
    },
    probe: async () => ({ model: 'm' }),
  }
  return counted
}

describe('a client that is loaded on first use', () => {
  it('is loaded once, also by calls at the same time', async () => {
    let loads = 0
    const real = client()
    const lazy = lazyClient(async () => {
      loads++
      return real
    })
    expect(loads).toBe(0)
    expect((await Promise.all([collect(lazy, request('x')), collect(lazy, request('x'))])).map(textOf)).toEqual([
      'ab',
      'ab',
    ])
    expect(textOf(await collect(lazy, request('x')))).toBe('ab')
    expect([loads, real.asked, real.left]).toEqual([1, 3, 3])
  })
  it('is loaded again after a failure', async () => {
    let loads = 0
    const lazy = lazyClient(async () => {
      if (++loads === 1) throw new Error('no such file')
      return client()
    })
    await expect(collect(lazy, request('x'))).rejects.toThrow('no such file')
    expect(await lazy.probe(never)).toEqual({ model: 'm' })
    expect(loads).toBe(2)
  })
  it('that is left while it is loaded is not asked', async () => {
    const real = client()
    const loaded = Promise.withResolvers<ProviderClient>()
    const answer = lazyClient(() => loaded.promise).complete(request('x'), never)
    const events = answer[Symbol.asyncIterator]()
    const first = events.next()
    await events.return?.()
    loaded.resolve(real)
    expect(await first).toEqual({ done: true, value: undefined })
    expect(real.asked).toBe(0)
  })
  it('that is left in the middle lets go', async () => {
    const real = client()
    for await (const _ of lazyClient(async () => real).complete(request('x'), never)) break
    expect(real.left).toBe(1)
  })
  it('can what it said it can, and nothing else', async () => {
    expect(Object.keys(lazyClient(async () => client())).toSorted()).toEqual(['complete', 'probe'])
    const lazy = lazyClient(async () => ({ ...client(), models: async () => ['m'] }), { models: true, embed: true })
    expect(await lazy.models?.(never)).toEqual(['m'])
    await expect(lazy.embed?.({ model: 'm', texts: [] }, never)).rejects.toThrow('cannot embed')
  })
})
