import { runAs } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import { describe, expect, it } from 'vitest'
import type { MemoryReader } from '../../../plugins/memory/contract.ts'
import { memoryTools } from '../../../plugins/memory/tools.ts'
import { memoryOf, openStage } from './open-store.ts'

const operator: MemoryReader = { kind: 'operator' }
const DAY_MS = 86_400_000
const PERSON = { kind: 'person', labels: [] } as const

describe('memories', () => {
  it('are added once for an idempotency key, changed with a history, and superseded', async () => {
    const { opened } = await openStage()
    const { memories } = opened
    const [first] = await memories.add([memoryOf('a', 'Lives in Graz', { idempotencyKey: 'turn 1' })])
    const [again] = await memories.add([memoryOf('a', 'Lives elsewhere', { idempotencyKey: 'turn 1' })])
    expect(again).toEqual(first)
    const id = first?.id ?? ''
    expect(await memories.update(id, 'Lives in Linz', 'a person', PERSON)).toMatchObject({
      id,
      content: 'Lives in Linz',
    })
    const [newer] = await memories.add([memoryOf('a', 'Lives in Wien', { supersedes: id })])
    expect((await memories.list({ reader: operator, limit: 10, offset: 0 })).memories).toEqual([newer])
    expect(
      (await memories.search({ text: 'lives where?', limit: 5, reader: operator })).map(({ memory }) => memory.content),
    ).toEqual(['Lives in Wien'])
    const { versions } = await memories.history(newer?.id ?? '', operator)
    expect(versions.map(({ content }) => content)).toEqual(['Lives in Graz', 'Lives in Linz', 'Lives in Wien'])
    await expect(memories.add([memoryOf('a', 'Lives in Rom', { supersedes: id })])).rejects.toThrow('supersedes')
    await expect(memories.add([memoryOf('b', 'Lives in Rom', { supersedes: newer?.id ?? '' })])).rejects.toThrow()
    await expect(memories.update(id, 'x', 'a person', PERSON)).rejects.toThrow('superseded by')
  })

  it('have the source of the write that made their content, and the history has that of each version', async () => {
    const { opened } = await openStage()
    const { memories, notes } = opened
    const own = { kind: 'agent', turnId: 'turn 1', labels: ['UserInput'] } as const
    const outside = { kind: 'agent', turnId: 'turn 2', labels: ['UserInput', 'ExternalNetwork'] } as const
    await notes.put('a', 'bank', 'DE11', own)
    await notes.put('a', 'bank', 'DE99', outside)
    const [note] = (await memories.list({ reader: operator, limit: 10, offset: 0 })).memories
    expect(note).toMatchObject({ content: 'DE99', source: outside })
    const person = { kind: 'person', person: 'operator', labels: [] } as const
    expect(await memories.update(note?.id ?? '', 'DE11', 'operator', person)).toMatchObject({ source: person })
    const { versions } = await memories.history(note?.id ?? '', operator)
    expect(versions.map(({ content, source }) => [content, source])).toEqual([
      ['DE11', own],
      ['DE99', outside],
      ['DE11', person],
    ])
  })

  it('leave nothing of their content when they are forgotten, but a mark', async () => {
    const { opened, db, embed } = await openStage()
    const { memories } = opened
    const [old] = await memories.add([memoryOf('a', 'The codeword is aubergine')])
    await memories.update(old?.id ?? '', 'The codeword is rhubarb', 'a person', PERSON)
    const [memory] = await memories.add([memoryOf('a', 'The codeword is parsnip', { supersedes: old?.id ?? '' })])
    await embed('a')
    const id = memory?.id ?? ''
    expect(await memories.search({ text: 'codeword', limit: 5, reader: operator })).toHaveLength(1)
    expect(await memories.forget([id, 'nobody'], 'a person')).toEqual({ deleted: 1, failed: ['nobody'] })
    expect(await memories.search({ text: 'codeword', limit: 5, reader: operator })).toEqual([])
    for (const table of ['memory_entry', 'memory_version', 'memory_vector', 'memory_tombstone']) {
      const rows = await db.all([`SELECT * FROM ${table}`] as unknown as TemplateStringsArray)
      expect(JSON.stringify(rows)).not.toMatch(/aubergine|rhubarb|parsnip/)
    }
    expect((await memories.history(id, operator)).deleted).toEqual({ at: expect.stringMatching(/Z$/), by: 'a person' })
  })

  it('are refused beyond max_tags, max_metadata_bytes and max_value_chars', async () => {
    const { opened } = await openStage({ max_tags: 1, max_metadata_bytes: 20, max_value_chars: 10 })
    const add = (more: object) => opened.memories.add([memoryOf('a', 'x', more)])
    await expect(add({ tags: ['a', 'b'] })).rejects.toThrow('plugins.memory.max_tags')
    await expect(add({ metadata: { long: 'x'.repeat(20) } })).rejects.toThrow('plugins.memory.max_metadata_bytes')
    await expect(add({ content: 'x'.repeat(11) })).rejects.toThrow('plugins.memory.max_value_chars')
    await expect(add({ level: 'session' })).rejects.toThrow('session_id')
    await expect(add({ content: ' ' })).rejects.toThrow('content')
    await expect(add({ content: 'a\0b' })).rejects.toThrow('NUL')
    await expect(add({ confidence: 2 })).rejects.toThrow('confidence')
    expect(await add({ tags: ['a'] })).toHaveLength(1)
  })

  it('keep no more than max_versions former contents', async () => {
    const { opened } = await openStage({ max_versions: 2 })
    const [memory] = await opened.memories.add([memoryOf('a', 'one')])
    const id = memory?.id ?? ''
    for (const content of ['two', 'three', 'four']) await opened.memories.update(id, content, 'a person', PERSON)
    const { versions } = await opened.memories.history(id, operator)
    expect(versions.map(({ content }) => content)).toEqual(['two', 'three', 'four'])
  })
})

