import { describe, expect, it, onTestFinished } from 'vitest'
import type { TurnView } from '../../../plugins/chat/contract.ts'
import { Dialer, readTarget } from '../../../plugins/peers/network/dialer.ts'
import { TokenBudget } from '../../../plugins/peers/network/token-budget.ts'
import type { Asked } from '../../../plugins/peers/store.ts'
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

it('tokens are those of the turns of the last hour, for each daemon by itself, also of turns that have not ended', async () => {
  const clock = new ManualClock()
  const rows: (Asked & { node: string; at: number })[] = []
  const turns = new Map<string, Pick<TurnView, 'state' | 'usage'>>()
  const budget = new TokenBudget({
    store: {
      of: async (node, since) => rows.filter((row) => row.node === node && row.at > since),
      add: async (turn_id, node, at) => void rows.push({ turn_id, node, at, tokens: null }),
      settle: async (id, tokens) =>
        void rows.filter((row) => row.turn_id === id).forEach((row) => (row.tokens = tokens)),
    },
    find: async (id) => turns.get(id),
    max: 100,
    now: () => clock.now(),
  })
  const ask = async (id: string, input: number, state: TurnView['state'] = 'done'): Promise<void> => {
    await budget.add(id, 'bob')
    turns.set(id, { state, usage: { input, output: 0 } })
  }
  await ask('first', 99)
  expect(await budget.allows('bob')).toBe(true)
  clock.advance(3_000_000)
  await ask('second', 1, 'running')
  expect([await budget.allows('bob'), await budget.allows('carol')]).toEqual([false, true])
  // Its turn is forgotten earlier than what it cost.
  turns.delete('first')
  expect(await budget.allows('bob')).toBe(false)
  clock.advance(600_000)
  expect(await budget.allows('bob')).toBe(true)
})
