import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConsola } from 'consola'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import type { MemoryQuery, MemoryReader } from '../../../plugins/memory/contract.ts'
import { migrations } from '../../../plugins/memory/migrations.ts'
import { CHUNK } from '../../../plugins/memory/vectors/signs.ts'
import { cosine, toBytes } from '../../../plugins/memory/vectors/vector.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { memoryOf, openStage } from './open-store.ts'
import type { MemoryStage } from './open-store.ts'

const operator: MemoryReader = { kind: 'operator' }
const LENGTH = 96

/** A text `n1 …` has a direction of its own, and `n1~ …` one beside that; `q1` is another word in the same direction. */
function vectorOf(text: string, length: number): Float32Array {
  const [, number = '0', beside] = /^[a-z](\d+)(~?)/.exec(text) ?? []
  let state = Number(number) + 1
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
  for (let skipped = 0; skipped < 20; skipped++) next()
  return Float32Array.from({ length }, (_, at) => next() + (beside === '~' && at % 8 === 0 ? 0.3 : 0))
}
/** With memories that are found by their vectors alone: none has a word of a question. */
async function open(url: string, settings: object = {}, grants = {}): Promise<MemoryStage> {
  const stage = await openStage({ max_memories_per_agent: 10_000, min_similarity: 0.6, ...settings }, { url, grants })
  useLength(stage, LENGTH)
  return stage
}
function useLength(stage: MemoryStage, length: number): void {
  stage.useEmbedding(async (_, texts) => {
    const vectors = texts.map((text) => vectorOf(text, length))
    return { provider: 'test', model: `m${length}`, vectors, price: undefined, usage: { input: 0 } }
  })
}
const finds = async (stage: MemoryStage, text: string, more: Partial<MemoryQuery> = {}): Promise<readonly string[]> => {
  const found = await stage.opened.memories.search({ text: `q${text}`, limit: 5, reader: operator, ...more })
  return found.map(({ memory }) => memory.content)
}
const count = async ({ db }: MemoryStage): Promise<number> =>
  Number((await db.one<{ count: number }>`SELECT COUNT(*) AS count FROM memory_vector`)?.count)

const jobs = async ({ db }: MemoryStage): Promise<number> =>
  (await db.all`SELECT id FROM queue_job WHERE lane = 'memory-vectors'`).length

