import { readFileSync } from 'node:fs'
import type { Memories, NewMemory } from '../../plugins/memory/contract.ts'

export const PEOPLE = ['marta', 'devin', 'yuki'] as const
export const KINDS = ['single', 'hop', 'time', 'update', 'unknown'] as const
export type Kind = (typeof KINDS)[number]
export interface GoldFact {
  readonly id: string
  readonly replaces: string | undefined
  readonly text: string
  /** When it was said. */
  readonly day: string
}
export interface GoldQuestion {
  readonly kind: Kind
  /** Facts that answer it. */
  readonly facts: readonly string[]
  readonly text: string
  /** Nothing may be adjusted by what comes of it. */
  readonly isHeldOut: boolean
}
export interface GoldPerson {
  readonly name: string
  readonly conversations: number
  readonly messages: readonly string[]
  readonly facts: readonly GoldFact[]
  readonly questions: readonly GoldQuestion[]
}

/** Reads what `test/fixtures/memory-gold/README.md` describes. */
export function readGold(name: string): GoldPerson {
  const text = readFileSync(new URL(`../fixtures/memory-gold/${name}.txt`, import.meta.url), 'utf8')
  const facts: GoldFact[] = []
  const questions: GoldQuestion[] = []
  const messages: string[] = []
  let day = ''
  let conversations = 0
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const rest = line.slice(2)
    if (line.startsWith('## ')) conversations++
    else if (line.startsWith('@ ')) day = rest
    else if (line.startsWith('> ')) messages.push(rest)
    else if (line.startsWith('= ')) {
      const [, id = '', replaces, said = ''] = /^(\w+)(?: < (\w+))? \| (.+)$/.exec(rest) ?? []
      facts.push({ id, replaces, text: said, day })
    } else if (line.startsWith('? ')) {
      const [, kind = '', ids = '', asked = ''] = /^(\w+)(?: ([\w,]+))? \| (.+)$/.exec(rest) ?? []
      const isHeldOut = questions.length % 3 === 2
      questions.push({ kind: kind as Kind, facts: ids === '' ? [] : ids.split(','), text: asked, isHeldOut })
    } else throw new Error(`${name}: what is "${line}"?`)
  }
  return { name, conversations, messages, facts, questions }
}

/** Adds the facts in their order, for an agent; the ids of the memories by the ids of the facts. */
export async function addFacts(memories: Pick<Memories, 'add'>, agentId: string, { facts }: GoldPerson) {
  const ids = new Map<string, string>()
  for (const { id, replaces, text } of facts) {
    const memory: NewMemory = {
      agentId,
      content: text,
      level: 'user',
      confidence: 0.9,
      tags: [],
      source: { kind: 'message', labels: [] },
      supersedes: replaces === undefined ? undefined : ids.get(replaces),
    }
    const [added] = await memories.add([memory])
    ids.set(id, added?.id ?? '')
  }
  return ids
}

export interface Score {
  readonly questions: number
  /** Share of the facts that are among the first five, on average. */
  readonly recall: number
  /** Share of the questions whose first answer is one of the facts; of unknown ones those without an answer. */
  readonly first: number
  /** Share of relevant ones among all that was found. */
  readonly precision: number
}

export interface Answer {
  readonly question: GoldQuestion
  /** Ids of memories, the best first. */
  readonly found: readonly string[]
  readonly wanted: readonly string[]
}
/** What retrieval makes of the questions about one person. */
export async function measureGold(
  memories: Pick<Memories, 'search'>,
  agentId: string,
  { questions }: GoldPerson,
  ids: ReadonlyMap<string, string>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  for (const question of questions) {
    const found = await memories.search({ text: question.text, limit: 5, reader: { kind: 'agent', agentId } })
    answers.push({
      question,
      found: found.map(({ memory }) => memory.id),
      wanted: question.facts.map((id) => ids.get(id) ?? ''),
    })
  }
  return answers
}
export function scoreOf(answers: readonly Answer[]): Score {
  let recall = 0
  let first = 0
  let found = 0
  let relevant = 0
  for (const answer of answers) {
    const hits = answer.found.filter((id) => answer.wanted.includes(id)).length
    found += answer.found.length
    relevant += hits
    recall += answer.wanted.length === 0 ? Number(answer.found.length === 0) : hits / answer.wanted.length
    first += Number(
      answer.wanted.length === 0 ? answer.found.length === 0 : answer.wanted.includes(answer.found[0] ?? '-'),
    )
  }
  const { length: all } = answers
  return { questions: all, recall: recall / all, first: first / all, precision: found === 0 ? 1 : relevant / found }
}
