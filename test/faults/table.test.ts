import { describe, expect, it } from 'vitest'
import { table } from './table.ts'

// Each has a daemon and a home of its own, and waits for most of its time.
describe.concurrent('faults, in their short form', () => {
  for (const [name, { run, short, promise, lacks }] of Object.entries(table)) {
    it.skipIf(lacks !== undefined)(`${name}: ${promise}${lacks === undefined ? '' : ` (needs ${lacks})`}`, async () => {
      const { problems } = await run({ rounds: short, seed: 1, built: false })
      expect(problems).toEqual([])
    })
  }
})
