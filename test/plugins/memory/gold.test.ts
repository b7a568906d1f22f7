import { expect, it, onTestFinished } from 'vitest'
import { startFakeEmbedder } from '../../support/fake-embedder.ts'
import {
  addFacts,
  HELD_OUT,
  KINDS,
  measureGold,
  PEOPLE,
  readGold,
  saysByWords,
  scoreOf,
} from '../../support/memory-gold.ts'
import type { Answer, GoldPerson, Kind, Says, Score } from '../../support/memory-gold.ts'
import { createRig } from '../providers/rig.ts'
import { openExtraction, turnOf } from './open-extraction.ts'
import type { ExtractionStage } from './open-extraction.ts'

const gold = PEOPLE.map(readGold)

it('the gold set is whole', () => {
  const sum = (of: (person: GoldPerson) => number): number => gold.reduce((all, each) => all + of(each), 0)
  expect(sum(({ facts }) => facts.length)).toBe(200)
  expect(sum(({ questions }) => questions.length)).toBe(150)
  expect(sum(({ conversations }) => conversations)).toBeGreaterThanOrEqual(30)
  for (const { facts, questions } of [...gold, ...HELD_OUT.map(readGold)]) {
    const ids = new Set(facts.map(({ id }) => id))
    expect(questions.flatMap((question) => question.facts).filter((id) => !ids.has(id))).toEqual([])
  }
})

const store = (stage: ExtractionStage, person: GoldPerson): Promise<Says> =>
  addFacts(stage.opened.memories, person.name, person)
/** Says it all to an agent, which remembers by the rules. */
async function tell(stage: ExtractionStage, person: GoldPerson): Promise<Says> {
  for (const message of person.sessions.flatMap(({ messages }) => messages))
    await stage.run(turnOf(person.name, message))
  return saysByWords(person)
}

/** Settles with the scores by kind. */
async function measure(
  remember: typeof store,
  prepare: (stage: ExtractionStage) => void = () => {},
): Promise<(kind: Kind) => Score> {
  const answers: Answer[] = []
  for (const person of gold) {
    const stage = await openExtraction()
    prepare(stage)
    const says = await remember(stage, person)
    await stage.embed(person.name)
    const reader = { kind: 'agent', agentId: person.name } as const
    const search = async (text: string) =>
      (await stage.opened.memories.search({ text, limit: 5, reader })).map(({ memory }) => memory)
    answers.push(...(await measureGold(search, person, says)))
  }
  return (kind) => scoreOf(answers.filter(({ question }) => question.kind === kind))
}
const local = async () => (): void => {}
/** Lets a provider embed that answers as OpenAI does. */
async function model(): Promise<(stage: ExtractionStage) => void> {
  const fake = await startFakeEmbedder()
  onTestFinished(() => fake[Symbol.asyncDispose]())
  const rig = await createRig({ config: { providers: { openai: { base_url: `${fake.origin}/v1`, api_key: 'k' } } } })
  onTestFinished(() => rig[Symbol.asyncDispose]())
  const choice = { provider: 'openai', model: 'default' }
  return (stage) => stage.useEmbedding((_, texts, signal) => rig.inference.embed(choice, texts, signal))
}

// What docs/memory.md says: lower numbers are a fault, higher ones go into the table there.
it.each<[string, typeof store, () => Promise<(stage: ExtractionStage) => void>, Partial<Record<Kind, number>>]>([
  [
    'stored, with the local embedding',
    store,
    local,
    { single: 0.8, time: 0.95, hop: 0.25, update: 0.95, unknown: 0.95 },
  ],
  [
    'stored, with the vectors of a model',
    store,
    model,
    { single: 0.85, time: 0.95, hop: 0.5, update: 0.95, unknown: 0.95 },
  ],
  ['told, with the local embedding', tell, local, { single: 0.55, time: 0.75, update: 0.25, unknown: 0.9 }],
])('finds what was %s', async (_, remember, prepare, goals) => {
  const of = await measure(remember, await prepare())
  for (const kind of KINDS) expect([kind, of(kind).recall >= (goals[kind] ?? 0)]).toEqual([kind, true])
  // Of what has changed, the newest, and nothing older before it.
  if (remember === store) expect(of('update').newest).toBe(of('update').recall)
})
