import { describe, expect, it } from 'vitest'
import { TurnQueue } from '../../../plugins/chat/turn/turn-queue.ts'

describe('a turn queue', () => {
  it('run one of a key at a time in order, and keys beside each other', async () => {
    const log: string[] = []
    const gates = new Map<string, PromiseWithResolvers<void>>()
    const queue = new TurnQueue<string>(async (item, next) => {
      log.push(`+${item}`)
      await gates.get(item)?.promise
      log.push(`-${item} then ${next() ?? 'nothing'}`)
    })
    for (const item of ['a1', 'a2', 'b1']) gates.set(item, Promise.withResolvers())
    const done = Promise.all([
      queue.add('a', 'a1', Promise.resolve()),
      queue.add('a', 'a2', Promise.resolve()),
      queue.add('b', 'b1', Promise.resolve()),
    ])
    expect(queue.length('a')).toBe(2)
    expect(queue.total).toBe(3)
    gates.get('b1')?.resolve()
    gates.get('a2')?.resolve()
    gates.get('a1')?.resolve()
    await done
    expect(log.filter((line) => line.includes('a'))).toEqual(['+a1', '-a1 then a2', '+a2', '-a2 then nothing'])
    expect(queue.total).toBe(0)
  })

  it('leave out what never became ready', async () => {
    const ran: string[] = []
    const queue = new TurnQueue<string>(async (item) => {
      ran.push(item)
    })
    await Promise.all([
      queue.add('a', 'lost', Promise.reject(new Error('not on disk'))),
      queue.add('a', 'kept', Promise.resolve()),
    ])
    expect(ran).toEqual(['kept'])
    expect(queue.length('a')).toBe(0)
  })
})
