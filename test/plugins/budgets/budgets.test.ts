import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

/** A thousandth of a dollar a token, so that limits are soon reached. */
const prices = { 'fake-1': { input: 1000, output: 1000 } }
const used = (input: number, output: number) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
})
const config =
  (more: Record<string, unknown> = {}) =>
  (url: string) => ({ providers: { openai: { base_url: url, api_key: 'test-key', prices } }, ...more })
const SMALL = '[model]\nmax_tokens = 20\n'

/** Every test has its own day: what the others spent is taken off by limits of its own agents. */
let stage: ChatStage
let serial = 0
const agent = (more = '') => stage.spawn(`spender-${serial++}`, [], `${SMALL}${more}`)
const send = (id: string, message = 'go') => stage.host.json('POST', `/api/agents/${id}/message`, { message })
const budget = async () => (await stage.host.json('GET', '/api/budget')).body
const budgetOf = async (id: string) => (await stage.host.json('GET', `/api/budget/agents/${id}`)).body
const put = (body: unknown, id?: string) =>
  stage.host.json('PUT', id === undefined ? '/api/budget' : `/api/budget/agents/${id}`, body)
const audit = async (event: string): Promise<{ agent_id: string; details: string }[]> =>
  (await stage.host.json('GET', '/api/audit/recent?limit=500')).body.entries.filter(
    (entry: { event_type: string }) => entry.event_type === event,
  )

async function open(more: Record<string, unknown> = {}, home?: string): Promise<ChatStage> {
  const { startFakeProvider } = await import('../../support/fake-provider.ts')
  const fake = await startFakeProvider()
  const opened = await openChat({ fake, config: config(more)(fake.url), ...(home === undefined ? {} : { home }) })
  return {
    ...opened,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}
beforeAll(async () => {
  stage = await open()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
beforeEach(async () => {
  stage.fake.always({ text: 'fine', usage: used(10, 4) })
  await put({
    daily_limit_usd: 0,
    monthly_limit_usd: 0,
    hourly_limit_usd: 0,
    alert_threshold: 0.8,
    default_max_llm_tokens_per_hour: 0,
  })
})

describe('the budget of all agents', () => {
  it('is unlimited, and says what was spent to the cent', async () => {
    const before = await budget()
    expect(before).toMatchObject({
      daily_limit_usd: 0,
      monthly_limit_usd: 0,
      status: 'ok',
      reserved_usd: 0,
      alert_threshold: 0.8,
    })
    expect((await send(await agent())).body.cost_usd).toBe(0.014)
    const after = await budget()
    expect(after.today_spent_usd - before.today_spent_usd).toBeCloseTo(0.014, 12)
    expect(after.month_spent_usd).toBe(after.today_spent_usd)
  })
  it('is set in part, echoed, and audited', async () => {
    const { status, body } = await put({ daily_limit_usd: 12.5 })
    expect([status, body.daily_limit_usd, body.monthly_limit_usd]).toEqual([200, 12.5, 0])
    expect((await put({ max_monthly_usd: 100, alert_threshold: 0.5 })).body).toMatchObject({
      daily_limit_usd: 12.5,
      monthly_limit_usd: 100,
      alert_threshold: 0.5,
    })
    expect((await audit('budget_changed')).at(-1)?.details).toContain('max_monthly_usd = 100')
  })
  it('keeps what each of several changes at once sets', async () => {
    await Promise.all(
      [{ daily_limit_usd: 3 }, { monthly_limit_usd: 4 }, { hourly_limit_usd: 5 }, { alert_threshold: 0.6 }].map(
        (change) => put(change),
      ),
    )
    expect(await budget()).toMatchObject({
      daily_limit_usd: 3,
      monthly_limit_usd: 4,
      hourly_limit_usd: 5,
      alert_threshold: 0.6,
    })
  })
  it.each([
    {},
    { daily_limit_usd: -1 },
    { daily_limit_usd: 9_007_200 },
    { daily_limit_usd: '5' },
    { alert_threshold: 2 },
    { unknown: 1 },
    [],
    { default_max_llm_tokens_per_hour: 1.5 },
  ])('is not set by %j', async (body) => {
    const { status, body: answer } = await put(body)
    expect([status, answer.error.code]).toEqual([400, 'invalid_request'])
    expect((await budget()).daily_limit_usd).toBe(0)
  })
  it('is not set by a number without end', async () => {
    const response = await stage.host.fetch('/api/budget', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"daily_limit_usd": 1e999}',
    })
    expect(response.status).toBe(400)
    await response.text()
  })
  it('refuses the call that might pass it, says which limit and until when, and tells it once', async () => {
    const id = await agent()
    const { today_spent_usd: spent } = await budget()
    const told = (await audit('budget_exceeded')).length
    await put({ daily_limit_usd: spent + 0.02 })
    const requests = stage.fake.requests.length
    const { status, headers, body } = await send(id)
    expect([status, stage.fake.requests.length]).toEqual([429, requests])
    expect(body.error).toMatch(
      /daily budget of all agents is used up: .* It resets at \d{4}-.*T00:00:00\.000Z; PUT \/api\/budget raises it/,
    )
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await send(id)).status).toBe(429)
    expect((await audit('budget_exceeded')).length).toBe(told + 1)
    expect(await budget()).toMatchObject({ reserved_usd: 0 })
    await put({ daily_limit_usd: spent + 1 })
    expect((await send(id)).status).toBe(200)
  })
  it('Budget bypass: fifty turns at once never pass it, and it counts what the provider counted', async () => {
    const agents = await Promise.all(Array.from({ length: 50 }, () => agent()))
    const { today_spent_usd: before } = await budget()
    const limit = before + 0.5
    await put({ daily_limit_usd: limit })
    let tally = 0
    stage.fake.always(() => {
      tally += 14
      return { text: 'fine', usage: used(10, 4) }
    })
    const answers = await Promise.all(agents.map((id) => send(id)))
    const done = answers.filter(({ status }) => status === 200)
    expect(done.length).toBeGreaterThan(3)
    expect(done.length).toBeLessThan(50)
    expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true)
    const after = await budget()
    expect(after.today_spent_usd).toBeLessThanOrEqual(limit)
    expect(Math.round((after.today_spent_usd - before) * 1000)).toBe(tally)
    expect(tally).toBe(done.length * 14)
    expect(after.reserved_usd).toBe(0)
  })
  it('gives what is left of it to whoever asks one after the other, until no call fits any more', async () => {
    const limit = (await budget()).today_spent_usd + 0.5
    await put({ daily_limit_usd: limit })
    let calls = 0
    while ((await send(await agent())).status === 200) calls++
    expect(calls).toBeGreaterThan(0)
    expect(await budget()).toMatchObject({ status: 'warning', reserved_usd: 0 })
    expect((await budget()).today_spent_usd).toBeLessThanOrEqual(limit)
  })
})

