import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { migrations } from '../../../plugins/usage/migrations.ts'
import { dayStart, hourStart, nextHour, periodStart } from '../../../plugins/usage/period.ts'
import { usageLedger } from '../../../plugins/usage/service.ts'
import { UsageStore } from '../../../plugins/usage/store.ts'
import { UsageSums } from '../../../plugins/usage/sums/store.ts'
import type { UsageRecord } from '../../../plugins/usage/contract.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { Json } from '../../support/json.ts'

const record = (change: Partial<UsageRecord> = {}): UsageRecord => ({
  agentId: 'agent-1',
  sessionId: 's',
  turnId: 't',
  provider: 'fake',
  model: 'small',
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 0,
  costUsd: 0.1,
  estimated: false,
  ...change,
})
const NOON = Date.parse('2026-03-29T12:30:00.000Z')

describe.each(engines)('the ledger on %s', (engine) => {
  async function start() {
    const { database } = await open(engine)
    await database.migrate('usage', migrations)
    const store = new UsageStore(database.sql)
    let now = NOON
    const ledger = usageLedger(store, () => now)
    return {
      store,
      sums: new UsageSums(database.sql),
      db: database.sql,
      async add(at: string, ...records: UsageRecord[]) {
        now = Date.parse(at)
        await database.sql.batch(records.map((one) => ledger.entry(one)))
      },
    }
  }

  it('groups of a period leave out what was used before it', async () => {
    const { sums, add } = await start()
    await add('2026-03-20T12:00:00Z', record({ model: 'old' }), record())
    await add('2026-03-29T12:00:00Z', record())
    const requests = async (since?: string) =>
      (await sums.by(['model'], since)).map(({ model, requests }) => [model, requests])
    expect(await requests(periodStart('week', NOON))).toEqual([['small', 1]])
    expect(await requests()).toEqual([
      ['small', 2],
      ['old', 1],
    ])
  })

  it('sums are what was recorded, and an unknown cost is counted, not taken for 0', async () => {
    const { sums, add } = await start()
    await add(
      '2026-03-29T12:00:00Z',
      record(),
      record({ costUsd: 0.2 }),
      record({ costUsd: null, agentId: 'agent-2', estimated: true }),
      record({ costUsd: 0 }),
    )
    const found = await sums.totals(periodStart('day', NOON))
    expect(found).toMatchObject({
      input_tokens: 40,
      output_tokens: 20,
      requests: 4,
      unpriced: 1,
      agents: 2,
      estimated: 1,
    })
    expect(found.cost_usd).toBeCloseTo(0.3, 12)
  })

  it('an empty ledger sums to zero', async () => {
    const { store, sums } = await start()
    expect(await sums.totals('2026')).toEqual({
      input_tokens: 0,
      output_tokens: 0,
      cost_usd: 0,
      requests: 0,
      unpriced: 0,
      agents: 0,
      estimated: 0,
    })
    expect(await store.firstDay()).toBeNull()
  })

  it('periods reach back from now', async () => {
    const { sums, add } = await start()
    await add('2026-03-29T12:00:00Z', record())
    await add('2026-03-29T11:00:00Z', record())
    await add('2026-03-28T10:00:00Z', record())
    await add('2026-03-20T10:00:00Z', record())
    await add('2026-01-01T10:00:00Z', record())
    const counts = await Promise.all(
      (['hour', 'day', 'week', 'month'] as const).map(
        async (period) => (await sums.totals(periodStart(period, NOON))).requests,
      ),
    )
    expect(counts).toEqual([1, 2, 3, 4])
  })

  it('groups by model, provider, agent and day', async () => {
    const { store, sums, add } = await start()
    await add('2026-03-28T10:00:00Z', record(), record({ model: 'big', costUsd: null }))
    await add('2026-03-29T10:00:00Z', record({ provider: 'other', agentId: 'agent-2' }))
    expect(
      (await sums.by(['model', 'provider'])).map((row) => [row.model, row.provider, row.requests, row.unpriced]),
    ).toEqual([
      ['big', 'fake', 1, 1],
      ['small', 'fake', 1, 0],
      ['small', 'other', 1, 0],
    ])
    expect((await sums.by(['provider'])).map((row) => [row.provider, row.requests])).toEqual([
      ['fake', 2],
      ['other', 1],
    ])
    expect((await sums.by(['agent_id'])).map((row) => [row.agent_id, row.input_tokens])).toEqual([
      ['agent-1', 20],
      ['agent-2', 10],
    ])
    expect((await sums.daily('2026-03-01')).map((row) => [row.date, row.requests, row.unpriced])).toEqual([
      ['2026-03-28', 2, 1],
      ['2026-03-29', 1, 0],
    ])
    expect(await store.firstDay()).toBe('2026-03-28')
  })

  it('absurd numbers of a provider spoil no sum', async () => {
    const { sums, add } = await start()
    await add(
      '2026-03-29T12:00:00Z',
      record({ inputTokens: -5, outputTokens: 1e30, cachedInputTokens: NaN, costUsd: NaN }),
      record({ inputTokens: 1.6, costUsd: -1 }),
    )
    expect(await sums.totals('2026')).toMatchObject({ input_tokens: 2, output_tokens: 5, cost_usd: 0, unpriced: 2 })
  })
})

