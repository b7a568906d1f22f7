import { describe, expect, it } from 'vitest'
import { activityRoutes } from '../../../plugins/activity/routes.ts'
import type { ActivityDeps } from '../../../plugins/activity/routes.ts'
import type { NewTurn, Trace } from '../../../plugins/journal/contract.ts'
import { migrations } from '../../../plugins/journal/migrations.ts'
import { JournalService } from '../../../plugins/journal/service.ts'
import { JournalStore } from '../../../plugins/journal/store.ts'
import { TurnOwners } from '../../../plugins/journal/turn-owners.ts'
import { migrations as usageMigrations } from '../../../plugins/usage/migrations.ts'
import { usageLedger } from '../../../plugins/usage/service.ts'
import { UsageStore } from '../../../plugins/usage/store.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import type { Json } from '../../support/json.ts'

const turn = (id: string, agentId: string): NewTurn => ({
  id,
  agentId,
  sessionId: 'session',
  entryPoint: 'rest',
  onCrash: 'interrupt',
  options: '{}',
  createdAt: `2026-01-01T00:00:0${id}.000Z`,
})
const trace = (id: string, more: Partial<Trace> = {}): Trace => ({
  id,
  agentId: 'a',
  sessionId: 'session',
  turnId: '1',
  kind: 'model',
  name: 'openai/x',
  iteration: 1,
  startedAt: `2026-01-01T00:00:0${id}.000Z`,
  durationMs: 100,
  failed: false,
  tokens: { input: 10, output: 5 },
  input: '',
  output: 'said',
  ...more,
})

async function start(engine: EngineName) {
  const { database } = await open(engine)
  await database.migrate('journal', migrations)
  await database.migrate('usage', usageMigrations)
  const { sql: db } = database
  const store = new JournalStore(db, recorder().log)
  const journal = new JournalService(store, new TurnOwners({ store, id: 'one' }), () => '2026-01-01T00:00:09.000Z')
  const usage = usageLedger(new UsageStore(db), () => 0)
  const agents = {
    require: async (id: string) => ({
      id,
      name: `name of ${id}`,
      state: 'Running',
      createdAt: '2026-01-01T00:00:00.000Z',
      sessionId: 'session',
    }),
  }
  const routes = activityRoutes({
    agents,
    journal,
    usage: () => usage,
    audit: {},
    now: () => Date.parse('2026-01-01T00:01:00.000Z'),
  } as unknown as ActivityDeps)
  const get = async (path: string, id = 'a', query: object = { limit: 100 }): Promise<Json> => {
    const route = routes.find((known) => known.path.endsWith(`/${path}`))
    return route?.handle({ params: { id }, query } as never)
  }
  return { db, journal, usage, get }
}