describe('the budget of an agent', () => {
  it('is what its manifest says until it is set, and 0 lifts it', async () => {
    const id = await agent('[resources]\nmax_cost_per_day_usd = 0.02\nmax_cost_per_month_usd = 7\n')
    expect(await budgetOf(id)).toMatchObject({
      agent_id: id,
      daily_limit_usd: 0.02,
      monthly_limit_usd: 7,
      today_cost_usd: 0,
      status: 'ok',
    })
    const { status, body } = await send(id)
    expect([status, body.error]).toEqual([429, expect.stringContaining(`PUT /api/budget/agents/${id} raises it`)])
    expect((await put({ daily_limit_usd: 0 }, id)).body).toMatchObject({ daily_limit_usd: 0, monthly_limit_usd: 7 })
    expect((await send(id)).status).toBe(200)
    expect((await put({ daily_limit_usd: null }, id)).body.daily_limit_usd).toBe(0.02)
    expect((await send(await agent())).status).toBe(200)
  })
  it('limits tokens of the hour too', async () => {
    const id = await agent('[resources]\nmax_llm_tokens_per_hour = 150\n')
    expect((await send(id)).status).toBe(200)
    expect((await send(id)).status).toBe(200)
    const { status, body } = await send(id, 'one more '.repeat(100))
    expect([status, body.error]).toEqual([429, expect.stringContaining('hourly token limit of agent')])
    expect(await budgetOf(id)).toMatchObject({ tokens: { used: 28, limit: 150 } })
    const { quota } = (await stage.host.json('GET', '/api/usage/summary')).body
    expect(quota.hourly_token_limit).toBe(150)
    await put({ max_llm_tokens_per_hour: 10_000 }, id)
    expect((await send(id)).status).toBe(200)
  })
  it('has the token limit of the daemon where its manifest has none', async () => {
    await put({ default_max_llm_tokens_per_hour: 25 })
    expect((await send(await agent())).status).toBe(429)
    expect((await send(await agent('[resources]\nmax_llm_tokens_per_hour = 1000\n'))).status).toBe(200)
  })
  it('is told of once when four fifths are used', async () => {
    const id = await agent()
    await put({ daily_limit_usd: 0.2 }, id)
    const told = async () => (await audit('budget_warning')).filter(({ agent_id }) => agent_id === id)
    for (let turn = 0; turn < 2; turn++) await send(id)
    expect(await told()).toHaveLength(0)
    stage.fake.always({ text: 'long', usage: used(10, 140) })
    await send(id)
    await expect.poll(told).toHaveLength(1)
    expect((await told())[0]?.details).toContain('much of the daily budget of agent')
    expect((await budgetOf(id)).status).toBe('warning')
    await put({ daily_limit_usd: 0.6 }, id)
    await send(id)
    expect(await told()).toHaveLength(1)
  })
  it('is given back what a call that failed had set aside', async () => {
    const id = await agent()
    await put({ daily_limit_usd: 1 }, id)
    stage.fake.script({ status: 400 })
    expect((await send(id)).status).toBe(500)
    expect(await budgetOf(id)).toMatchObject({ reserved_usd: 0, today_cost_usd: 0 })
  })
  it('holds for what is said before a break, and for what a stopped turn said', async () => {
    const id = await agent()
    await put({ daily_limit_usd: 1 }, id)
    stage.fake.script({ text: ['Half of', ' it'], fault: 'cut' })
    expect((await send(id)).status).toBe(503)
    const { today_cost_usd: cost, reserved_usd: reserved } = await budgetOf(id)
    expect(cost).toBeGreaterThan(0)
    expect(reserved).toBe(0)
  })
  it('is there for agents there are', async () => {
    const unknown = '00000000-0000-4000-8000-000000000000'
    for (const answer of [
      await stage.host.json('GET', `/api/budget/agents/${unknown}`),
      await put({ daily_limit_usd: 1 }, unknown),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([404, 'agent_not_found'])
    }
    expect((await stage.host.json('GET', '/api/budget/agents/nobody')).status).toBe(400)
    expect((await put({}, await agent())).status).toBe(400)
  })
  it('ranks it among the others', async () => {
    const id = await agent()
    stage.fake.always({ text: 'much', usage: used(9000, 1000) })
    await send(id)
    const { status, body } = await stage.host.json('GET', '/api/budget/agents')
    expect(status).toBe(200)
    expect(body[0]).toMatchObject({
      agent_id: id,
      agent_name: expect.stringContaining('spender'),
      total_cost_usd: 10,
      today_cost_usd: 10,
    })
    expect(body.map(({ total_cost_usd: cost }: { total_cost_usd: number }) => cost)).toEqual(
      body
        .map(({ total_cost_usd: cost }: { total_cost_usd: number }) => cost)
        .toSorted((a: number, b: number) => b - a),
    )
  })
})

describe('a call whose price nobody knows', () => {
  it('is made, counted as unpriced, and told of once a day, for an agent whose money is limited', async () => {
    const id = await agent()
    await put({ daily_limit_usd: 0.06 }, id)
    await stage.host.json('PUT', `/api/agents/${id}/model`, { model: 'openai/fake-2' })
    for (let turn = 0; turn < 2; turn++) expect((await send(id)).body.cost_usd).toBeNull()
    expect(await budgetOf(id)).toMatchObject({ today_cost_usd: 0, unpriced_requests_today: 2, status: 'ok' })
    await expect
      .poll(async () => (await audit('budget_warning')).filter(({ agent_id }) => agent_id === id))
      .toHaveLength(1)
  })
  it('is refused where the configuration says so, with what to do', async () => {
    await using strict = await open({ budget: { unknown_price: 'refuse', max_daily_usd: 5 } })
    const id = await strict.spawn('strict', [], SMALL)
    await strict.host.json('PUT', `/api/agents/${id}/model`, { model: 'openai/fake-2' })
    const { status, body } = await strict.host.json('POST', `/api/agents/${id}/message`, { message: 'go' })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('[providers.openai.prices."fake-2"]')])
    expect((await strict.host.json('GET', '/api/budget')).body.daily_limit_usd).toBe(5)
  })
})

