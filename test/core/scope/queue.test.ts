import { describe, expect, it } from 'vitest'
import { KeyedQueue, SerialQueue } from '../../../core/scope/queue.ts'

describe('SerialQueue', () => {
  it('runs work one at a time, in order', async () => {
    const queue = new SerialQueue()
    const events: string[] = []
    const first = Promise.withResolvers<void>()
    const one = queue.run(async () => {
      events.push('one begins')
      await first.promise
      events.push('one ends')
    })
    const two = queue.run(() => events.push('two'))
    await Promise.resolve()
    first.resolve()
    await Promise.all([one, two])
    expect(events).toEqual(['one begins', 'one ends', 'two'])
  })
  it('gives a rejection to its caller and goes on', async () => {
    const queue = new SerialQueue()
    const failed = queue.run(() => Promise.reject(new Error('first')))
    const next = queue.run(() => 'second')
    await expect(failed).rejects.toThrow('first')
    expect(await next).toBe('second')
  })
  it('is idle when all of it has ended, also after a failure', async () => {
    const queue = new SerialQueue()
    let ended = false
    const failed = queue.run(async () => {
      await Promise.resolve()
      ended = true
      throw new Error('failed')
    })
    await Promise.all([queue.idle(), expect(failed).rejects.toThrow('failed')])
    expect(ended).toBe(true)
  })
})

describe('KeyedQueue', () => {
  it('runs work of different keys side by side, of one key in order, and forgets a key without work', async () => {
    const queue = new KeyedQueue()
    const held = Promise.withResolvers<void>()
    const events: string[] = []
    const one = queue.run('a', async () => {
      await held.promise
      events.push('a1')
    })
    const two = queue.run('a', () => events.push('a2'))
    await queue.run('b', () => events.push('b1'))
    expect([events, queue.size]).toEqual([['b1'], 1])
    held.resolve()
    await Promise.all([one, two])
    expect([events, queue.size]).toEqual([['b1', 'a1', 'a2'], 0])
  })
})