describe('memory_search and memory_forget', () => {
  it('act for who speaks in the turn, though the agent calls them', async () => {
    const { opened } = await openStage()
    const of = (userId?: string) => omitUndefined({ level: 'user' as const, userId })
    const [owners, anns] = await opened.memories.add([
      memoryOf('a', 'The code of the owner is 4711', of()),
      memoryOf('a', 'The code of Ann is 2222', of('ann')),
      memoryOf('a', 'The code of Bob is 3333', of('bob')),
    ])
    const tools = new Map(memoryTools(async () => opened).map((tool) => [tool.name, tool]))
    const call = (tool: string, input: object, user?: string): Promise<unknown> => {
      const context = omitUndefined({ agentId: 'a', sessionId: 's', signal: AbortSignal.timeout(60_000), user })
      return runAs({ kind: 'agent', id: 'a' }, async () => tools.get(tool)?.run(input as never, context as never))
    }
    const found = async (user?: string): Promise<unknown> =>
      JSON.parse(String(await call('memory_search', { query: 'code', limit: 10 }, user)))
    expect(await found()).toMatchObject([{ id: owners?.id }])
    expect(await found('ann')).toMatchObject([{ id: anns?.id }])
    expect(JSON.parse(String(await call('memory_forget', { ids: [owners?.id, anns?.id] }, 'ann')))).toEqual({
      deleted: 1,
      not_found: [owners?.id],
    })
  })
})

