import { setImmediate as turn } from 'node:timers/promises'
import type { Turn } from 'svc/providers'
import type { Finding, ProbeCase } from '../../security/contract.ts'
import { repair } from '../safety/history-repair.ts'

const user = (text: string): Turn => ({ role: 'user', parts: text === '' ? [] : [{ type: 'text', text }] })
const assistant = (text: string, ...ids: string[]): Turn => ({
  role: 'assistant',
  text,
  calls: ids.map((id) => ({ id, name: 'look', args: {} })),
})
const tool = (callId: string, text = 'found'): Turn => ({ role: 'tool', callId, tool: 'look', text, failed: false })

/** Every defect a history can have, once or twice. */
const broken: readonly Turn[] = [
  assistant('before anyone asked'),
  tool('orphan'),
  user('one'),
  user('two'),
  assistant('calling', 'a', 'b'),
  user('meanwhile'),
  tool('b'),
  tool('b', 'again'),
  tool('a', 'x'.repeat(60_000)),
  assistant(''),
  assistant('so'),
  assistant('and', 'c'),
  user(''),
  user('three'),
]
const counts = {
  orphanResults: 1,
  empty: 2,
  moved: 2,
  duplicateResults: 1,
  synthetic: 1,
  merged: 2,
  leading: 1,
  oversize: 1,
} as const
const legal: readonly Turn[] = [user('one'), assistant('calling', 'a'), tool('a'), assistant('done'), user('two')]
const HISTORIES = 200

/** A broken history, a sound one, and two hundred made up ones (security facts 1.16). */
export async function probe(): Promise<Finding> {
  const { turns, report } = repair(broken)
  const again = repair(turns)
  const cases: ProbeCase[] = [
    { name: 'a broken history is refused by the test of what providers take', passed: !isLegal(broken) },
    { name: 'mended it passes', passed: isLegal(turns) },
    {
      name: 'every defect is counted',
      passed: Object.entries(counts).every(([defect, count]) => report[defect as keyof typeof counts] === count),
    },
    {
      name: 'mending twice changes nothing',
      passed:
        JSON.stringify(again.turns) === JSON.stringify(turns) &&
        Object.values(again.report).every((count) => count === 0),
    },
    {
      name: 'what the user said is all there',
      passed: ['one', 'two', 'meanwhile', 'three'].every((text) => JSON.stringify(turns).includes(text)),
    },
    { name: 'a sound history stays as it is', passed: JSON.stringify(repair(legal).turns) === JSON.stringify(legal) },
  ]
  const random = numbers(20_240_601)
  let sound = 0
  for (let at = 0; at < HISTORIES; at++) {
    if (isLegal(repair(history(random)).turns)) sound++
    if (at % 50 === 49) await turn()
  }
  cases.push({ name: `made up histories: ${sound} of ${HISTORIES} are sound when mended`, passed: sound === HISTORIES })
  return { cases, evidence: `${HISTORIES} made up histories` }
}

/** What every provider asks of a history. */
function isLegal(turns: readonly Turn[]): boolean {
  if (turns[0] !== undefined && turns[0].role !== 'user') return false
  let open: string[] = []
  let before: Turn['role'] | undefined
  for (const each of turns) {
    if (each.role === 'tool') {
      if (open.shift() !== each.callId || each.text.length > 50_000) return false
    } else {
      if (open.length > 0 || each.role === before || isEmpty(each)) return false
      if (each.role === 'assistant') open = each.calls.map(({ id }) => id)
    }
    before = each.role
  }
  return open.length === 0
}

function isEmpty(turn: Exclude<Turn, { role: 'tool' }>): boolean {
  return turn.role === 'user' ? turn.parts.length === 0 : turn.text.trim() === '' && turn.calls.length === 0
}

function history(random: () => number): readonly Turn[] {
  const id = (): string => `call-${Math.floor(random() * 5)}`
  return Array.from({ length: Math.floor(random() * 20) }, (): Turn => {
    const kind = random()
    if (kind < 0.3) return user(random() < 0.2 ? '' : 'said')
    if (kind < 0.65)
      return assistant(random() < 0.3 ? '' : 'answered', ...Array.from({ length: Math.floor(random() * 3) }, id))
    return tool(id())
  })
}

/** The same numbers at every run: a failure can be repeated. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}