describe.each(engines)('what is recorded on %s', (engine) => {
  it('traces are shown newest first, those of a tool under the names of existing clients too', async () => {
    const { db, journal, get } = await start(engine)
    await db.batch([
      journal.accept(turn('1', 'a')),
      ...journal.trace([
        trace('1'),
        trace('2', {
          kind: 'tool',
          name: 'kv_get',
          callId: 'c1',
          tokens: undefined,
          failed: true,
          input: '{"key":"x"}',
          output: 'no such key',
        }),
      ]),
    ])
    const { traces, count } = await get('traces')
    expect(count).toBe(2)
    expect(traces[0]).toMatchObject({
      kind: 'tool',
      name: 'kv_get',
      tool_name: 'kv_get',
      tool_use_id: 'c1',
      is_error: true,
      execution_ms: 100,
      input: '{"key":"x"}',
      output_summary: 'no such key',
      input_tokens: null,
      iteration: 1,
    })
    expect(traces[1]).toMatchObject({
      kind: 'model',
      name: 'openai/x',
      input_tokens: 10,
      output_tokens: 5,
      failed: false,
    })
    expect(traces[1]).not.toHaveProperty('tool_name')
    expect((await get('traces', 'b')).traces).toEqual([])
  })

  it('metrics are of one agent, its errors among the turns that ended', async () => {
    const { db, journal, usage, get } = await start(engine)
    const record = {
      sessionId: 'session',
      turnId: '1',
      provider: 'openai',
      model: 'x',
      inputTokens: 10,
      outputTokens: 5,
      cachedInputTokens: 0,
      costUsd: 0.5,
      estimated: false,
    }
    await db.batch([
      ...['1', '2', '3', '4', '5'].map((id) => journal.accept(turn(id, id === '5' ? 'b' : 'a'))),
      journal.move('1', 'done'),
      journal.move('2', 'failed', { error: 'overloaded' }),
      journal.move('3', 'done'),
      journal.move('5', 'failed'),
      journal.intend({ key: 'k1', turnId: '1', kind: 'tool', name: 'kv_get', input: '{}' }),
      journal.settle('k1', 'failed', '{}'),
      journal.intend({ key: 'k2', turnId: '1', kind: 'tool', name: 'kv_get', input: '{}' }),
      journal.settle('k2', 'done', '{}'),
      ...journal.trace([
        trace('1', { durationMs: 100, firstMs: 20 }),
        trace('2', { durationMs: 300, firstMs: 40 }),
        trace('3', { kind: 'tool', durationMs: 7 }),
      ]),
      usage.entry({ ...record, agentId: 'a' }),
      usage.entry({ ...record, agentId: 'a', sessionId: 'older', costUsd: null }),
      usage.entry({ ...record, agentId: 'b' }),
    ])
    expect(await get('metrics')).toMatchObject({
      agent_id: 'a',
      name: 'name of a',
      uptime_secs: 60,
      message_count: 4,
      turns: { done: 2, failed: 1, queued: 1 },
      error_count: 1,
      error_rate: 1 / 3,
      token_usage: { session_tokens: 15, total_input_tokens: 20, total_output_tokens: 10, total_tokens: 30 },
      cost_usd: 0.5,
      unpriced_calls: 1,
      call_count: 2,
      tool_calls: { total_tool_calls: 2, failed_tool_calls: 1 },
      avg_response_time_ms: 200,
      latency_ms: {
        model: { count: 2, p50: 100, p99: 300 },
        first_token: { count: 2, p50: 20, max: 40 },
        tool: { count: 1, p50: 7 },
      },
    })
  })

  it('deliveries are the effects of kind send, with what became of each', async () => {
    const { db, journal, get } = await start(engine)
    const send = (key: string, turnId: string, input: string) =>
      journal.intend({ key, turnId, kind: 'send', name: 'telegram', input })
    await db.batch([
      journal.accept(turn('1', 'a')),
      journal.accept(turn('2', 'b')),
      send('k1', '1', '{"recipient":"42","message_id":"m1"}'),
      journal.settle('k1', 'done', '{}'),
      send('k2', '1', 'no JSON'),
      journal.settle('k2', 'failed', 'blocked'),
      send('k3', '1', '[]'),
      send('k4', '2', '{}'),
      journal.intend({ key: 'k5', turnId: '1', kind: 'tool', name: 'x', input: '{}' }),
    ])
    const { receipts } = await get('deliveries')
    expect(
      receipts.toSorted((one: { message_id: string }, two: { message_id: string }) =>
        one.message_id < two.message_id ? -1 : 1,
      ),
    ).toEqual([
      {
        message_id: 'k2',
        channel: 'telegram',
        recipient: '',
        status: 'failed',
        timestamp: '2026-01-01T00:00:09.000Z',
        error: 'blocked',
      },
      {
        message_id: 'k3',
        channel: 'telegram',
        recipient: '',
        status: 'best_effort',
        timestamp: '2026-01-01T00:00:09.000Z',
        error: null,
      },
      {
        message_id: 'm1',
        channel: 'telegram',
        recipient: '42',
        status: 'sent',
        timestamp: '2026-01-01T00:00:09.000Z',
        error: null,
      },
    ])
    expect((await get('deliveries', 'a', { limit: 1 })).count).toBe(1)
  })
})