describe('what an agent makes', () => {
  const spawnChild = async (parent: string, name: string, more = '') => {
    const manifest = `name = "${name}"\n${SMALL}${more}`
    const before = (await stage.host.json('GET', '/api/agents')).body.length
    const answers = [
      { calls: [{ name: 'agent_spawn', args: { manifest_toml: manifest } }], usage: used(1, 1) },
      { text: 'made', usage: used(1, 1) },
    ]
    stage.fake.always(() => answers.shift() ?? { text: 'fine', usage: used(10, 4) })
    const { status } = await send(parent)
    expect(status).toBe(200)
    const { body } = await stage.host.json('GET', '/api/agents')
    expect(body).toHaveLength(before + 1)
    return body.find((one: { name: string }) => one.name === name).id as string
  }

  /** An agent that made two others, and a tenth of a dollar for all three. */
  async function family() {
    const manifest_toml = [
      `name = "maker-${serial++}"`,
      `${SMALL}[capabilities]`,
      'tools = ["agent_spawn"]',
      'agent_spawn = true\n',
    ].join('\n')
    const parent = (await stage.host.json('POST', '/api/agents', { manifest_toml })).body.agent_id as string
    const first = await spawnChild(parent, `child-${serial++}`)
    const second = await spawnChild(parent, `child-${serial++}`)
    const { today_cost_usd: own } = await budgetOf(parent)
    // What the operator sets over the API holds for them as well: there is no way round it by making another agent.
    await put({ daily_limit_usd: own + 0.1 }, parent)
    stage.fake.always({ text: 'fine', usage: used(10, 4) })
    return { parent, first, second, own }
  }

  it('spends from the budget of who made it, whoever calls first and however many there are', async () => {
    const { parent, first, second, own } = await family()
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => send(n % 2 === 0 ? first : second)))
    const done = answers.filter(({ status }) => status === 200).length
    expect(done).toBeGreaterThan(1)
    expect(answers.find(({ status }) => status === 429)?.body.error).toContain(`daily budget of agent "maker`)
    const together = await budgetOf(parent)
    expect(together.daily.spend).toBeCloseTo(own + done * 0.014, 9)
    expect(together.daily.spend).toBeLessThanOrEqual(own + 0.1)
    expect(together.today_cost_usd).toBe(own)
  })

  it('leaves what it spent in the budget of who made it when it is gone', async () => {
    const { parent, first, own } = await family()
    expect((await send(first)).status).toBe(200)
    await stage.host.json('DELETE', `/api/agents/${first}`)
    expect((await budgetOf(parent)).daily.spend).toBeCloseTo(own + 0.014, 9)
  })

  it('is refused as who made it is when the budget is used up, until it is lifted', async () => {
    const { parent, first, second } = await family()
    expect((await send(first)).status).toBe(200)
    await stage.host.json('DELETE', `/api/agents/${first}`)
    await put({ daily_limit_usd: (await budgetOf(parent)).daily.spend }, parent)
    expect((await send(second)).status).toBe(429)
    expect((await send(parent)).status).toBe(429)
    await put({ daily_limit_usd: 0 }, parent)
    expect((await send(second)).status).toBe(200)
  })
})

