import { readFileSync } from 'node:fs'
import type { Memories, NewMemory } from '../../plugins/memory/contract.ts'
import { wordsOf } from '../../plugins/memory/words/words.ts'

export const PEOPLE = ['marta', 'devin', 'yuki'] as const
/** Nothing may be adjusted by what comes of their questions. */
export const HELD_OUT = ['leila', 'piet'] as const
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
}
/** What a person said one after the other, and the facts in it. */
export interface GoldSession {
  readonly messages: readonly string[]
  readonly facts: readonly string[]
}
export interface GoldPerson {
  readonly name: string
  readonly conversations: number
  readonly sessions: readonly GoldSession[]
  readonly facts: readonly GoldFact[]
  readonly questions: readonly GoldQuestion[]
}

/** Reads what `test/fixtures/memory-gold/README.md` describes. */
export function readGold(name: string): GoldPerson {
  const text = readFileSync(new URL(`../fixtures/memory-gold/${name}.txt`, import.meta.url), 'utf8')
  const facts: GoldFact[] = []
  const questions: GoldQuestion[] = []
  const sessions: { readonly messages: string[]; readonly facts: string[] }[] = []
  let day = ''
  let conversations = 0
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const rest = line.slice(2)
    if (line.startsWith('## ')) conversations++
    else if (line.startsWith('@ ')) {
      day = rest
      sessions.push({ messages: [], facts: [] })
    } else if (line.startsWith('> ')) sessions.at(-1)?.messages.push(rest)
    else if (line.startsWith('= ')) {
      const [, id = '', replaces, said = ''] = /^(\w+)(?: < (\w+))? \| (.+)$/.exec(rest) ?? []
      facts.push({ id, replaces, text: said, day })
      sessions.at(-1)?.facts.push(id)
    } else if (line.startsWith('? ')) {
      const [, kind = '', ids = '', asked = ''] = /^(\w+)(?: ([\w,]+))? \| (.+)$/.exec(rest) ?? []
      questions.push({ kind: kind as Kind, facts: ids === '' ? [] : ids.split(','), text: asked })
    } else throw new Error(`${name}: what is "${line}"?`)
  }
  return { name, conversations, sessions, facts, questions }
}

/** What a search answers with. */
export interface Found {
  readonly id: string
  readonly content: string
}
/** Whether a memory says a fact. */
export type Says = (memory: Found, factId: string) => boolean

/** Adds the facts in their order, for an agent. */
export async function addFacts(memories: Pick<Memories, 'add'>, agentId: string, { facts }: GoldPerson): Promise<Says> {
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
  return ({ id }, factId) => ids.get(factId) === id
}

/**
 * What memories say that were found in the messages themselves: a memory says a fact when it is a part of a message of
 * the session that the fact belongs to, and has at least half of the words of the fact, the person's name not counted.
 */
export function saysByWords({ facts, sessions }: GoldPerson): Says {
  const names = new Set(wordsOf((facts[0]?.text ?? '') + ' user full'))
  const byId = new Map(facts.map((fact) => [fact.id, fact]))
  const sessionOf = new Map(sessions.flatMap((session) => session.facts.map((id) => [id, session] as const)))
  return ({ content }, factId) => {
    const part = wordsOf(content).join(' ')
    const said = sessionOf.get(factId)?.messages.some((message) => wordsOf(message).join(' ').includes(part)) ?? false
    if (!said) return false
    const wanted = [...new Set(wordsOf(byId.get(factId)?.text ?? ''))].filter((word) => !names.has(word))
    const has = new Set(part.split(' '))
    return wanted.filter((word) => has.has(word)).length * 2 >= wanted.length
  }
}

export interface Score {
  readonly questions: number
  /** Share of the facts that the first five memories say, on average; of unknown ones that nothing was found. */
  readonly recall: number
  /** Share of relevant ones among all that was found. */
  readonly precision: number
  /** Share of the questions whose newest fact was found, with no older version of it before. */
  readonly newest: number
}
export interface Answer {
  readonly question: GoldQuestion
  readonly found: number
  readonly relevant: number
  readonly recall: number
  readonly isNewest: boolean
}
/** What a search makes of the questions about one person. */
export async function measureGold(
  search: (text: string) => Promise<readonly Found[]>,
  { questions, facts }: GoldPerson,
  says: Says,
): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  for (const question of questions) {
    const found = await search(question.text)
    const places = question.facts.map((id) => found.findIndex((memory) => says(memory, id)))
    const relevant = found.filter((memory) => question.facts.some((id) => says(memory, id))).length
    const older = question.facts.flatMap((id) => formerOf(facts, id))
    const stale = found.findIndex((memory) => older.some((id) => says(memory, id)))
    const hits = places.filter((place) => place >= 0).length
    const [first = -1] = places
    answers.push({
      question,
      found: found.length,
      relevant,
      recall: question.facts.length === 0 ? Number(found.length === 0) : hits / question.facts.length,
      isNewest: first >= 0 && (stale < 0 || first <= stale),
    })
  }
  return answers
}
function formerOf(facts: readonly GoldFact[], id: string): readonly string[] {
  const former = facts.find((fact) => fact.id === id)?.replaces
  return former === undefined ? [] : [former, ...formerOf(facts, former)]
}
export function scoreOf(answers: readonly Answer[]): Score {
  const sum = (of: (answer: Answer) => number): number => answers.reduce((all, answer) => all + of(answer), 0)
  const found = sum((answer) => answer.found)
  return {
    questions: answers.length,
    recall: sum(({ recall }) => recall) / answers.length,
    precision: found === 0 ? 1 : sum(({ relevant }) => relevant) / found,
    newest: sum(({ isNewest }) => Number(isNewest)) / answers.length,
  }
}
