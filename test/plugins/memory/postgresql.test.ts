import { createConsola } from 'consola'
import { describe, expect, it, onTestFinished } from 'vitest'
import { omitUndefined } from 'svc/sdk'
import { openDatabase } from '../../../core/storage/open.ts'
import { isVisible } from '../../../plugins/memory/entries/access.ts'
import { migrations } from '../../../plugins/memory/migrations.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { memoryOf, openStage } from './open-store.ts'

const operator = { kind: 'operator' } as const

describe.each(['SQLite', 'PostgreSQL'])('on %s', (engine) => {
  const open = async (): Promise<string> => {
    if (engine === 'SQLite') return 'sqlite::memory:'
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return database.url
  }

  it('notes of before are moved, and are found under their keys', async () => {
    await using database = await openDatabase({ url: await open(), log: createConsola({ level: -999 }) })
    const { sql: db } = database
    await database.migrate('memory', migrations.slice(0, 1))
    for (const key of ['a', 'b c'])
      await db.run`INSERT INTO memory_note (agent_id, key, value, created_at, updated_at)
        VALUES ('agent', ${key}, ${`value of ${key}`}, '2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z')`
    await database.migrate('memory', migrations)
    expect(await db.all`SELECT key, content, level, created_at, updated_at FROM memory_entry ORDER BY key`).toEqual(
      ['a', 'b c'].map((key) => ({
        key,
        content: `value of ${key}`,
        level: 'agent',
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-02T00:00:00.000Z',
      })),
    )
    const ids = await db.all<{ id: string }>`SELECT id FROM memory_entry`
    for (const { id } of ids) expect(id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
    expect(await db.all`SELECT key FROM memory_note`).toEqual([])
  })

  it('a statement shows what the guard of the index shows, and each filter keeps what it names', async () => {
    const { opened } = await openStage({}, { url: await open() })
    const { memories, store } = opened
    const all = await memories.add(
      ['a', 'b'].flatMap((agentId) =>
        [undefined, 'ann', 'bob'].flatMap((userId) => [
          ...(['agent', 'user'] as const).map((level) =>
            memoryOf(agentId, 'x', { level, ...omitUndefined({ userId }) }),
          ),
          ...['s', 't'].map((sessionId) =>
            memoryOf(agentId, 'x', { level: 'session', sessionId, ...omitUndefined({ userId }) }),
          ),
        ]),
      ),
    )
    const nothing = { all: false, isPerson: false, userId: '', agentId: '', sessionId: '', shared: new Set<string>() }
    const agent = { ...nothing, agentId: 'a' }
    for (const scope of [
      nothing,
      { ...nothing, all: true },
      { ...nothing, isPerson: true },
      { ...nothing, isPerson: true, userId: 'ann' },
      agent,
      { ...agent, userId: 'ann', sessionId: 's' },
      { ...agent, userId: 'bob', sessionId: 't', shared: new Set(['b user', 'b agent']) },
      { ...agent, shared: new Set(['b agent']) },
    ]) {
      const shown = all.filter((memory) =>
        isVisible(scope, { ...memory, userId: memory.userId ?? '', sessionId: memory.sessionId ?? '' }),
      )
      const ids = shown.map(({ id }) => id).sort()
      const listed = await store.list(scope, ['a', 'b'], {}, { limit: 100, offset: 0 })
      expect(listed.map(({ id }) => id).sort()).toEqual(ids)
      expect(await store.count(scope, ['a', 'b'], {})).toBe(ids.length)
      expect(
        (
          await store.visible(
            scope,
            all.map(({ id }) => id),
          )
        )
          .map(({ id }) => id)
          .sort(),
      ).toEqual(ids)
      const figures = await store.figures(scope, ['a', 'b'])
      expect(figures.reduce((sum, { count }) => sum + count, 0)).toBe(ids.length)
    }
    await memories.add([memoryOf('c', 'y', { tags: ['Ann', 'x,', 'y'], category: 'pet' }), memoryOf('c', 'z')])
    const later = '2999-01-01T00:00:00.000Z'
    for (const [filter, count] of [
      [{ tags: ['Ann', 'y'] }, 1],
      [{ tags: ['ann'] }, 0],
      [{ tags: [','] }, 0],
      [{ tags: ['%'] }, 0],
      [{ category: 'pet', level: 'agent' }, 1],
      [{ level: 'user' }, 0],
      [{ userId: 'ann' }, 0],
      [{ since: later }, 0],
      [{ until: later }, 2],
    ] as const)
      expect([filter, await store.count({ ...nothing, all: true }, ['c'], filter)]).toEqual([filter, count])
  })

  it('memories are listed, counted, embedded, faded, merged, capped and cleared', async () => {
    const stage = await openStage({ max_memories_per_agent: 3 }, { url: await open() })
    const { memories, upkeep } = stage.opened
    await memories.add([
      memoryOf('a', 'Likes green tea', { tags: ['x_1'], category: 'preference' }),
      memoryOf('a', 'likes green tea!', { confidence: 0.5 }),
      memoryOf('a', 'of a session', { level: 'session', sessionId: 's' }),
    ])
    expect(await memories.lacking(operator, 'a')).toEqual({ words: false, vectors: true })
    expect(await memories.lacking(operator, 'b')).toEqual({ words: false, vectors: false })
    await stage.embed('a')
    expect(await memories.lacking(operator, undefined)).toEqual({ words: false, vectors: false })
    await stage.db.run`UPDATE memory_entry SET access_count = 3, accessed_at = ${Date.now() - 50 * 86_400_000}`
    await upkeep.decay()
    const { memories: listed, total } = await memories.list({ reader: operator, limit: 2, offset: 1, tags: [] })
    expect([listed.length, total]).toEqual([2, 3])
    expect((await memories.list({ reader: operator, limit: 9, offset: 0, tags: ['x_1'] })).total).toBe(1)
    expect(await memories.figures(operator, 'a')).toMatchObject({ withoutVector: 0 })
    expect((await memories.search({ text: 'green tea', limit: 5, reader: operator })).map(({ by }) => by)).toEqual([
      ['words', 'vector'],
      ['words', 'vector'],
    ])
    expect((await memories.similar(memoryOf('a', 'Likes green tea'), 1))[0]?.score).toBe(1)
    expect(await upkeep.consolidate('a')).toBe(1)
    await stage.db.run`UPDATE memory_entry SET created_at = '2020-01-01T00:00:00.000Z' WHERE level = 'session'`
    expect(await upkeep.cleanup()).toBe(1)
    await memories.add(['one', 'two', 'three'].map((text) => memoryOf('a', text)))
    await stage.settled()
    expect((await memories.list({ reader: operator, limit: 1, offset: 0, agentId: 'a' })).total).toBe(3)
    const [newest] = (await memories.list({ reader: operator, limit: 1, offset: 0 })).memories
    await memories.update(newest?.id ?? '', 'changed', 'a person', { kind: 'person', labels: [] })
    const [last] = await memories.add([memoryOf('a', 'replaced', { supersedes: newest?.id ?? '' })])
    expect((await memories.history(last?.id ?? '', operator)).versions).toHaveLength(3)
    await upkeep.sweep()
    expect(await upkeep.clear('a', undefined, 'a person')).toBe(3)
    expect((await memories.history(last?.id ?? '', operator)).deleted?.by).toBe('a person')
  })
})