describe.each(['SQLite', 'PostgreSQL'])('the signs of vectors on %s', (engine) => {
  const address = async (): Promise<string> => {
    if (engine === 'SQLite') return 'sqlite::memory:'
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return database.url
  }

  it('lead to the nearest of many, of an agent and of all', async () => {
    const stage = await open(await address())
    const { memories } = stage.opened
    const many = (agent: string, from: number) =>
      Array.from({ length: 2 * CHUNK + 10 }, (_, at) => memoryOf(agent, `n${from + at}.`))
    await memories.add([...many('a', 0), ...many('b', 1_000)])
    await stage.embed('a')
    await stage.embed('b')
    for (const number of [0, 255, 256, 511, 521]) expect(await finds(stage, `${number}~`)).toEqual([`n${number}.`])
    expect(await finds(stage, '1300~')).toEqual(['n1300.'])
    expect(await finds(stage, '1300~', { agentId: 'a' })).toEqual([])
    expect(await finds(stage, '1300~', { reader: { kind: 'agent', agentId: 'a' } })).toEqual([])
    // As near as an exact comparison of all says.
    expect(cosine(vectorOf('q511~', LENGTH), toBytes(vectorOf('n511', LENGTH)))).toBeGreaterThan(0.9)
  })

  it('show each reader what is for it, and each filter what it names', async () => {
    const stage = await open(
      await address(),
      {},
      { b: [['self.*', 'a.user'], ['self.*']], a: [['self.*'], ['self.*', 'shared.user']] },
    )
    const { memories } = stage.opened
    await memories.add([
      memoryOf('a', 'n7 of all', { tags: ['x'], category: 'c' }),
      memoryOf('a', 'n7 of ann', { level: 'user', userId: 'ann' }),
      memoryOf('a', 'n7 of bob', { level: 'user', userId: 'bob' }),
      memoryOf('a', 'n7 of a session', { level: 'session', sessionId: 's', userId: 'ann' }),
    ])
    await stage.embed('a')
    const seen = async (more: Partial<MemoryQuery>) => [...(await finds(stage, '7~', more))].sort()
    const agent = (agentId: string, userId?: string, sessionId?: string) => ({
      reader: { kind: 'agent', agentId, userId, sessionId } as const,
    })
    expect(await seen(agent('a', 'ann', 's'))).toEqual(['n7 of a session', 'n7 of all', 'n7 of ann'])
    expect(await seen(agent('a', 'ann', 'other'))).toEqual(['n7 of all', 'n7 of ann'])
    expect(await seen(agent('a'))).toEqual(['n7 of all'])
    expect(await seen(agent('b', 'bob'))).toEqual(['n7 of bob'])
    expect(await seen({ reader: { kind: 'person', userId: 'bob' } })).toEqual(['n7 of bob'])
    expect(await seen({ reader: { kind: 'person' } })).toEqual(['n7 of all'])
    expect(await seen({})).toHaveLength(4)
    expect(await seen({ level: 'user', userId: 'ann' })).toEqual(['n7 of ann'])
    expect(await seen({ tags: ['x'] })).toEqual(['n7 of all'])
    expect(await seen({ category: 'd' })).toEqual([])
    expect(await seen({ since: '2999-01-01T00:00:00.000Z' })).toEqual([])
    const similar = await memories.similar(memoryOf('a', 'n7~', { level: 'user', userId: 'ann' }), 5)
    expect(similar.map(({ memory }) => memory.content)).toEqual(['n7 of ann'])
  })

  it('find a memory that a filter leaves, though many others are nearer', async () => {
    const stage = await open(await address())
    const { memories } = stage.opened
    await memories.add(Array.from({ length: 400 }, (_, at) => memoryOf('a', `n9 m${at}`)))
    await memories.add([memoryOf('a', 'n9~ of a tag', { tags: ['x'] })])
    await stage.embed('a')
    expect(await finds(stage, '9', { tags: ['x'] })).toEqual(['n9~ of a tag'])
  })

  it('of an older version and of another model are made anew', async () => {
    const stage = await open(await address())
    const { memories, embedder } = stage.opened
    await memories.add([memoryOf('a', 'n1.'), memoryOf('a', 'n2.')])
    await stage.embed('a')
    await stage.db.run`DELETE FROM memory_sign`
    await stage.db.run`UPDATE memory_vector SET place = NULL`
    expect(await finds(stage, '1~')).toEqual([])
    await embedder.sweep()
    expect(await finds(stage, '1~')).toEqual(['n1.'])
    for (const length of [2 * LENGTH, LENGTH]) {
      const before = await jobs(stage)
      useLength(stage, length)
      expect(await finds(stage, '1~')).toEqual([])
      await stage.settled()
      expect(await jobs(stage)).toBe(before + 1)
      await stage.embed('a')
      expect(await finds(stage, '1~')).toEqual(['n1.'])
    }
    expect(await finds(stage, '1~')).toEqual(['n1.'])
    expect(await finds(stage, '2~')).toEqual(['n2.'])
  })

  it('go with what is changed, superseded and forgotten, and with an agent', async () => {
    const stage = await open(await address())
    const { memories, removal, store } = stage.opened
    const [one, two, three] = await memories.add(['n1.', 'n2.', 'n3.'].map((text) => memoryOf('a', text)))
    await memories.add([memoryOf('b', 'n4.')])
    await stage.embed('a')
    await stage.embed('b')
    await memories.update(one?.id ?? '', 'n10.', 'a person', { kind: 'person', labels: [] })
    // Its vector is still that of the former content.
    expect(await finds(stage, '1~')).toEqual([])
    await memories.add([memoryOf('a', 'n20.', { supersedes: two?.id ?? '' })])
    await memories.forget([three?.id ?? ''], 'a person')
    await stage.embed('a')
    for (const number of [1, 2, 3]) expect(await finds(stage, `${number}~`)).toEqual([])
    for (const number of [10, 20]) expect(await finds(stage, `${number}~`)).toEqual([`n${number}.`])
    await store.commit(removal.later('a'))
    await removal.finish()
    expect(await count(stage)).toBe(1)
    expect(await finds(stage, '4~')).toEqual(['n4.'])
  })
})

