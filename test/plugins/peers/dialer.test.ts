import { describe, expect, it, onTestFinished } from 'vitest'
import { Dialer, readTarget } from '../../../plugins/peers/network/dialer.ts'
import { TokenBudget } from '../../../plugins/peers/network/token-budget.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A dialer whose attempts end as the test says, on a clock that is moved by hand. */
function start(random: number) {
  const clock = new ManualClock()
  const ended = new AbortController()
  const attempts: number[] = []
  let link: PromiseWithResolvers<Error> | undefined
  const dialer = new Dialer(readTarget('bob@192.0.2.7:4200'), {
    async dial(_target, opened) {
      attempts.push(clock.now())
      if (!link) throw new Error('nobody is there')
      opened({} as never)
      return await link.promise
    },
    minMs: 1_000,
    maxMs: 60_000,
    random: () => random,
    clock,
  })
  const running = dialer.run(ended.signal)
  onTestFinished(async () => {
    ended.abort()
    link?.resolve(new Error('over'))
    await running
  })
  const settle = async (): Promise<void> => {
    for (let at = 0; at < 20; at++) await Promise.resolve()
  }
  return {
    clock,
    dialer,
    attempts,
    settle,
    accept: () => (link = Promise.withResolvers()),
    /** How long it waits for the next attempt. */
    async wait(): Promise<number> {
      const before = attempts.length
      const since = clock.now()
      await settle()
      while (attempts.length === before) {
        clock.advance(500)
        await settle()
      }
      return clock.now() - since
    },
  }
}

describe('a daemon that is away', () => {
  it('is called again after twice the time, up to a longest one', async () => {
    const { wait, dialer } = start(1)
    const waits: number[] = []
    for (let at = 0; at < 8; at++) waits.push(await wait())
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
    expect(dialer).toMatchObject({ problem: 'nobody is there' })
  })

  it('is called at random within half of it, so that all do not come at once', async () => {
    expect(await start(0).wait()).toBe(1_000)
    expect(await start(0.5).wait()).toBe(1_500)
  })

  it('is called at once when somebody needs it, and soon after a link that held', async () => {
    const { wait, dialer, attempts, settle, accept, clock } = start(1)
    for (let at = 0; at < 5; at++) await wait()
    const link = accept()
    const before = attempts.length
    await settle()
    dialer.hurry()
    await settle()
    expect([attempts.length - before, dialer.state]).toEqual([1, 'connected'])
    clock.advance(5_000)
    link.resolve(new Error('the link was cut'))
    expect(await wait()).toBe(1_000)
    // The next ones break at once, which is a failure too.
    expect([await wait(), await wait()]).toEqual([2_000, 4_000])
  })
})

it('tokens are counted for an hour from the first one, for each daemon by itself', () => {
  const clock = new ManualClock()
  const budget = new TokenBudget(100, () => clock.now())
  budget.charge('bob', 99)
  expect(budget.allows('bob')).toBe(true)
  clock.advance(3_000_000)
  budget.charge('bob', 1)
  expect([budget.allows('bob'), budget.allows('carol')]).toEqual([false, true])
  clock.advance(600_000)
  expect(budget.allows('bob')).toBe(true)
})