it('sums of many records are exact, also of many at one moment, and others get their turn meanwhile', async () => {
  const { database } = await open('sqlite')
  await database.migrate('usage', migrations)
  const { sql } = database
  // Sixty thousand over a month, and among them six thousand of one millisecond.
  await sql.run`INSERT INTO usage_record (recorded_at, agent_id, session_id, turn_id, provider, model,
      input_tokens, output_tokens, cached_input_tokens, cost_usd, estimated)
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', '2026-03-01',
        '+' || (CASE WHEN i BETWEEN 20000 AND 25999 THEN 20000 ELSE i END * 43) || ' seconds'),
      'agent-' || (i % 7), 's', 't', 'p' || (i % 2), 'm' || (i % 5), i, 1, 0,
      CASE WHEN i % 3 = 0 THEN NULL ELSE 0.1 END, i % 2 FROM n`
  const sums = new UsageSums(sql)
  let turns = 0
  let watching = true
  const watch = (): void => {
    turns++
    if (watching) setImmediate(watch)
  }
  setImmediate(watch)
  const [all, models, days] = [await sums.totals(''), await sums.by(['model', 'provider']), await sums.daily('')]
  watching = false
  expect(all).toEqual({
    input_tokens: 1_799_970_000,
    output_tokens: 60_000,
    cost_usd: 4000,
    requests: 60_000,
    unpriced: 20_000,
    agents: 7,
    estimated: 30_000,
  })
  expect([
    models.length,
    models.reduce((sum, { requests }) => sum + requests, 0),
    days.reduce((sum, { requests }) => sum + requests, 0),
  ]).toEqual([10, 60_000, 60_000])
  // Two days have none: their records are of the one moment.
  expect(days.length).toBe(28)
  expect(turns).toBeGreaterThan(30)
})

it('boundaries are in UTC', () => {
  expect([dayStart(NOON), dayStart(NOON, 6), hourStart(NOON), nextHour(NOON)]).toEqual([
    '2026-03-29T00:00:00.000Z',
    '2026-03-23T00:00:00.000Z',
    '2026-03-29T12:00:00.000Z',
    '2026-03-29T13:00:00.000Z',
  ])
})

describe('the routes of usage', () => {
  let test: PluginTest
  beforeEach(async () => {
    test = await startPlugin({
      plugin: new URL('../../../plugins/usage/', import.meta.url),
      builtIns: [],
      database: 'file',
    })
  })
  afterEach(async () => {
    await test[Symbol.asyncDispose]()
  })
  const get = async (path: string): Promise<Json> => (await test.request<Json>('GET', path)).body
  async function seed(): Promise<void> {
    const url = `sqlite:${join(test.home, 'data', 'svc.db')}`
    await using database = await openDatabase({ url, log: recorder().log })
    const ledger = usageLedger(new UsageStore(database.sql), Date.now)
    await database.sql.batch(
      [
        record(),
        record({ costUsd: 0.2 }),
        record({ model: 'big', provider: 'other', costUsd: null, agentId: 'agent-2' }),
      ].map((one) => ledger.entry(one)),
    )
  }

  it('answer for an empty ledger', async () => {
    expect(await get('/api/usage')).toEqual({
      period: 'day',
      total_input_tokens: 0,
      total_output_tokens: 0,
      total_cost_usd: 0,
      request_count: 0,
      active_agents: 0,
      unpriced_requests: 0,
      estimated_requests: 0,
    })
    expect(await get('/api/usage/by-model')).toEqual({ models: [] })
    expect(await get('/api/usage/daily')).toMatchObject({
      today_cost_usd: 0,
      first_event_date: null,
    })
  })

  it('answer what was recorded, after a restart', async () => {
    await test.restart(seed)
    expect(await get('/api/usage?period=hour')).toEqual({
      period: 'hour',
      total_input_tokens: 30,
      total_output_tokens: 15,
      total_cost_usd: 0.3,
      request_count: 3,
      active_agents: 2,
      unpriced_requests: 1,
      estimated_requests: 0,
    })
    const summary = await get('/api/usage/summary')
    expect(summary.quota).toMatchObject({ hourly_token_limit: null })
    expect(Object.keys(summary.today).toSorted()).toEqual([
      'cost_usd',
      'input_tokens',
      'output_tokens',
      'requests',
      'unpriced_requests',
    ])
    expect((await get('/api/usage/by-model')).models[0]).toEqual({
      model: 'small',
      provider: 'fake',
      input_tokens: 20,
      output_tokens: 10,
      cost_usd: 0.3,
      request_count: 2,
      unpriced_requests: 0,
    })
    expect((await get('/api/usage/agents')).agents[1]).toMatchObject({
      agent_id: 'agent-2',
      name: null,
      total_tokens: 15,
      unpriced_requests: 1,
    })
    expect((await get('/api/usage/providers')).providers).toHaveLength(2)
    const { days: month } = await get('/api/usage/daily?days=30')
    expect(month).toHaveLength(30)
    const { days } = await get('/api/usage/daily')
    expect(month.slice(-7)).toEqual(days)
    expect(days).toHaveLength(7)
  })

  it.each(['year', 'DAY', ''])('a period of "%s" is 400', async (period) => {
    expect((await test.request('GET', `/api/usage?period=${period}`)).status).toBe(400)
  })
})