it('an agent that was killed keeps the name it had last in what it spent', async () => {
  const agent = (await stage.host.json('POST', '/api/agents', { manifest_toml: `name = "early-${serial}"\n${SMALL}` }))
    .body.agent_id as string
  stage.fake.always({ text: 'fine', usage: used(10, 4) })
  expect((await send(agent)).status).toBe(200)
  const name = `late-${serial++}`
  await stage.host.json('PATCH', `/api/agents/${agent}`, { name })
  await stage.host.json('DELETE', `/api/agents/${agent}`)
  const ofAgent = ({ agent_id: id }: { agent_id: string }): boolean => id === agent
  expect((await stage.host.json('GET', '/api/budget/agents')).body.find(ofAgent)).toMatchObject({ agent_name: name })
  expect((await stage.host.json('GET', '/api/usage/agents')).body.agents.find(ofAgent)).toMatchObject({ name })
  // The name is free for another one.
  const { body } = await stage.host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n${SMALL}` })
  expect(body.agent_id).not.toBe(agent)
})

describe('who listens', () => {
  it('hears of each limit once: when much of it is used, when it is used up, and of a price nobody knows', async () => {
    await using folder = await temporaryFolder()
    const hear = (name: string): string =>
      `ctx.hooks.on(notify('budgets:${name}'), (notice: unknown) => {
        ctx.log.info('HEARD ${name} ' + JSON.stringify(notice))
      })`
    await writePlugin(
      folder.path,
      pluginText('listener', { setup: `${['warning', 'exceeded', 'unpriced'].map(hear).join('\n')}\nreturn {}` }),
    )
    await stage.host.app.host.load(folder.path)
    const heard = (name: string) =>
      stage.host.log.flatMap((line) => {
        const json = line.split(`HEARD ${name} `)[1]
        return json === undefined ? [] : [JSON.parse(json)]
      })
    const id = await agent()
    await put({ daily_limit_usd: 0.1 }, id)
    stage.fake.always({ text: 'much', usage: used(40, 50) })
    await send(id)
    await expect.poll(() => heard('warning')).toHaveLength(1)
    expect(heard('warning')[0]).toMatchObject({
      agentId: id,
      period: 'day',
      unit: 'usd',
      limit: 0.1,
      spent: 0.09,
      part: 0.9,
      resetsAt: expect.stringMatching(/T00:00:00\.000Z$/),
    })
    expect([(await send(id)).status, (await send(id)).status]).toEqual([429, 429])
    await expect.poll(() => heard('exceeded')).toHaveLength(1)
    expect(heard('exceeded')[0]).toMatchObject({ agentId: id, period: 'day', limit: 0.1 })
    await stage.host.json('PUT', `/api/agents/${id}/model`, { model: 'openai/fake-2' })
    await send(id)
    await expect.poll(() => heard('unpriced')).toEqual([{ agentId: id, provider: 'openai', model: 'fake-2' }])
    expect(heard('warning')).toHaveLength(1)
    await stage.host.app.host.unload('listener')
  })
})

describe('while the budgets are being replaced', () => {
  it('no call slips through', async () => {
    const id = await agent()
    await put({ daily_limit_usd: 0.001 }, id)
    const requests = stage.fake.requests.length
    const reloads = new AbortController()
    const answers: number[] = []
    const asking = Array.from({ length: 8 }, async () => {
      while (!reloads.signal.aborted) answers.push((await send(id)).status)
    })
    for (let round = 0; round < 10; round++) await stage.host.app.host.reload('budgets')
    reloads.abort()
    await Promise.all(asking)
    expect(new Set(answers)).toEqual(new Set([429]))
    expect(stage.fake.requests.length).toBe(requests)
  })
})

describe('after a restart', () => {
  it('limits and what was spent are still there', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-budget-'))
    try {
      let id = ''
      {
        await using first = await open({}, home)
        id = await first.spawn('lasting', [], SMALL)
        await first.host.json('PUT', '/api/budget', { monthly_limit_usd: 3 })
        await first.host.json('PUT', `/api/budget/agents/${id}`, { daily_limit_usd: 0.04 })
        first.fake.always({ text: 'fine', usage: used(10, 4) })
        expect((await first.host.json('POST', `/api/agents/${id}/message`, { message: 'go' })).status).toBe(200)
      }
      await using second = await open({}, home)
      expect((await second.host.json('GET', '/api/budget')).body).toMatchObject({
        monthly_limit_usd: 3,
        today_spent_usd: 0.014,
      })
      expect((await second.host.json('GET', `/api/budget/agents/${id}`)).body).toMatchObject({
        daily_limit_usd: 0.04,
        today_cost_usd: 0.014,
        total_cost_usd: 0.014,
      })
      expect((await second.host.json('POST', `/api/agents/${id}/message`, { message: 'go' })).status).toBe(429)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
