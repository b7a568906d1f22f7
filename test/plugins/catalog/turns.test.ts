import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  const fake = await startFakeProvider()
  const at = { base_url: fake.url, api_key: 'k' }
  stage = await openChat({
    memory: true,
    fake,
    config: {
      default_provider: 'openai',
      default_model: 'gpt-5-mini',
      providers: {
        openai: { ...at, prices: { 'gpt-4.1': { input: 100, output: 200 } } },
        groq: at,
        perplexity: at,
        work: { ...at, driver: 'openai' },
        gateway: at,
      },
    },
  })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await stage.fake[Symbol.asyncDispose]()
})

let count = 0
const turn = async (
  provider: string,
  model: string,
  usage: object = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
) => {
  const agent = await stage.spawn(`priced-${count++}`, [], `[model]\nprovider = "${provider}"\nmodel = "${model}"`)
  stage.fake.script({ text: 'ok', usage: { ...usage } })
  const { status, body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' })
  expect(status, JSON.stringify(body)).toBe(200)
  expect(stage.fake.requests.at(-1)?.body.model).toBe(body.model)
  return body
}

describe('the model of a turn', () => {
  it.each([
    ['default', 'default', 'openai/gpt-5-mini'],
    ['default', 'llama', 'groq/llama-3.3-70b-versatile'],
    ['default', 'LLAMA', 'groq/llama-3.3-70b-versatile'],
    ['groq', 'llama', 'groq/llama-3.3-70b-versatile'],
    ['default', 'llama-3.1-8b-instant', 'groq/llama-3.1-8b-instant'],
    ['default', 'groq/anything', 'groq/anything'],
    ['default', 'not-in-any-catalog', 'openai/not-in-any-catalog'],
    ['openai', 'llama', 'openai/llama'],
    ['perplexity', 'sonar', 'perplexity/sonar'],
    ['work', 'gpt5', 'work/gpt-5'],
  ])('%s / %s is %s', async (provider, model, answered) => {
    const { provider: by, model: name } = await turn(provider, model)
    expect(`${by}/${name}`).toBe(answered)
  })
  it('follows an alias that is made while the daemon runs', async () => {
    await stage.host.json('POST', '/api/models/aliases', { alias: 'quick', model_id: 'groq/llama-3.1-8b-instant' })
    expect(await turn('default', 'quick')).toMatchObject({ provider: 'groq', model: 'llama-3.1-8b-instant' })
    await stage.host.json('DELETE', '/api/models/aliases/quick')
    expect(await turn('default', 'quick')).toMatchObject({ provider: 'openai', model: 'quick' })
  })
  it('of a vendor without a key is refused with what to do', async () => {
    const agent = await stage.spawn('keyless', [], '[model]\nprovider = "default"\nmodel = "sonnet"')
    const { status, body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' })
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(/anthropic.*ANTHROPIC_API_KEY/)])
  })
})

