import { createConsola } from 'consola'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { omitUndefined } from 'svc/sdk'
import { openDatabase } from '../../../core/storage/open.ts'
import { isVisible } from '../../../plugins/memory/entries/access.ts'
import { migrations } from '../../../plugins/memory/migrations.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openExtraction } from './open-extraction.ts'
import type { ExtractionStage } from './open-extraction.ts'
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

describe('on PostgreSQL nothing is left of a memory that is deleted while', () => {
  /** `held`: what another connection holds, until the work and the deletion, in this order, wait for something. */
  async function race(held: string, prepare: string, work: (stage: ExtractionStage, id: string) => Promise<unknown>) {
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    const stage = await openExtraction({}, database.url)
    const [memory] = await stage.opened.memories.add([memoryOf('a', 'aubergine')])
    const id = memory?.id ?? ''
    await database.query(prepare)
    const other = new Client({ connectionString: database.url })
    await other.connect()
    const waiting = async (): Promise<string> =>
      database.query(
        `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
    try {
      await other.query('BEGIN')
      await other.query(held.replace('$id', id))
      const working = work(stage, id)
      await eventually(async () => expect(await waiting()).toBe('1'))
      let isDeleted = false
      const deleting = stage.opened.memories.forget([id], 'ann').finally(() => (isDeleted = true))
      await eventually(async () => expect(isDeleted || (await waiting()) === '2').toBe(true))
      await other.query('COMMIT')
      await Promise.allSettled([working, deleting])
    } finally {
      await other.end()
    }
    const tables = ['entry', 'version', 'text', 'vector', 'relation', 'entity']
    const left = tables.map((table) => `SELECT '${table}' FROM memory_${table}`).join(' UNION ')
    expect(await database.query(left)).toBe('')
  }

  it('its vector is made', () =>
    race(`SELECT 1 FROM memory_entry WHERE id = '$id' FOR UPDATE`, 'SELECT 1', (stage) => stage.embed('a')))
  it('a relation is found in it', () => {
    const triple = {
      subject: 'Ann',
      subject_type: 'person',
      relation: 'eats',
      object: 'aubergine',
      object_type: 'thing',
    }
    return race(
      'SELECT pg_advisory_xact_lock(42)',
      `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END';
       CREATE TRIGGER wait AFTER INSERT ON memory_relation FOR EACH ROW EXECUTE FUNCTION wait()`,
      (stage, id) => stage.graph.addTriples({ agentId: 'a', memoryId: id, labels: [] }, [triple]),
    )
  })
})
