import { expect, it } from 'vitest'
import { DefaultModelLog } from '../../../plugins/providers/default-model-log.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('what a start has not loaded yet is no problem of the default model', async () => {
  const clock = new ManualClock()
  const lines: string[] = []
  const note = (line: string): void => void lines.push(line)
  let problem: string | undefined = 'There is no provider "late"'
  let isStarted = false
  const log = new DefaultModelLog({
    defaults: { find: async () => ({ provider: 'late', model: 'one', because: 'default_provider' }) },
    problem: async () => problem,
    clock,
    log: { info: note, warn: note } as never,
    isStarted: () => isStarted,
  })
  log.schedule()
  clock.advance(10_000)
  expect(lines).toEqual([])
  problem = undefined
  isStarted = true
  await log.write()
  expect(lines).toEqual(['default model: late / one (default_provider)'])
  problem = 'its key is gone'
  log.schedule()
  clock.advance(10_000)
  await expect.poll(() => lines.at(-1)).toMatch(/cannot be used: its key is gone/)
})
