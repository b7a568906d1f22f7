import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let test: PluginTest
let agent: string
let idle: string
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/activity/', import.meta.url),
    builtIns: [...turnPlugins, 'clock'],
  })
  agent = await test.spawn('busy')
  idle = await test.spawn('idle')
  for (const message of ['one', 'two']) await test.say(agent, message)
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
})
const get = (path: string, id = agent) => test.request<Json>('GET', `/api/agents/${id}/${path}`)

describe('GET /api/agents/{id}/traces', () => {
  it('has each call of a model and of a tool with its time and tokens, newest first', async () => {
    const id = await test.spawn('traced')
    await test.say(id, 'what time is it?', { calls: [{ tool: 'system_time', args: {} }] }, 'it is late')
    const { body } = await get('traces', id)
    expect(body).toMatchObject({ agent_id: id, count: 3 })
    expect(
      body.traces.map(({ kind, name, iteration, failed }: Record<string, unknown>) => [kind, name, iteration, failed]),
    ).toEqual([
      ['model', 'fake/fake-model', 2, false],
      ['tool', 'system_time', 1, false],
      ['model', 'fake/fake-model', 1, false],
    ])
    const [last, tool, first] = body.traces
    for (const trace of [first, last])
      expect(trace).toMatchObject({
        input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        duration_ms: expect.any(Number),
        started_at: expect.stringMatching(/Z$/),
      })
    expect(tool).toMatchObject({
      tool_name: 'system_time',
      is_error: false,
      input: '{}',
      output_summary: expect.stringMatching(/./),
    })
    expect((await get('traces?limit=1', id)).body.traces).toEqual([last])
    expect((await get('metrics', id)).body).toMatchObject({
      tool_calls: { total_tool_calls: 1, failed_tool_calls: 0 },
      latency_ms: { model: { count: 2, p50: expect.any(Number) }, tool: { count: 1 } },
    })
  })

  it('is empty for an agent that did nothing, and never that of another', async () => {
    expect((await get('traces', idle)).body).toEqual({ agent_id: idle, count: 0, traces: [] })
  })
})

describe('GET /api/agents/{id}/metrics', () => {
  it('counts turns, tokens, latencies and errors', async () => {
    const { body } = await get('metrics')
    expect(body).toMatchObject({
      agent_id: agent,
      name: 'busy',
      state: 'Running',
      message_count: 2,
      turns: { done: 2 },
      call_count: 2,
      error_count: 0,
      error_rate: 0,
    })
    expect(body.token_usage.total_tokens).toBe(
      body.token_usage.total_input_tokens + body.token_usage.total_output_tokens,
    )
    expect(body.token_usage.session_tokens).toBe(body.token_usage.total_tokens)
  })

  it('is null where nothing was measured', async () => {
    const { body } = await get('metrics', idle)
    expect(body).toMatchObject({
      message_count: 0,
      avg_response_time_ms: null,
      error_rate: 0,
      token_usage: { total_tokens: 0, session_tokens: 0 },
      latency_ms: { tool: { count: 0, p99: null } },
    })
  })
})

describe('GET /api/agents/{id}/logs', () => {
  it('has the entries of the audit log about the agent, newest first', async () => {
    const { body } = await get('logs')
    expect(body.logs.at(-1)).toMatchObject({
      action: 'agent_spawned',
      detail: 'agent "busy" spawned',
      level: 'info',
      outcome: 'ok',
    })
    expect(body.logs.map((entry: { seq: number }) => entry.seq)).toEqual(
      body.logs.map((entry: { seq: number }) => entry.seq).toSorted((a: number, b: number) => b - a),
    )
    expect(body.count).toBe(body.logs.length)
    const { entries } = (await test.request<Json>('GET', `/api/audit/recent?limit=500&agent_id=${agent}`)).body
    expect(body.logs.map((entry: { seq: number }) => entry.seq)).toEqual(
      entries.map((entry: { id: number }) => entry.id).toReversed(),
    )
  })

  it('is paged by n and offset, and filtered by level', async () => {
    const all = (await get('logs')).body.logs
    expect((await get('logs?n=2&offset=1')).body).toMatchObject({ count: 2, offset: 1, logs: all.slice(1, 3) })
    expect((await get('logs?level=error')).body.logs).toEqual([])
    expect((await get('logs?level=info&n=1000')).body.logs).toEqual(all)
    expect((await get('logs?offset=9999')).body.logs).toEqual([])
  })

  it.each(['n=0', 'n=1001', 'n=x', 'level=debug', 'offset=-1', 'n=1&n=2'])('%s is 400', async (query) => {
    expect((await get(`logs?${query}`)).status).toBe(400)
  })
})

describe('GET /api/agents/{id}/deliveries', () => {
  it('is an empty list as long as nothing was sent', async () => {
    expect((await get('deliveries')).body).toEqual({ agent_id: agent, count: 0, receipts: [] })
    expect((await get('deliveries?limit=501')).status).toBe(400)
  })
})

it.each(['traces', 'metrics', 'logs', 'deliveries'])('%s of an unknown agent is 404, of no agent 400', async (path) => {
  expect((await get(path, nobody)).status).toBe(404)
  expect((await get(path, 'x')).status).toBe(400)
})