describe('what happens with time', () => {
  it('makes room for max_memories_per_agent: the weakest go, notes stay', async () => {
    const { opened, settled } = await openStage({ max_memories_per_agent: 3 })
    await opened.notes.put('a', 'key', 'a note', { kind: 'agent', labels: [] })
    for (const [at, confidence] of [0.9, 0.1, 0.8, 0.2, 0.7].entries())
      await opened.memories.add([memoryOf('a', `fact ${at}`, { confidence })])
    await settled()
    const { memories } = await opened.memories.list({ reader: operator, limit: 10, offset: 0 })
    expect(memories.map(({ content }) => content).sort()).toEqual(['a note', 'fact 0', 'fact 2', 'fact 4'])
  })

  it('forgets sessions after session_ttl_hours, and with expiry what nobody uses', async () => {
    const { opened, db } = await openStage({ session_ttl_hours: 24, expiry: true, agent_expiry_days: 30 })
    const { memories, upkeep } = opened
    await memories.add([
      memoryOf('a', 'of a session', { level: 'session', sessionId: 's' }),
      memoryOf('a', 'of the agent'),
      memoryOf('a', 'of a user', { level: 'user' }),
    ])
    expect(await upkeep.cleanup()).toBe(0)
    await db.run`UPDATE memory_entry SET created_at = '2020-01-01T00:00:00.000Z', accessed_at = 1577836800000`
    expect(await upkeep.cleanup()).toBe(2)
    const left = await memories.list({ reader: operator, limit: 10, offset: 0 })
    expect(left.memories.map(({ content }) => content)).toEqual(['of a user'])
  })

  it('lets confidence fade by decay_rate, and use make up for it', async () => {
    const { opened, db } = await openStage({ decay_rate: 0.01 })
    const { memories, upkeep } = opened
    const [idle, used] = await memories.add([
      memoryOf('a', 'idle fact', { confidence: 0.5 }),
      memoryOf('a', 'used fact', { confidence: 0.5 }),
    ])
    await db.run`UPDATE memory_entry SET accessed_at = ${Date.now() - 100 * DAY_MS}`
    await db.run`UPDATE memory_entry SET access_count = 4 WHERE id = ${used?.id ?? ''}`
    await upkeep.decay()
    expect((await memories.find(idle?.id ?? ''))?.strength).toBeCloseTo(0.5 * Math.exp(-1), 3)
    expect((await memories.find(used?.id ?? ''))?.strength).toBeCloseTo(0.5 * Math.exp(-1) * 3, 3)
    await upkeep.sweep()
    expect((await memories.find(idle?.id ?? ''))?.strength).toBeCloseTo(0.5 * Math.exp(-1), 3)
  })

  it('keeps the own word of a person before text from outside, however new that is', async () => {
    const { opened } = await openStage()
    const { memories, upkeep } = opened
    const outside = { kind: 'tool', tool: 'web_fetch', labels: ['ExternalNetwork'] } as const
    for (const source of [outside, PERSON, { ...PERSON, labels: ['UserInput'] }, outside])
      await memories.add([memoryOf('a', 'Ann banks with Acme', { source })])
    expect(await upkeep.consolidate('a')).toBe(3)
    const { memories: left } = await memories.list({ reader: operator, limit: 10, offset: 0 })
    expect(left.map(({ source }) => source.labels)).toEqual([['UserInput']])
  })

  it('merges duplicates by duplicate_threshold, and keeps the newest', async () => {
    const { opened } = await openStage()
    const { memories, upkeep } = opened
    await memories.add(
      ['Likes green tea', 'Has two cats', 'likes green tea!', 'Likes green tea very much'].map((text) =>
        memoryOf('a', text),
      ),
    )
    await memories.add([memoryOf('a', 'likes green tea', { userId: 'ann', level: 'user' })])
    expect((await upkeep.duplicates('a')).map((group) => group.map(({ content }) => content))).toEqual([
      ['Likes green tea very much', 'likes green tea!', 'Likes green tea'],
    ])
    expect(await upkeep.consolidate('a')).toBe(2)
    expect(await upkeep.duplicates('a')).toEqual([])
    expect((await memories.list({ reader: operator, limit: 10, offset: 0 })).total).toBe(3)
  })
})

