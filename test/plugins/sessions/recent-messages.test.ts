import { expect, it } from 'vitest'
import { RecentMessageCache } from '../../../plugins/sessions/recent-messages.ts'
import type { Appended } from '../../../plugins/sessions/recent-messages.ts'

const row = (id: string, text: string): Appended => ({
  id,
  turn_id: id,
  role: 'user',
  blocks: [{ type: 'text', text }],
  mark: null,
  created_at: '2026-01-01T00:00:00.000Z',
})
const kept = (tails: RecentMessageCache, sessions: readonly string[]): number =>
  sessions.filter((id) => tails.has(id)).length
const sessions = Array.from({ length: 500 }, (_, at) => `session-${at}`)
function begun(): RecentMessageCache {
  const tails = new RecentMessageCache()
  for (const id of sessions) tails.put(id, { appended: 0, fingerprint: 0 }, [], [], true)
  return tails
}

it('what is appended makes room for itself: sessions that only go on do not pass the bound of all together', () => {
  const tails = begun()
  for (let n = 0; n < 10; n++) for (const id of sessions) tails.add(id, row(`${id}-${n}`, ''), 10_000, true)
  expect(kept(tails, sessions)).toBeGreaterThan(100)
  expect(kept(tails, sessions)).toBeLessThan(400)
  expect(tails.has('session-499')).toBe(true)
})
it('many short messages count as what they take, not as what they say', () => {
  const tails = begun()
  for (let n = 0; n < 100; n++) for (const id of sessions) tails.add(id, row(`${id}-${n}`, 'ok'), 30, true)
  expect(kept(tails, sessions)).toBeGreaterThan(100)
  expect(kept(tails, sessions)).toBeLessThan(400)
})
it('what five hundred ordinary sessions say is all kept', () => {
  const tails = begun()
  for (let n = 0; n < 40; n++) for (const id of sessions) tails.add(id, row(`${id}-${n}`, 'a question'), 150, true)
  expect(kept(tails, sessions)).toBe(500)
})
