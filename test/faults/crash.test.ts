import { expect, it } from 'vitest'
import { crash } from './crash.ts'

it('a killed daemon finds every acknowledged write again, ends every turn and runs no tool twice', async () => {
  const report = await crash({ rounds: 3, seed: 1 })
  expect(report.problems).toEqual([])
  expect(report.acknowledged).toBeGreaterThan(0)
  expect(report.effects).toBeGreaterThan(0)
})