describe('the length of an answer', () => {
  const asked = async (model: string, maxTokens: number): Promise<unknown> => {
    const agent = await stage.spawn(
      `length-${count++}`,
      [],
      `[model]\nprovider = "openai"\nmodel = "${model}"\nmax_tokens = ${maxTokens}`,
    )
    stage.fake.script({ text: 'ok' })
    expect((await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' })).status).toBe(200)
    const body: Record<string, unknown> = { ...stage.fake.requests.at(-1)?.body }
    return body['max_completion_tokens'] ?? body['max_tokens']
  }
  it('is asked for as the manifest says, and never beyond what the model gives: a vendor refuses that', async () => {
    expect(await asked('gpt-4o', 5000)).toBe(5000)
    expect(await asked('gpt-4o', 50_000)).toBe(16_384)
    expect(await asked('nobody-knows-it', 50_000)).toBe(50_000)
  })
})

describe('the cost of a turn', () => {
  const cached = {
    prompt_tokens: 1000,
    completion_tokens: 500,
    total_tokens: 1500,
    prompt_tokens_details: { cached_tokens: 400 },
    completion_tokens_details: { reasoning_tokens: 300 },
  }
  it('counts cached input at its price, and thinking as output', async () => {
    expect((await turn('openai', 'gpt-5-mini', cached)).cost_usd).toBe((600 * 0.25 + 400 * 0.025 + 500 * 2) / 1e6)
  })
  it('of a dated form is that of its model', async () => {
    expect((await turn('openai', 'gpt-5-mini-2025-08-07')).cost_usd).toBe((1000 * 0.25 + 500 * 2) / 1e6)
  })
  it("of a section that uses a vendor's driver is the vendor's", async () => {
    expect((await turn('work', 'gpt-5')).cost_usd).toBe((1000 * 1.25 + 500 * 10) / 1e6)
  })
  it('is what the section says, where it says something', async () => {
    expect((await turn('openai', 'gpt-4.1')).cost_usd).toBe((1000 * 100 + 500 * 200) / 1e6)
  })
  it('counts the call itself where the vendor does', async () => {
    const { cost_usd: cost, input_tokens: input, output_tokens: output } = await turn('perplexity', 'sonar')
    expect(cost).toBeCloseTo((input + output) / 1e6 + 0.012, 9)
  })
  it('of a long call has the price of long calls, for all of it', async () => {
    expect(
      (await turn('openai', 'gpt-6-sol', { prompt_tokens: 272_000, completion_tokens: 1000, total_tokens: 273_000 }))
        .cost_usd,
    ).toBe((272_000 * 2 + 1000 * 10) / 1e6)
    expect(
      (await turn('openai', 'gpt-6-sol', { prompt_tokens: 272_001, completion_tokens: 1000, total_tokens: 273_001 }))
        .cost_usd,
    ).toBe((272_001 * 4 + 1000 * 15) / 1e6)
  })
  it.each([
    ['openai', 'nobody-knows-it'],
    ['gateway', 'gpt-5'],
  ])('%s/%s is null: nobody knows it, and it is not nothing', async (provider, model) => {
    expect((await turn(provider, model)).cost_usd).toBeNull()
  })
  it('of a model that was added is what was said of it', async () => {
    await stage.host.json('POST', '/api/models/custom', {
      id: 'own/model',
      provider: 'gateway',
      input_cost_per_1m: 7,
      output_cost_per_1m: 9,
    })
    expect((await turn('gateway', 'own/model')).cost_usd).toBe((1000 * 7 + 500 * 9) / 1e6)
  })
})

describe('an agent whose model is named by an alias', () => {
  const shown = async (id: string) => {
    const { body } = await stage.host.json('GET', '/api/agents')
    const { model_provider: provider, model_name: model } = body.find((agent: { id: string }) => agent.id === id)
    return `${provider}/${model}`
  }
  it('is shown with what it stands for, and follows it', async () => {
    const agent = await stage.spawn('alias-shown', [], '[model]\nmodel = "llama"')
    expect(await shown(agent)).toBe('groq/llama-3.3-70b-versatile')
    await stage.host.json('DELETE', '/api/models/aliases/llama')
    await stage.host.json('POST', '/api/models/aliases', { alias: 'llama', model_id: 'groq/llama-3.1-8b-instant' })
    expect(await shown(agent)).toBe('groq/llama-3.1-8b-instant')
  })
  it('in mode Stable keeps what it stood for', async () => {
    const agent = await stage.spawn('alias-pinned', [], '[model]\nmodel = "kept-name"')
    await stage.host.json('POST', '/api/models/aliases', { alias: 'kept-name', model_id: 'openai/gpt-5' })
    await stage.host.json('PUT', `/api/agents/${agent}/mode`, { mode: 'Stable' })
    await stage.host.json('DELETE', '/api/models/aliases/kept-name')
    await stage.host.json('POST', '/api/models/aliases', { alias: 'kept-name', model_id: 'groq/llama-3.1-8b-instant' })
    expect(await shown(agent)).toBe('openai/gpt-5')
    expect((await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' })).body.model).toBe('gpt-5')
  })
  it('can be given it over the API: the model it stands for is what is stored', async () => {
    const agent = await stage.spawn('alias-set', [], '[model]\nprovider = "openai"\nmodel = "gpt-5"')
    expect((await stage.host.json('PUT', `/api/agents/${agent}/model`, { model: 'sonnet' })).body).toEqual({
      status: 'updated',
      warnings: [],
      provider: 'anthropic',
      model: 'claude-sonnet-5-5',
    })
    await stage.host.json('PATCH', `/api/agents/${agent}/config`, { model: 'opus' })
    expect((await stage.host.json('GET', `/api/agents/${agent}`)).body.model).toMatchObject({
      provider: 'anthropic',
      model: 'claude-opus-5-5',
    })
    expect(
      (await stage.host.json('PUT', `/api/agents/${agent}/model`, { model: 'sonnet', provider: 'openai' })).body,
    ).toEqual({
      status: 'updated',
      provider: 'openai',
      model: 'sonnet',
      warnings: [expect.stringContaining('provider openai has no model "sonnet"')],
    })
  })
})
