import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { TurnPhase } from '../../../plugins/chat/contract.ts'
import type { LiveTurn } from '../../../plugins/chat/turn/live-turn.ts'
import { reportProgress } from '../../../plugins/chat/turn/tool-progress.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())
function start() {
  const told: TurnPhase[] = []
  const live = { enter: (phase: TurnPhase) => void told.push(phase) } as unknown as LiveTurn
  return { told, ...reportProgress(live, 'dig', 1000) }
}
const details = (told: readonly TurnPhase[]): readonly string[] => told.map(({ detail }) => detail)

it('tells the first report at once, then the latest after each pause, and nothing after the end', () => {
  const { told, progress, end } = start()
  for (let n = 1; n <= 500; n++) progress({ progress: n })
  expect(details(told)).toEqual(['dig: 1'])
  vi.advanceTimersByTime(1000)
  expect(details(told)).toEqual(['dig: 1', 'dig: 500'])
  vi.advanceTimersByTime(5000)
  progress({ progress: 501, total: 600, message: 'nearly' })
  progress({ progress: 502 })
  end()
  progress({ progress: 503 })
  vi.advanceTimersByTime(5000)
  expect(details(told)).toEqual(['dig: 1', 'dig: 500', 'dig: nearly (501 of 600)'])
  expect(vi.getTimerCount()).toBe(0)
})

it('shows a hostile message as one short line, and no number that is none', () => {
  const { told, progress } = start()
  progress({ progress: Number.NaN })
  progress({ progress: 1, total: Infinity, message: `a\u001b[2J\n\u202eb${'x'.repeat(9999)}` })
  expect(told).toMatchObject([{ detail: expect.stringMatching(/^dig: a \[2J bx{180,200} \(1\)$/), progress: 1 }])
  expect(told[0]).not.toHaveProperty('total')
})
