import { Refusal } from 'svc/sdk'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openExtraction, turnOf } from './open-extraction.ts'
import { memoryOf } from './open-store.ts'

const reader = { agentId: 'a', all: true } as const
const fact = (content: string, quote: string, more: object = {}) =>
  JSON.stringify({ facts: [{ content, quote, category: 'personal_detail', confidence: 0.9, ...more }] })

describe.each(['SQLite', 'PostgreSQL'])('remembering on %s', (engine) => {
  const open = async (settings: object = {}) => {
    if (engine === 'SQLite') return openExtraction(settings)
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return openExtraction(settings, database.url)
  }

  it('adds each fact once, whenever the process ended, and its relation too', async () => {
    const stage = await open()
    const turn = turnOf('a', 'I work at Acme. I live in Lisbon.')
    // After the memories, before the graph.
    stage.failRelations = true
    await expect(stage.run(turn)).rejects.toThrow('the process ended here')
    // Before the end of the job.
    for (let times = 0; times < 2; times++) expect(await stage.run(turn)).toEqual({ outcome: 'done' })
    expect(await stage.contents('a')).toEqual(['I live in Lisbon.', 'I work at Acme.'])
    const relations = await stage.graph.query(reader, {})
    expect(relations.map(({ relation, target }) => `${relation.type} ${target.name}`).toSorted()).toEqual([
      'located_in Lisbon',
      'works_at Acme',
    ])
  })

  it('brings nothing back that was deleted before the message was read again, in whatever order it is found then', async () => {
    const stage = await open()
    const { memories } = stage.opened
    const turn = turnOf('a', 'I work at Acme. I live in Lisbon.')
    const acme = { content: 'The user works at Acme.', quote: 'I work at Acme', confidence: 0.9 }
    const lisbon = { content: 'The user lives in Lisbon.', quote: 'I live in Lisbon', confidence: 0.9 }
    const triple = { subject: 'the user', subject_type: 'person', relation: 'located_in', object_type: 'location' }
    const placed = { ...lisbon, relations: [{ ...triple, object: 'Lisbon' }] }
    stage.answers.push(
      JSON.stringify({ facts: [acme, lisbon] }),
      JSON.stringify({ facts: [placed, acme] }),
      JSON.stringify({ facts: [lisbon, { ...acme, content: 'Acme employs this person.' }, acme] }),
    )
    await stage.run(turn)
    const { memories: found } = await memories.list({ reader: { kind: 'operator' }, limit: 9, offset: 0 })
    const deleted = found.find(({ content }) => content === acme.content)
    await memories.forget([deleted?.id ?? ''], 'a person')
    for (let times = 0; times < 2; times++) {
      await stage.run(turn)
      expect(await stage.contents('a')).toEqual([lisbon.content])
    }
    expect(stage.counts.get('added')).toBe(2)
    expect(await stage.graph.query(reader, {})).toMatchObject([{ target: { name: 'Lisbon' } }])
  })

  it('writes no memory under an id that its caller gives again after it was deleted', async () => {
    const { memories } = (await open()).opened
    const id = '0f6a1b3c-0000-4000-8000-000000000000'
    const add = async () => (await memories.add([memoryOf('a', 'aubergine')], [id])).length
    expect(await add()).toBe(1)
    await memories.forget([id], 'a person')
    expect(await add()).toBe(0)
    expect(await memories.find(id)).toBeUndefined()
  })

  it('keeps the newest of what contradicts, in whatever order turns are read, and again', async () => {
    const stage = await open()
    const [lisbon, porto, faro] = ['Lisbon', 'Porto', 'Faro'].map((town) => turnOf('a', `I live in ${town}.`))
    if (!lisbon || !porto || !faro) throw new Error('three turns')
    await stage.run(lisbon)
    // The job of the second one waits for its budget meanwhile.
    await stage.run(faro)
    await stage.run(porto)
    expect(await stage.contents('a')).toEqual(['I live in Faro.'])
    await stage.run(lisbon)
    expect(await stage.contents('a')).toEqual(['I live in Faro.'])
    expect(stage.counts.get('outdated')).toBe(2)
    await stage.run(turnOf('a', 'I live in Lisbon.'))
    expect(await stage.contents('a')).toEqual(['I live in Lisbon.'])
    expect(await stage.graph.query(reader, { relation: 'located_in' })).toMatchObject([{ target: { name: 'Lisbon' } }])
  })

  it('asks again after a model that fails, waits for the budget, and gives up in the end', async () => {
    const stage = await open({ extraction_give_up_hours: 1 })
    const turn = turnOf('a', 'I live in Porto.')
    const found = fact('The user lives in Porto.', 'I live in Porto')
    stage.answers.push(() => {
      throw new Error('timed out')
    }, 'nonsense')
    await expect(stage.run(turn)).rejects.toThrow('timed out')
    expect(await stage.run(turn)).toEqual({ outcome: 'done' })
    expect(stage.counts.get('invalid')).toBe(1)
    stage.check = () => Promise.reject(new Refusal('rate_limit', 'the budget is used up', { retryAfterSecs: 600 }))
    stage.answers.push(found)
    expect(await stage.run(turn)).toEqual({ outcome: 'postponed', afterMs: 600_000 })
    expect(await stage.run(turn, 3_600_001)).toEqual({ outcome: 'done' })
    expect(stage.counts.get('given_up')).toBe(1)
    expect(await stage.contents('a')).toEqual([])
    stage.check = async () => {}
    await stage.run(turn)
    expect(await stage.contents('a')).toEqual(['The user lives in Porto.'])
  })

  it('lets one of two daemons replace a memory, and the other see it the next time', async () => {
    const stage = await open()
    await stage.run(turnOf('a', 'I live in Lisbon.'))
    const turns = ['Porto', 'Faro'].map((town) => turnOf('a', `I live in ${town}.`))
    const ends = await Promise.allSettled(turns.map((turn) => stage.run(turn)))
    for (const [index, { status }] of ends.entries()) {
      const turn = turns[index]
      if (status === 'rejected' && turn) await stage.run(turn)
    }
    expect(await stage.contents('a')).toEqual(['I live in Faro.'])
  })
})
