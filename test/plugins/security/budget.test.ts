import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

/** Security facts, section 0. */
const RUN_MS = 500
const TURN_MS = 20
/** From source, beside other tests, the same work costs more; what is not bounded at all costs many times that. */
const SLACK = 3

let host: TestHost
beforeAll(async () => {
  host = await startHost({
    config: { plugins: { security: { on_demand_ms: 0, probe_timeout_ms: 20_000, first_probe_ms: 3_600_000 } } },
  })
  // What is imported once is no part of it.
  await host.json('GET', '/api/security')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

/** Milliseconds of processor time of this thread: another process that has the processor does not count. */
function spent(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** What the longest turn of the event loop spent while something goes on. */
async function longestTurn(work: Promise<unknown>): Promise<number> {
  let going = true
  const ended = work.finally(() => {
    going = false
  })
  let longest = 0
  let last = spent()
  const look = (): void => {
    const now = spent()
    longest = Math.max(longest, now - last)
    last = now
    if (going) setImmediate(look)
  }
  setImmediate(look)
  await ended
  look()
  return longest
}

describe('a run of all probes', () => {
  it('spends no more processor time than it may', async () => {
    const before = spent()
    const { body } = await host.json('GET', '/api/security')
    expect(body.all_active).toBe(true)
    expect(spent() - before).toBeLessThan(RUN_MS)
  })

  it('lets others have their turn after each small step', async () => {
    expect(await longestTurn(host.json('GET', '/api/security'))).toBeLessThan(TURN_MS * SLACK)
  })
})
