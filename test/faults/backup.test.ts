import { expect, it } from 'vitest'
import { backup } from './backup.ts'

it('a restore that is killed leaves all of the old or all of the new', async () => {
  const report = await backup({ rounds: 3, seed: 5 })
  expect(report.problems).toEqual([])
  expect(report.old + report.restored).toBe(3)
  expect(report.writes).toBeGreaterThan(20)
})
