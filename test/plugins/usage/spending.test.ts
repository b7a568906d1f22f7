import { describe, expect, it } from 'vitest'
import type { Claim, SpendLimits, UsageRecord } from '../../../plugins/usage/contract.ts'
import { migrations } from '../../../plugins/usage/migrations.ts'
import { usageLedger } from '../../../plugins/usage/service.ts'
import { createSpending } from '../../../plugins/usage/spending.ts'
import { SpendingStore } from '../../../plugins/usage/spending/store.ts'
import { UsageStore } from '../../../plugins/usage/store.ts'
import { engines, open } from '../../core/storage/engines.ts'

const NOON = Date.parse('2026-03-31T12:30:00.000Z')
const CENT = 10_000_000
const record = (change: Partial<UsageRecord> = {}): UsageRecord => ({
  agentId: 'a',
  sessionId: 's',
  turnId: 't',
  provider: 'p',
  model: 'm',
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 0,
  costUsd: 0.01,
  estimated: false,
  ...change,
})

describe.each(engines)('spending on %s', (engine) => {
  async function start() {
    const { database } = await open(engine)
    await database.migrate('usage', migrations)
    const store = new UsageStore(database.sql)
    const sums = new SpendingStore(database.sql)
    let now = NOON
    const ledger = usageLedger(store, () => now)
    const spending = createSpending(database.sql, store, () => now)
    let serial = 0
    return {
      spending,
      store,
      sums,
      db: database.sql,
      at(time: string) {
        now = Date.parse(time)
      },
      async add(...records: UsageRecord[]) {
        await database.sql.batch(records.map((one) => ledger.entry(one)))
      },
      claim: (limits: { all?: SpendLimits; agent?: SpendLimits }, change: Partial<Claim> = {}) =>
        spending.claim(
          {
            id: `c${serial++}`,
            agentId: 'a',
            nano: CENT,
            tokens: 100,
            expiresAt: new Date(now + 600_000).toISOString(),
            ...change,
          },
          { all: {}, agent: {}, ...limits },
        ),
      settle: (id: string, used: UsageRecord) => database.sql.batch([ledger.entry(used), spending.release(id)]),
    }
  }

  it('sums what was used by hour, day and month, of one agent and of all', async () => {
    const { add, at, spending } = await start()
    at('2026-02-28T23:59:59.999Z')
    await add(record())
    at('2026-03-01T00:00:00.000Z')
    await add(record({ costUsd: 0.02 }))
    at('2026-03-31T00:00:00.000Z')
    await add(record({ costUsd: 0.04 }), record({ agentId: 'b', costUsd: 0.08 }))
    at('2026-03-31T12:00:00.000Z')
    await add(record({ costUsd: 0.16 }), record({ costUsd: null }))
    at('2026-03-31T12:30:00.000Z')
    expect(await spending.spent('a')).toEqual({
      hourNano: 16 * CENT,
      dayNano: 20 * CENT,
      monthNano: 22 * CENT,
      hourTokens: 30,
      heldNano: 0,
      heldTokens: 0,
      unpricedToday: 1,
    })
    expect(await spending.spent()).toMatchObject({ hourNano: 16 * CENT, dayNano: 28 * CENT, monthNano: 30 * CENT })
    expect(await spending.spent('nobody')).toMatchObject({ monthNano: 0, hourTokens: 0 })
  })

  it('adds what came since, and nothing twice', async () => {
    const { add, claim, spending } = await start()
    for (let round = 1; round <= 3; round++) {
      await add(record(), record({ agentId: 'b' }))
      expect(await claim({ all: { dayNano: 1000 * CENT } })).toBe(true)
      expect((await spending.spent()).dayNano).toBe(round * 2 * CENT)
      expect((await spending.spent('b')).dayNano).toBe(round * CENT)
    }
  })

  it('an old ledger is summed in slices', async () => {
    const { add, sums, spending } = await start()
    await add(...Array.from({ length: 25 }, () => record()))
    if (engine === 'sqlite')
      while ((await sums.fold(10)) >= 10) {
        /* On PostgreSQL what is new waits for its seconds. */
      }
    expect((await spending.spent()).dayNano).toBe(25 * CENT)
  })

  it.each([
    ['all', 'hourNano'],
    ['all', 'dayNano'],
    ['all', 'monthNano'],
    ['agent', 'hourNano'],
    ['agent', 'dayNano'],
    ['agent', 'monthNano'],
  ] as const)('a limit of %s by %s is not passed by a claim, and may be reached', async (whose, period) => {
    const { add, claim } = await start()
    await add(record({ costUsd: 0.02 }))
    expect(await claim({ [whose]: { [period]: 4 * CENT } })).toBe(true)
    expect(await claim({ [whose]: { [period]: 4 * CENT } })).toBe(true)
    expect(await claim({ [whose]: { [period]: 4 * CENT } })).toBe(false)
    expect(await claim({ [whose]: { [period]: 4 * CENT } }, { nano: 0 })).toBe(true)
  })

  it('tokens of the hour are limited too', async () => {
    const { add, claim } = await start()
    await add(record())
    expect(await claim({ agent: { hourTokens: 114 } })).toBe(false)
    expect(await claim({ agent: { hourTokens: 115 } })).toBe(true)
  })

  it("another agent's claims count for the limit of all and not for one's own", async () => {
    const { claim } = await start()
    expect(await claim({}, { agentId: 'b' })).toBe(true)
    expect(await claim({ agent: { dayNano: CENT } })).toBe(true)
    expect(await claim({ all: { dayNano: 2 * CENT } })).toBe(false)
  })

  it('fifty claims at once get what there is room for', async () => {
    const { claim } = await start()
    const taken = await Promise.all(Array.from({ length: 50 }, () => claim({ all: { dayNano: 7 * CENT } })))
    expect(taken.filter(Boolean)).toHaveLength(7)
  })

  it('what is settled counts as used, in one step; what is given back makes room', async () => {
    const { claim, settle, spending, db } = await start()
    expect(await claim({ all: { dayNano: CENT } }, { id: 'x' })).toBe(true)
    await settle('x', record({ costUsd: 0.004 }))
    expect(await spending.spent()).toMatchObject({ dayNano: 4_000_000, heldNano: 0 })
    expect(await claim({ all: { dayNano: CENT } }, { id: 'y' })).toBe(false)
    expect(await claim({ all: { dayNano: CENT } }, { id: 'y', nano: 6_000_000 })).toBe(true)
    await db.batch([spending.release('y')])
    expect(await claim({ all: { dayNano: CENT } }, { nano: 6_000_000 })).toBe(true)
  })

  it('a claim nobody gives back counts until it expires', async () => {
    const { claim, at, spending } = await start()
    await claim({ all: { dayNano: CENT } })
    at('2026-03-31T12:39:59.000Z')
    expect((await spending.spent('a')).heldNano).toBe(CENT)
    expect(await claim({ all: { dayNano: CENT } })).toBe(false)
    at('2026-03-31T12:40:01.000Z')
    expect((await spending.spent('a')).heldNano).toBe(0)
    expect(await claim({ all: { dayNano: CENT } })).toBe(true)
  })

  it('a new day begins with its claims alone', async () => {
    const { add, claim, at } = await start()
    await add(record({ costUsd: 1 }))
    expect(await claim({ all: { dayNano: CENT } })).toBe(false)
    at('2026-04-01T00:00:00.000Z')
    expect(await claim({ all: { dayNano: CENT } })).toBe(true)
  })

  it('ranks the agents by what they spent', async () => {
    const { add, at, spending } = await start()
    at('2026-02-01T00:00:00.000Z')
    await add(record({ agentId: 'old', costUsd: 5 }))
    at('2026-03-31T12:00:00.000Z')
    await add(record(), record({ agentId: 'new', costUsd: 1 }), record({ agentId: 'free', costUsd: null }))
    expect(await spending.ranking()).toEqual([
      { agentId: 'old', totalNano: 500 * CENT, todayNano: 0, monthNano: 0, calls: 1, unpriced: 0 },
      { agentId: 'new', totalNano: 100 * CENT, todayNano: 100 * CENT, monthNano: 100 * CENT, calls: 1, unpriced: 0 },
      { agentId: 'a', totalNano: CENT, todayNano: CENT, monthNano: CENT, calls: 1, unpriced: 0 },
      { agentId: 'free', totalNano: 0, todayNano: 0, monthNano: 0, calls: 1, unpriced: 1 },
    ])
  })
})
