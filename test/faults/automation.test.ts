import { expect, it } from 'vitest'
import { automation } from './automation.ts'

it(
  'workflows go on where they stopped when the daemon is killed, and no step is lost or doubled',
  { timeout: 180_000 },
  async () => {
    const report = await automation({ runs: 8, kills: 2, seed: 11 })
    expect(report.problems).toEqual([])
    expect(report.effects).toBe(8 * 7)
  },
)
