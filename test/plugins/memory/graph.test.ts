import { describe, expect, it, onTestFinished } from 'vitest'
import { graphMigrations } from '../../../plugins/memory/graph/migrations.ts'
import { MemoryUses } from '../../../plugins/memory/prompt/store.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openExtraction, turnOf } from './open-extraction.ts'
import { memoryOf } from './open-store.ts'

const log = { error: console.error }
const triple = (subject: string, relation: string, object: string) => ({
  subject,
  subject_type: 'person',
  relation,
  object,
  object_type: 'thing',
})

describe.each(['SQLite', 'PostgreSQL'])('the graph on %s', (engine) => {
  const open = async (settings: object = {}) => {
    if (engine === 'SQLite') return openExtraction(settings)
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return openExtraction(settings, database.url)
  }

  it('loses in the batch that forgets a memory what only that memory said', async () => {
    const { opened, graph, db } = await open()
    const [one, other] = await opened.memories.add([memoryOf('a', 'Ann works at Acme'), memoryOf('a', 'Ann likes tea')])
    const of = (memoryId?: string) => ({ agentId: 'a', memoryId, labels: [] })
    await graph.addTriples(of(one?.id), [triple('Ann', 'works_at', 'Acme'), triple('Ann', 'knows', 'Bo')])
    await graph.addTriples(of(other?.id), [triple('Ann', 'likes', 'tea'), triple('Ann', 'knows', 'Bo')])
    await graph.addTriples(of(), [triple('Acme', 'part_of', 'Group')])
    await graph.addEntity({ agentId: 'a', labels: [] }, { name: 'Bo', type: 'dog', properties: { legs: 4 } })
    const names = async () =>
      (await db.all`SELECT name FROM memory_entity ORDER BY name`).map((row) => (row as { name: string }).name)
    const relations = () => db.all`SELECT relation FROM memory_relation ORDER BY relation, memory_id`
    await opened.memories.forget([other?.id ?? ''], 'a person')
    expect(await names()).toEqual(['Acme', 'Ann', 'Bo', 'Group'])
    expect(await relations()).toHaveLength(3)
    await opened.memories.forget([one?.id ?? ''], 'a person')
    // What was added by hand stays, and so do the things it is about.
    expect(await names()).toEqual(['Acme', 'Bo', 'Group'])
    expect(await relations()).toEqual([{ relation: 'part_of' }])
    await opened.upkeep.clear('a', 'user', 'a person')
    expect(await relations()).toHaveLength(1)
    await opened.upkeep.clear('a', undefined, 'a person')
    expect([await names(), await relations()]).toEqual([[], []])
  })

  it('gets nothing of a memory that was deleted before', async () => {
    const { opened, graph, db } = await open()
    const [gone] = await opened.memories.add([memoryOf('a', 'Ann works at Acme')])
    await opened.memories.forget([gone?.id ?? ''], 'a person')
    await graph.addTriples({ agentId: 'a', memoryId: gone?.id, labels: [] }, [triple('Ann', 'works_at', 'Acme')])
    expect(await db.all`SELECT name FROM memory_entity`).toEqual([])
  })

  it('has at most so many relations, with properties of a certain size', async () => {
    const { graph } = await open({ max_relations_per_agent: 2, max_metadata_bytes: 20 })
    const of = { agentId: 'a', labels: [] }
    const refusal = (said: string) => ({ code: 'invalid_request', message: expect.stringContaining(said) })
    await graph.addTriples(of, [triple('Ann', 'knows', 'Bo'), triple('Bo', 'knows', 'Ann')])
    await graph.addTriples(of, [triple('Ann', 'knows', 'Bo')])
    await graph.addTriples({ ...of, agentId: 'b' }, [triple('Ann', 'likes', 'Bo')])
    await expect(graph.addTriples(of, [triple('Ann', 'likes', 'Bo')])).rejects.toMatchObject(
      refusal('plugins.memory.max_relations_per_agent'),
    )
    const properties = { x: 'x'.repeat(20) }
    const tooLarge = refusal('plugins.memory.max_metadata_bytes')
    const known = { ...triple('Ann', 'knows', 'Bo'), properties }
    await expect(graph.addTriples(of, [known])).rejects.toMatchObject(tooLarge)
    await expect(graph.addEntity(of, { name: 'Ann', type: 'person', properties })).rejects.toMatchObject(tooLarge)
    expect(await graph.query({ agentId: 'a' }, {})).toMatchObject([
      { relation: { type: 'knows', properties: {} }, source: { properties: {} } },
      { relation: { type: 'knows', properties: {} } },
    ])
  })

  it('is cleaned by its migration of what former versions left of forgotten memories', async () => {
    const { opened, graph, db } = await open()
    const [kept] = await opened.memories.add([memoryOf('a', 'Ann works at Acme')])
    await graph.addTriples({ agentId: 'a', memoryId: kept?.id, labels: [] }, [triple('Ann', 'works_at', 'Acme')])
    await graph.addTriples({ agentId: 'a', labels: [] }, [triple('Eve', 'works_at', 'Other')])
    await db.run`UPDATE memory_relation SET memory_id = 'gone' WHERE memory_id = ''`
    for (const sql of graphMigrations.at(-1)?.sql.split(';') ?? [])
      await db.run([sql] as unknown as TemplateStringsArray)
    expect(await db.all`SELECT name FROM memory_entity ORDER BY name`).toEqual([{ name: 'Acme' }, { name: 'Ann' }])
    expect(await db.all`SELECT memory_id FROM memory_relation`).toEqual([{ memory_id: kept?.id }])
  })

  it('has the properties of relations, and goes as many steps as it is asked to, in the own scope alone', async () => {
    const { graph } = await open()
    const ann = { agentId: 'a', userId: 'ann', labels: [] }
    const since = { ...triple('Ann', 'Works At', 'Acme'), properties: { since: 2020 }, confidence: 0.7 }
    await graph.addTriples(ann, [since, triple('Acme', 'located_in', 'Porto'), triple('Porto', 'part_of', 'Portugal')])
    await graph.addTriples({ ...ann, userId: 'bob' }, [triple('Acme', 'owes', 'Bob')])
    await graph.addTriples({ ...ann, agentId: 'b' }, [triple('Acme', 'owned_by', 'Eve')])
    const query = async (maxDepth: number, more: object = {}) =>
      (await graph.query({ agentId: 'a', userId: 'ann', ...more }, { source: 'ann', maxDepth })).map(
        ({ source, relation, target }) => `${source.name} ${relation.type} ${target.name}`,
      )
    const steps = ['Ann works_at Acme', 'Acme located_in Porto', 'Porto part_of Portugal']
    for (const depth of [1, 2, 3]) expect(await query(depth)).toEqual(steps.slice(0, depth))
    await expect(query(4)).rejects.toThrow('plugins.memory.max_graph_depth')
    expect(await query(1, { userId: 'bob' })).toEqual([])
    expect(await graph.query({ agentId: 'a', userId: 'ann' }, { relation: 'works at' })).toMatchObject([
      { relation: { type: 'works_at', confidence: 0.7, properties: { since: 2020 } } },
    ])
    // Said again without them, it keeps them.
    await graph.addTriples(ann, [triple('Ann', 'works_at', 'Acme')])
    expect(await graph.query({ agentId: 'a', all: true }, { relation: 'works_at' })).toMatchObject([
      { relation: { properties: { since: 2020 } } },
    ])
  })

  it('and the uses of memories are of one person, and are kept for use_days', async () => {
    const { opened, db } = await open({ use_days: 30 })
    const uses = new MemoryUses(db, log)
    const turn = async (id: string, user: string | undefined, days: number) => {
      uses.found(id, [`memory of ${id}`])
      const at = new Date(Date.now() - days * 86_400_000).toISOString()
      for (let times = 0; times < 2; times++) await db.batch(uses.ended(id, 'a', user, at))
    }
    await turn('mine', undefined, 1)
    await turn('anns', 'ann', 29)
    await turn('old', 'ann', 31)
    const find = async (user?: string) =>
      [...(await uses.find(['mine', 'anns', 'old', 'none'], user)).keys()].toSorted()
    expect(await find()).toEqual(['anns', 'mine', 'old'])
    expect([await find(''), await find('ann')]).toEqual([['mine'], ['anns', 'old']])
    await opened.upkeep.sweep()
    expect(await find()).toEqual(['anns', 'mine'])
  })
})

it('a fact that is said again after it was forgotten is known with its relation', async () => {
  const stage = await openExtraction()
  await stage.run(turnOf('a', 'I work at Acme.'))
  const [memory] = (await stage.opened.memories.list({ reader: { kind: 'operator' }, limit: 1, offset: 0 })).memories
  await stage.opened.memories.forget([memory?.id ?? ''], 'a person')
  expect(await stage.graph.query({ agentId: 'a' }, {})).toEqual([])
  await stage.run(turnOf('a', 'I work at Acme.'))
  expect(await stage.graph.query({ agentId: 'a' }, {})).toMatchObject([{ target: { name: 'Acme' } }])
})