describe('search', () => {
  it('finds by words and by vectors, says nothing where nothing is known, and embeds anew for another model', async () => {
    const { opened, embed, useModel, settled } = await openStage()
    const { memories } = opened
    await memories.add([
      memoryOf('a', 'The cat of Ann is called Tom'),
      memoryOf('a', 'Prefers mountaineering to swimming'),
    ])
    const search = (text: string) => memories.search({ text, limit: 5, reader: operator })
    expect((await search("What is the cat's name?")).map(({ memory, by }) => [memory.content, by])).toEqual([
      ['The cat of Ann is called Tom', ['words']],
    ])
    await embed('a')
    expect((await search('mountaineer')).map(({ by }) => by)).toEqual([expect.arrayContaining(['vector'])])
    expect(await search('Which bicycle does the plumber repair?')).toEqual([])
    useModel('ngram-384')
    expect((await search('mountaineering')).map(({ by }) => by)).toEqual([['words']])
    await settled()
    await embed('a')
    expect((await search('mountaineer')).map(({ by }) => by)).toEqual([expect.arrayContaining(['vector'])])
  })

  it('filters by level, category, tags and time', async () => {
    const { opened } = await openStage()
    const { memories } = opened
    await memories.add([
      memoryOf('a', 'green car', { category: 'car', tags: ['x_1', 'y'] }),
      memoryOf('a', 'green house', { level: 'user', tags: ['xx1'] }),
    ])
    const both = async (filter: object) => {
      const listed = await memories.list({ reader: operator, limit: 10, offset: 0, ...filter })
      const found = await memories.search({ text: 'green', limit: 10, reader: operator, ...filter })
      expect(found.map(({ memory }) => memory.id).sort()).toEqual(listed.memories.map(({ id }) => id).sort())
      return listed.memories.map(({ content }) => content)
    }
    expect(await both({ category: 'car' })).toEqual(['green car'])
    expect(await both({ level: 'user' })).toEqual(['green house'])
    expect(await both({ tags: ['x_1', 'y'] })).toEqual(['green car'])
    expect(await both({ since: '2999-01-01T00:00:00.000Z' })).toEqual([])
    expect(await both({ until: '2999-01-01T00:00:00.000Z', agentId: 'a' })).toHaveLength(2)
  })

  it('keeps the rule of who reads what, with and without an index', async () => {
    const { opened } = await openStage(
      {},
      {
        grants: {
          a: [['self.*'], ['self.*']],
          b: [['self.*', 'c.*'], ['self.*']],
          c: [['self.*'], ['self.*', 'shared.user']],
        },
      },
    )
    const { memories } = opened
    const names = ['a', 'c'].flatMap((agentId) => [
      memoryOf(agentId, `secret ${agentId} of all`),
      memoryOf(agentId, `secret ${agentId} of ann`, { level: 'user', userId: 'ann' }),
      memoryOf(agentId, `secret ${agentId} of bob`, { level: 'user', userId: 'bob' }),
      memoryOf(agentId, `secret ${agentId} of session`, { level: 'session', sessionId: 's', userId: 'ann' }),
    ])
    await memories.add(names)
    const seen = async (reader: MemoryReader) => {
      const found = await memories.search({ text: 'secret', limit: 20, reader })
      const listed = await memories.list({ reader, limit: 20, offset: 0 })
      expect(found.map(({ memory }) => memory.id).sort()).toEqual(listed.memories.map(({ id }) => id).sort())
      return listed.memories.map(({ content }) => content.replace('secret ', '')).sort()
    }
    const agent = (agentId: string, userId?: string, sessionId?: string): MemoryReader => ({
      kind: 'agent',
      agentId,
      userId,
      sessionId,
    })
    expect(await seen(agent('a', 'ann', 's'))).toEqual(['a of all', 'a of ann', 'a of session'])
    expect(await seen(agent('a', 'ann', 'other'))).toEqual(['a of all', 'a of ann'])
    expect(await seen(agent('a', 'bob', 's'))).toEqual(['a of all', 'a of bob'])
    expect(await seen(agent('a'))).toEqual(['a of all'])
    // Both manifests have to say so; and only the level that is shared.
    expect(await seen(agent('b', 'ann'))).toEqual(['c of ann'])
    expect(await seen(agent('b', 'eve'))).toEqual([])
    expect(await seen(agent('c', 'ann', 's'))).toEqual(['c of all', 'c of ann', 'c of session'])
    expect(await seen({ kind: 'person', userId: 'ann' })).toHaveLength(4)
    expect(await seen({ kind: 'person', userId: 'eve' })).toEqual([])
    expect(await seen({ kind: 'person' })).toEqual(['a of all', 'c of all'])
    expect(await seen({ kind: 'operator' })).toHaveLength(8)
  })
})

it('tells nobody of a repeat that writes nothing, whether the memory is there or was deleted', async () => {
  const all: string[] = []
  const { opened } = await openStage({}, { told: (what) => all.push(what) })
  const id = '01a20d3f-e078-73d7-91bf-9961627488c3'
  const add = () => opened.memories.add([memoryOf('a', 'Has a dog')], [id])
  const report = () => opened.memories.add([memoryOf('a', 'Has a cat', { idempotencyKey: 'k', unlessDeleted: ['k'] })])
  await add()
  const [cat] = await report()
  expect(all.splice(0)).toHaveLength(4)
  expect([await add(), await report()]).toMatchObject([[{ id }], [{ id: cat?.id }]])
  await opened.memories.forget([id, cat!.id], 'ann')
  expect(all.splice(0)).toEqual([expect.stringMatching(/^audit: .* deleted by ann$/), 'event: 2 deleted'])
  expect([await add(), await report()]).toEqual([[], []])
  expect(all).toEqual([])
})
