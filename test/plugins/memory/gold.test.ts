import { expect, it } from 'vitest'
import { addFacts, measureGold, PEOPLE, readGold, scoreOf } from '../../support/memory-gold.ts'
import type { Answer, Kind } from '../../support/memory-gold.ts'
import { openStage } from './open-store.ts'

const gold = PEOPLE.map(readGold)

it('the gold set is whole', () => {
  const sum = (of: (person: (typeof gold)[number]) => number): number => gold.reduce((all, each) => all + of(each), 0)
  expect(sum(({ facts }) => facts.length)).toBe(200)
  expect(sum(({ questions }) => questions.length)).toBe(150)
  expect(sum(({ conversations }) => conversations)).toBeGreaterThanOrEqual(30)
  for (const { facts, questions } of gold) {
    const ids = new Set(facts.map(({ id }) => id))
    expect(questions.flatMap((question) => question.facts).filter((id) => !ids.has(id))).toEqual([])
  }
})

it('retrieval with the local embedding finds what the gold set asks for', async () => {
  const answers: Answer[] = []
  for (const person of gold) {
    const { opened, embed } = await openStage()
    const ids = await addFacts(opened.memories, person.name, person)
    await embed(person.name)
    answers.push(...(await measureGold(opened.memories, person.name, person, ids)))
  }
  const of = (kind: Kind) => scoreOf(answers.filter(({ question }) => question.kind === kind))
  // What docs/memory.md says: lower numbers are a fault, higher ones go into the table there.
  expect(of('single').recall).toBeGreaterThanOrEqual(0.8)
  expect(of('time').recall).toBeGreaterThanOrEqual(0.9)
  expect(of('update').recall).toBeGreaterThanOrEqual(0.85)
  expect(of('unknown').recall).toBeGreaterThanOrEqual(0.8)
})
