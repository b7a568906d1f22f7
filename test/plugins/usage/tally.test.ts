import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { Answer, FakeProvider, RecordedRequest } from '../../support/fake-provider.ts'

const rates = { input: 0.15, output: 0.6, cached_input: 0.075 }
interface Tally {
  input: number
  output: number
  calls: number
  nano: number
}
const empty = (): Tally => ({ input: 0, output: 0, calls: 0, nano: 0 })

/** What the providers themselves counted: the figure that every sum of ours has to be. */
let tallies: Record<'fake-1' | 'spare-1', Tally>
let answers: ((request: RecordedRequest) => Answer | undefined)[]
const reported =
  (model: 'fake-1' | 'spare-1') =>
  (request: RecordedRequest): Answer => {
    const scripted = answers.shift()?.(request)
    if (scripted?.status !== undefined) return scripted
    const { input, output, cached } = {
      input: 101 + tallies[model].calls * 7,
      output: 13 + tallies[model].calls,
      cached: tallies[model].calls * 3,
    }
    const tally = tallies[model]
    tally.input += input
    tally.output += output
    tally.calls++
    tally.nano += Math.round((input - cached) * 150 + cached * 75 + output * 600)
    return {
      text: 'counted',
      ...scripted,
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: cached },
      },
    }
  }
const usd = (nano: number): number => nano / 1_000_000_000

let home: string
let fake: FakeProvider
let spare: FakeProvider
let stage: ChatStage
async function start(): Promise<void> {
  stage = await openChat({
    fake,
    home,
    config: {
      providers: {
        openai: { base_url: fake.url, api_key: 'test-key', prices: { 'fake-1': rates } },
        groq: { base_url: spare.url, api_key: 'k', prices: { 'spare-1': rates } },
      },
      plugins: {
        chat: { compaction: { threshold_messages: 5, keep_recent: 2 } },
        providers: { tries: 2, back_off_min_ms: 1, back_off_max_ms: 2 },
      },
    },
  })
}
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-tally-'))
  ;[fake, spare] = await Promise.all([startFakeProvider(), startFakeProvider({ models: ['spare-1'] })])
  tallies = { 'fake-1': empty(), 'spare-1': empty() }
  answers = []
  fake.always(reported('fake-1'))
  spare.always(reported('spare-1'))
  await start()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await Promise.all([fake[Symbol.asyncDispose](), spare[Symbol.asyncDispose]()])
  await rm(home, { recursive: true, force: true })
})

const get = async (path: string) => (await stage.host.json('GET', path)).body
const send = async (agent: string) =>
  (await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })).body
const all = (): Tally =>
  Object.values(tallies).reduce(
    (sum, one) => ({
      input: sum.input + one.input,
      output: sum.output + one.output,
      calls: sum.calls + one.calls,
      nano: sum.nano + one.nano,
    }),
    empty(),
  )

async function agrees(): Promise<void> {
  const { input, output, calls, nano } = all()
  for (const period of ['hour', 'day', 'week', 'month']) {
    expect(await get(`/api/usage?period=${period}`)).toMatchObject({
      period,
      total_input_tokens: input,
      total_output_tokens: output,
      total_cost_usd: usd(nano),
      request_count: calls,
      active_agents: 3,
      unpriced_requests: 0,
      estimated_requests: 0,
    })
  }
  expect(await get('/api/usage')).toMatchObject({ period: 'day' })
  const summary = await get('/api/usage/summary')
  expect(summary.today).toEqual({
    input_tokens: input,
    output_tokens: output,
    cost_usd: usd(nano),
    requests: calls,
    unpriced_requests: 0,
  })
  expect(summary.quota).toMatchObject({ hourly_token_limit: null, hourly_tokens_used: input + output })
  const row = (tally: Tally) => ({
    input_tokens: tally.input,
    output_tokens: tally.output,
    cost_usd: usd(tally.nano),
    request_count: tally.calls,
    unpriced_requests: 0,
  })
  const rows = [
    { model: 'fake-1' as const, provider: 'openai', ...row(tallies['fake-1']) },
    { model: 'spare-1' as const, provider: 'groq', ...row(tallies['spare-1']) },
  ]
  expect((await get('/api/usage/by-model')).models).toEqual(rows)
  expect((await get('/api/usage/providers')).providers).toEqual(
    rows.map(({ provider, ...rest }) => ({ ...row(tallies[rest.model]), provider })),
  )
  const { agents } = await get('/api/usage/agents')
  expect(agents.reduce((sum: number, one: { request_count: number }) => sum + one.request_count, 0)).toBe(calls)
  const { days, today_cost_usd: today } = await get('/api/usage/daily')
  expect(days).toHaveLength(7)
  expect(days.at(-1)).toMatchObject({ tokens: input + output, calls, cost_usd: usd(nano) })
  expect(today).toBe(usd(nano))
  expect((await get('/api/budget')).today_spent_usd).toBe(usd(nano))
  expect(
    (await get('/api/budget/agents')).reduce(
      (sum: number, one: { total_cost_usd: number }) => sum + Math.round(one.total_cost_usd * 1e9),
      0,
    ),
  ).toBe(nano)
}

describe('what is used', () => {
  it('is what the providers counted: tools, tries, fallbacks, summaries and streams included', async () => {
    const plain = await stage.spawn('plain')
    await send(plain)
    // Two calls of the model in one turn, and one that failed and was tried again.
    answers = [() => ({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }), () => ({ status: 500 })]
    const before = all().nano
    const worked = await send(plain)
    expect([worked.iterations, worked.cost_usd]).toEqual([2, usd(all().nano - before)])
    const fallback = await stage.spawn('fallback', [], '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n')
    answers = [() => ({ status: 401 })]
    expect(await send(fallback)).toMatchObject({ provider: 'groq' })
    const streamed = await stage.post(`/api/agents/${plain}/message/stream`, { message: 'go' })
    await streamed.text()
    const talker = await stage.spawn('talker')
    for (let turn = 0; turn < 3; turn++) await send(talker)
    // The fourth has to summarise first: its cost is that of both calls.
    const earlier = { ...all() }
    const summed = await send(talker)
    expect(all().calls - earlier.calls).toBe(2)
    expect([summed.cost_usd, summed.input_tokens]).toEqual([
      usd(all().nano - earlier.nano),
      all().input - earlier.input,
    ])
    expect(await get(`/api/agents/${talker}/turns/${summed.turn_id}`)).toMatchObject({
      cost_usd: summed.cost_usd,
      usage: { input_tokens: summed.input_tokens },
    })
    await agrees()
  })
  it('is the same after a restart, and goes on from there', async () => {
    await stage.host[Symbol.asyncDispose]()
    await start()
    await agrees()
    const plain = (await get('/api/agents')).find(({ name }: { name: string }) => name === 'plain')
    await send(plain.id)
    await agrees()
  })
  it.each(['year', '', 'HOUR', '1'])('is not summed for the period "%s"', async (period) => {
    expect((await stage.host.json('GET', `/api/usage?period=${period}`)).status).toBe(400)
  })
})
