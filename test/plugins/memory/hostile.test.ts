import { describe, expect, it, onTestFinished } from 'vitest'
import { MemoryRequests } from '../../../plugins/memory/routes/requests.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { memoryOf, openStage } from './open-store.ts'

const operator = { kind: 'operator' } as const

describe.each(['SQLite', 'PostgreSQL'])('on %s', (engine) => {
  it('a text that is no id and no name finds nothing, whatever it is', async () => {
    const database = engine === 'SQLite' ? undefined : await createTestDatabase()
    if (database) onTestFinished(() => database[Symbol.asyncDispose]())
    const { opened } = await openStage({}, { url: database?.url ?? 'sqlite::memory:' })
    const { memories, notes } = opened
    await memories.add([memoryOf('a', 'The treasure is gold', { key: 'plan' })])
    const key = new MemoryRequests(opened, operator)
    for (const text of ['\0', 'a\uD800', '%', "' OR 1=1 --", '__proto__', '\u202Eabc', '{"a":1}', 'treasure NOT x']) {
      const reader = { kind: 'agent', agentId: 'b', userId: text, sessionId: text } as const
      expect(await key.forgetAll([text])).toEqual({ deleted: 0, failed: 1, total: 1 })
      expect(await memories.find(text)).toBeUndefined()
      expect(await key.list({ category: text })).toMatchObject({ total: 0 })
      expect(await key.list({}, { user: text })).toMatchObject({ total: 0 })
      expect(await notes.recall('a', text)).toEqual([])
      expect(await memories.search({ text, category: text, limit: 5, reader })).toEqual([])
      await expect(memories.add([memoryOf('a', 'z', { supersedes: text })])).rejects.toMatchObject({
        code: expect.stringMatching(/invalid_request|memory_not_found/),
      })
    }
  })
})

describe.each(['SQLite', 'PostgreSQL'])('what is told twice on %s', (engine) => {
  const open = async () => {
    const database = engine === 'SQLite' ? undefined : await createTestDatabase()
    if (database) onTestFinished(() => database[Symbol.asyncDispose]())
    return openStage({}, { url: database?.url ?? 'sqlite::memory:' })
  }

  it('is found by the id of its request, whatever the order of texts is', async () => {
    const { memories, store } = (await open()).opened
    const id = '0f6a1b3c-0000-4000-8000-000000000000'
    await memories.add([
      memoryOf('a', 'first', { idempotencyKey: `${id}:0:0` }),
      memoryOf('a', 'second', { idempotencyKey: `${id}:1:0` }),
      memoryOf('a', 'of another', { idempotencyKey: `${id}0:0` }),
    ])
    expect((await store.reported(id)).map(({ content }) => content).toSorted()).toEqual(['first', 'second'])
  })

  it('is one memory, though it is twice in one import', async () => {
    const { opened } = await open()
    const key = new MemoryRequests(opened, operator)
    await key.imported('a', [{ content: 'twice' }, { content: 'twice' }])
    await Promise.all([1, 2].map(() => key.imported('a', [{ content: 'twice' }, { content: 'once' }])))
    expect(await key.list({})).toMatchObject({ total: 2 })
  })

  it('is known to be deleted since its last deletion', async () => {
    const { opened, db } = await open()
    const key = new MemoryRequests(opened, operator)
    const [entry] = [{ content: 'again' }]
    await key.imported('a', [entry])
    const [first] = (await key.list({})).memories
    await key.forget(first?.id ?? '')
    await db.run`UPDATE memory_tombstone SET deleted_at = '2020-01-01T00:00:00.000Z', deleted_by = 'somebody else'`
    await key.imported('a', [entry])
    await key.forget(first?.id ?? '')
    await opened.upkeep.sweep()
    expect(await key.history(first?.id ?? '')).toMatchObject({
      deleted_at: expect.not.stringMatching(/^2020/),
      deleted_by: 'operator',
    })
  })

  it('changes nothing of a memory that is superseded at the same time', async () => {
    const { memories } = (await open()).opened
    const [former] = await memories.add([memoryOf('a', 'former')])
    const id = former?.id ?? ''
    const [changed, added] = await Promise.allSettled([
      memories.update(id, 'changed', 'ann', { kind: 'person', labels: [] }),
      memories.add([memoryOf('a', 'newer', { supersedes: id })]),
    ])
    // PostgreSQL may do the one or the other first.
    expect([engine, added.status]).toEqual([engine, 'fulfilled'])
    if (engine === 'SQLite') expect(changed.status).toBe('rejected')
    const newest = added.status === 'fulfilled' ? added.value[0]?.id : ''
    const { versions } = await memories.history(newest ?? '', operator)
    expect(versions.map(({ content }) => content)).toEqual([
      'former',
      ...(changed.status === 'fulfilled' ? ['changed'] : []),
      'newer',
    ])
  })
})

it('what differs in a number or in a "not" is no duplicate', async () => {
  const { opened, embed } = await openStage({ duplicate_threshold: 0.6 })
  await opened.memories.add(
    [
      'The meeting with the team about the new house is on 3 May',
      'The meeting with the team about the new house is on 4 May',
      'Ann is allergic to nuts, milk and fish',
      'Ann is not allergic to nuts, milk and fish',
    ].map((text) => memoryOf('a', text)),
  )
  await embed('a')
  expect(await opened.upkeep.duplicates('a')).toEqual([])
})

describe('an agent finds', () => {
  const found = async (grants: Record<string, [string[], string[]]>, agentId: string): Promise<readonly string[]> => {
    const { opened } = await openStage({}, { grants })
    for (const id of Object.keys(grants))
      await opened.memories.add([
        memoryOf(id, `treasure of ${id}`),
        memoryOf(id, `treasure noted by ${id}`, { key: 'secret' }),
      ])
    const reader = { kind: 'agent', agentId } as const
    const memories = await opened.memories.search({ text: 'treasure', limit: 9, reader })
    return memories.map(({ memory }) => memory.content).toSorted()
  }
  const open: [string[], string[]] = [['self.*'], ['*']]

  it('no note that its manifest does not let it read, and none of another agent', async () => {
    expect(await found({ a: [['self.memory', 'b.*'], ['self.*']], b: open }, 'a')).toEqual([
      'treasure of a',
      'treasure of b',
    ])
    expect(await found({ a: [['*'], ['self.*']], b: [['self.*'], ['self.*']] }, 'a')).toEqual([
      'treasure noted by a',
      'treasure of a',
    ])
  })

  it('nothing of one whose name begins with the name of one that it trusts', async () => {
    const reads = (pattern: string) =>
      found({ a: [['self.memory', pattern], []], ann: open, 'ann.x': open, annx: open, 'self.agent': open }, 'a')
    const own = 'treasure of a'
    expect(await reads('ann.*')).toEqual([own, 'treasure of ann'])
    expect(await reads('ann.agent')).toEqual([own, 'treasure of ann'])
    expect(await reads('ann.x.agent')).toEqual([own, 'treasure of ann.x'])
    expect(await reads('ann')).toEqual([own])
    expect(await reads('*.agent')).toHaveLength(5)
  })
})
