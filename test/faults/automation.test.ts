import { expect, it } from 'vitest'
import { automation } from './automation.ts'

it('workflows go on where they stopped when the daemon is killed, every slot runs once and every event fires once', async () => {
  const report = await automation({ runs: 8, schedules: 4, triggers: 4, kills: 2, seed: 11 })
  expect(report.problems).toEqual([])
  expect(report.tasks).toBe(4)
  expect(report.effects).toBe(8 * 7)
  // Those of two schedules, and of an event before each kill.
  expect(report.results).toBeGreaterThanOrEqual(4)
})