it.each(['SQLite', 'PostgreSQL'])('a database of the version before, on %s, gets both indexes', async (engine) => {
  const home = await mkdtemp(join(tmpdir(), 'svc-before-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  let url = `sqlite:${join(home, 'svc.db')}`
  if (engine === 'PostgreSQL') {
    const server = await createTestDatabase()
    onTestFinished(() => server[Symbol.asyncDispose]())
    url = server.url
  }
  {
    await using database = await openDatabase({ url, log: createConsola({ level: -999 }) })
    await database.migrate(
      'memory',
      migrations.filter(({ id }) => id < '050'),
    )
    const model = `test/m${LENGTH}/${LENGTH}`
    for (let at = 0; at < 150; at++) {
      const id = `m${String(at).padStart(3, '0')}`
      const vector = toBytes(vectorOf(`n${at}`, LENGTH))
      await database.sql
        .run`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, content, confidence, tags,
          source, metadata, superseded_by, created_at, updated_at, accessed_at, access_count, strength, embedded_with)
        VALUES (${id}, 'a', '', '', 'agent', ${`word${at} of old`}, 1, '[]', '{"kind":"person","labels":[]}', '{}', '',
          '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 1, 0, 1, ${model})`
      await database.sql.run`INSERT INTO memory_vector (memory_id, agent_id, model, vector)
        VALUES (${id}, 'a', ${model}, ${vector})`
    }
  }
  const stage = await open(url)
  await stage.settled()
  // The vectors are placed with the first use, and a job for the words is added.
  expect(await finds(stage, '149~')).toEqual(['word149 of old'])
  expect(await stage.db.all`SELECT lane FROM queue_job`).toEqual([{ lane: 'memory-words' }])
  await stage.opened.wordIndex.fill(AbortSignal.timeout(60_000))
  const found = await stage.opened.memories.search({ text: 'word77', limit: 5, reader: operator })
  expect(found.map(({ memory, by }) => [memory.id, by])).toContainEqual(['m077', ['words']])
})

describe('places on SQLite', () => {
  const places = async ({ db }: MemoryStage) => {
    const rows = await db.all<{ free: number; places: Uint8Array }>`SELECT free, places FROM memory_sign ORDER BY id`
    return rows.map(({ free, places: bytes }) => ({ free, set: bytes.filter((byte) => byte !== 0).length > 0 }))
  }

  it('are empty once their memory is forgotten, and are used again', async () => {
    const stage = await open('sqlite::memory:')
    const { memories } = stage.opened
    const added = await memories.add(Array.from({ length: CHUNK + 1 }, (_, at) => memoryOf('a', `n${at}.`)))
    await stage.embed('a')
    expect(await places(stage)).toEqual([
      { free: 0, set: true },
      { free: CHUNK - 1, set: true },
    ])
    await memories.forget(
      added.slice(1).map(({ id }) => id),
      'a person',
    )
    expect(await finds(stage, '0~')).toEqual(['n0.'])
    await stage.opened.removal.finish()
    expect((await places(stage)).map(({ free }) => free)).toEqual([CHUNK - 1, CHUNK])
    await memories.add(Array.from({ length: CHUNK - 1 }, (_, at) => memoryOf('a', `n${at + 500}.`)))
    await stage.embed('a')
    expect((await places(stage)).map(({ free }) => free)).toEqual([0, CHUNK])
    expect(await finds(stage, '700~')).toEqual(['n700.'])
    const { memories: all } = await memories.list({ reader: operator, limit: 1_000, offset: 0 })
    await memories.forget(
      all.map(({ id }) => id),
      'a person',
    )
    await stage.opened.removal.finish()
    expect(await places(stage)).toEqual([
      { free: CHUNK, set: false },
      { free: CHUNK, set: false },
    ])
    await stage.opened.embedder.sweep()
    expect(await places(stage)).toEqual([])
    await memories.add([memoryOf('a', 'n5.')])
    await stage.embed('a')
    expect(await finds(stage, '5~')).toEqual(['n5.'])
  })

  it('are read again after another process changed them, and no more are kept than index_memories', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-places-'))
    onTestFinished(() => rm(home, { recursive: true, force: true }))
    const url = `sqlite:${join(home, 'svc.db')}`
    const [one, other] = [await open(url, { index_memories: 1_000 }), await open(url)]
    await one.opened.memories.add(Array.from({ length: 5 * CHUNK }, (_, at) => memoryOf('a', `n${at}.`)))
    await one.embed('a')
    for (const number of [3, 1_200]) {
      expect(await finds(one, `${number}~`)).toEqual([`n${number}.`])
      expect(await finds(other, `${number}~`)).toEqual([`n${number}.`])
    }
    expect(one.opened.vectors.size).toBeLessThanOrEqual(1_000)
    expect(other.opened.vectors.size).toBe(5 * CHUNK)
    const [found] = await one.opened.memories.search({ text: 'q3~', limit: 1, reader: operator })
    await one.opened.memories.forget([found?.memory.id ?? ''], 'a person')
    await one.opened.memories.add([memoryOf('a', 'n9999.')])
    await one.embed('a')
    expect(await finds(other, '3~')).toEqual([])
    expect(await finds(other, '9999~')).toEqual(['n9999.'])
  })
})

it('a provider whose vectors have another length with each call is left alone for a while', async () => {
  const stage = await openStage()
  await stage.opened.memories.add([memoryOf('a', 'tea')])
  let length = 1
  stage.useEmbedding(async (_, texts) => {
    const vectors = texts.map(() => new Float32Array(length++).fill(1))
    return { provider: 'test', model: 'm', vectors, price: undefined, usage: { input: 0 } }
  })
  const outcome = await stage.opened.embedder.run('a', AbortSignal.timeout(60_000))
  expect(outcome).toEqual({ outcome: 'postponed', afterMs: expect.any(Number) })
  expect(outcome).toHaveProperty('afterMs', 10_000)
})
