import { describe, expect, it } from 'vitest'
import type { Turn } from 'svc/providers'
import { repair, UNANSWERED } from '../../../plugins/chat/safety/history-repair.ts'

const user = (text: string): Turn => ({ role: 'user', parts: text === '' ? [] : [{ type: 'text', text }] })
const assistant = (text: string, ...ids: string[]): Turn => ({
  role: 'assistant',
  text,
  calls: ids.map((id) => ({ id, name: 'look', args: {} })),
})
const tool = (callId: string, text = 'found'): Turn => ({ role: 'tool', callId, tool: 'look', text, failed: false })

/** What every provider asks of a history. */
function legal(turns: readonly Turn[]): boolean {
  if (turns.length > 0 && turns[0]?.role !== 'user') return false
  let open: string[] = []
  let before: Turn['role'] | undefined
  for (const turn of turns) {
    if (turn.role === 'tool') {
      if (open.shift() !== turn.callId) return false
    } else {
      if (open.length > 0 || turn.role === before) return false
      if (turn.role === 'assistant') {
        if (turn.text.trim() === '' && turn.calls.length === 0) return false
        open = turn.calls.map(({ id }) => id)
      } else if (turn.parts.length === 0) return false
    }
    before = turn.role
  }
  return open.length === 0
}
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

describe('session repair', () => {
  const broken: Turn[] = [
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

  it('mends every defect and counts it', () => {
    const { turns, report } = repair(broken)
    expect(legal(turns)).toBe(true)
    expect(report).toEqual({
      orphanResults: 1,
      empty: 2,
      moved: 2,
      duplicateResults: 1,
      synthetic: 1,
      merged: 2,
      leading: 1,
      oversize: 1,
    })
    expect(turns.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
      'assistant',
      'tool',
      'user',
    ])
    expect(turns[6]).toEqual({ role: 'tool', callId: 'c', tool: 'look', text: UNANSWERED, failed: true })
  })

  it('changes nothing when it runs again', () => {
    const once = repair(broken).turns
    const twice = repair(once)
    expect(twice.turns).toEqual(once)
    expect(Object.values(twice.report).every((count) => count === 0)).toBe(true)
  })

  it('never loses what the user said, and leaves its input alone', () => {
    const copy = structuredClone(broken)
    const said = repair(broken).turns.flatMap((turn) =>
      turn.role === 'user' ? turn.parts.map((part) => (part.type === 'text' ? part.text : '')) : [],
    )
    expect(said).toEqual(['one\n\ntwo', 'meanwhile', 'three'])
    expect(broken).toEqual(copy)
  })

  it('keeps the results apart when a later message uses an id again', () => {
    const { turns, report } = repair([
      user('q'),
      assistant('', 'call_0'),
      tool('call_0', 'first'),
      user('q2'),
      assistant('', 'call_0'),
      tool('call_0', 'second'),
    ])
    expect(turns.flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))).toEqual(['first', 'second'])
    expect(report.duplicateResults).toBe(0)
  })

  it('leaves out results that are no text, and keeps those with colours', () => {
    const history = (text: string): readonly Turn[] => [
      { role: 'user', parts: [{ type: 'text', text: 'read it' }] },
      { role: 'assistant', text: '', calls: [{ id: 'c', name: 'file_read', args: {} }] },
      { role: 'tool', callId: 'c', tool: 'file_read', text, failed: false },
    ]
    const result = (text: string) => repair(history(text)).turns.at(-1)
    expect(result('PNG\u0000\u0001\u0002')).toMatchObject({ text: '[left out: 6 characters that are no text]' })
    expect(result('\ufffd\ufffd\ufffdJFIF')).toMatchObject({ text: expect.stringContaining('left out') })
    expect(result('\u001b[32mok\u001b[0m\n\tdone')).toMatchObject({ text: '\u001b[32mok\u001b[0m\n\tdone' })
    const once = repair(history('\u0000')).turns
    expect(repair(once)).toMatchObject({ turns: once, report: { oversize: 0 } })
  })

  it('makes 200 random histories legal, and is then at rest', () => {
    const next = random(7)
    for (let n = 0; n < 200; n++) {
      const turns = Array.from({ length: Math.floor(next() * 30) }, (): Turn => {
        const kind = next()
        const id = () => `c${Math.floor(next() * 6)}`
        if (kind < 0.3) return user(next() < 0.2 ? '' : `text ${next()}`)
        if (kind < 0.65)
          return assistant(next() < 0.4 ? '' : 'said', ...new Set(Array.from({ length: Math.floor(next() * 3) }, id)))
        return tool(id())
      })
      const once = repair(turns).turns
      expect(legal(once)).toBe(true)
      expect(repair(once).turns).toEqual(once)
    }
  })

  // A repair that grows with the square would need minutes here, and the time limit of a test ends it.
  it('repairs 200,000 messages', () => {
    const turns = Array.from({ length: 200_000 }, (_, n): Turn =>
      n % 3 === 0 ? user('q') : n % 3 === 1 ? assistant('a', `c${n}`) : tool(`c${n - 1}`),
    )
    // The last call has no result, so it gets one.
    expect(repair(turns).turns).toHaveLength(200_001)
  })

  it('merges 100,000 neighbours without copying what was merged before', () => {
    const turns = Array.from({ length: 100_000 }, () => user('q'))
    const { turns: merged } = repair(turns)
    expect(merged).toHaveLength(1)
    expect(merged).toEqual([user(turns.map(() => 'q').join('\n\n'))])
    expect(turns[0]).toEqual(user('q'))
  })
})
