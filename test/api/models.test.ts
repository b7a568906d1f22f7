import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'right', ollama: true })
})
afterAll(() => fake[Symbol.asyncDispose]())
beforeEach(async () => {
  host = await startHost({
    plugins: ['audit', 'catalog', 'providers', 'providers/builtin', 'providers/openai-compatible'],
    memory: true,
    config: {
      providers: {
        openai: { base_url: fake.url, api_key: 'right' },
        ollama: { base_url: fake.url },
        work: { base_url: fake.url, api_key: 'right', driver: 'groq' },
        mine: {
          base_url: fake.url,
          api_key: 'right',
          default_model: 'own-1',
          prices: { 'own-2': { input: 1, output: 2 } },
        },
      },
    },
  })
})
afterEach(() => host[Symbol.asyncDispose]())

type Row = { id: string; provider: string; tier: string; available: boolean }
const list = async (query = ''): Promise<{ models: Row[]; total: number; available: number }> => {
  const { status, body } = await host.json('GET', `/api/models${query}`)
  expect(status).toBe(200)
  expect(body.total).toBe(body.models.length)
  return body
}
const audited = async (): Promise<string> => JSON.stringify((await host.json('GET', '/api/audit/recent')).body)

describe('GET /api/models', () => {
  it('lists every model with its figures', async () => {
    const { models, total } = await list()
    expect(total).toBeGreaterThan(1000)
    expect(models.find(({ id, provider }) => id === 'gpt-5-mini' && provider === 'openai')).toEqual({
      id: 'gpt-5-mini',
      provider: 'openai',
      display_name: 'GPT-5 Mini',
      tier: 'balanced',
      context_window: 400_000,
      max_output_tokens: 128_000,
      input_cost_per_1m: 0.25,
      output_cost_per_1m: 2,
      cached_input_cost_per_1m: 0.025,
      cache_write_cost_per_1m: null,
      supports_tools: true,
      supports_vision: true,
      supports_streaming: true,
      supports_thinking: true,
      pricing_known: true,
      available: true,
    })
  })
  it('tells a price that nobody knows as a number, and that it is none', async () => {
    expect((await list('?provider=qianfan')).models[0]).toMatchObject({
      input_cost_per_1m: 0,
      output_cost_per_1m: 0,
      pricing_known: false,
      available: false,
    })
  })
  it('says which can be used now', async () => {
    const { models, available } = await list()
    const usable = new Set(models.filter((row) => row.available).map(({ provider }) => provider))
    expect([...usable].toSorted()).toEqual(['builtin', 'mine', 'ollama', 'openai', 'work'])
    expect(available).toBe(models.filter((row) => row.available).length)
    expect((await list('?available=true')).models.every((row) => row.available)).toBe(true)
    expect((await list('?available=false')).models.some(({ provider }) => provider === 'openai')).toBe(false)
  })
  it('has what only a provider knows: what Ollama has installed, what a section names', async () => {
    expect((await list('?provider=ollama')).models.map(({ id, tier }) => `${id} ${tier}`)).toEqual(
      expect.arrayContaining(['fake-1 local', 'fake-2 local']),
    )
    expect((await list('?provider=mine')).models).toMatchObject([
      { id: 'own-1', pricing_known: false, tier: 'custom' },
      { id: 'own-2', input_cost_per_1m: 1, output_cost_per_1m: 2 },
    ])
  })
  it("has the models of a vendor that a section uses under another name, which can be used while the vendor's own cannot", async () => {
    const [work, groq] = await Promise.all([list('?provider=work'), list('?provider=groq')])
    expect(work.models.map(({ id }) => id)).toEqual(expect.arrayContaining(groq.models.map(({ id }) => id)))
    expect([work.available === work.total, groq.available]).toEqual([true, 0])
    expect(work.models.find(({ id }) => id === 'llama-3.3-70b-versatile')).toMatchObject({ input_cost_per_1m: 0.59 })
  })
  it('is filtered by provider and tier together', async () => {
    const { models } = await list('?provider=anthropic&tier=frontier')
    expect(models.map(({ id }) => id)).toContain('claude-opus-5')
    expect(models.every(({ provider, tier }) => provider === 'anthropic' && tier === 'frontier')).toBe(true)
    expect((await list('?provider=nobody')).total).toBe(0)
  })
  it('refuses a filter that is none', async () => {
    expect(await host.json('GET', '/api/models?tier=huge')).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('tier') } },
    })
    expect((await host.json('GET', '/api/models?available=perhaps')).status).toBe(400)
  })
  it('follows a key that comes and goes', async () => {
    await host.json('POST', '/api/providers/groq/key', { api_key: 'k' })
    expect((await list('?provider=groq')).available).toBeGreaterThan(5)
    await host.json('DELETE', '/api/providers/groq/key')
    expect((await list('?provider=groq')).available).toBe(0)
  })
})

describe('GET /api/models/{id}', () => {
  it.each([
    ['gpt-5-mini', 'openai', 'gpt-5-mini'],
    ['sonnet', 'anthropic', 'claude-sonnet-5-5'],
    ['SONNET', 'anthropic', 'claude-sonnet-5-5'],
    ['openai/gpt-oss-120b', 'groq', 'openai/gpt-oss-120b'],
    ['openrouter/anthropic/claude-sonnet-4.5', 'openrouter', 'anthropic/claude-sonnet-4.5'],
    ['anthropic%2Fclaude-sonnet-4.5', 'requesty', 'anthropic/claude-sonnet-4.5'],
    ['fake-1', 'ollama', 'fake-1'],
    ['ollama/fake-1', 'ollama', 'fake-1'],
  ])('%s is %s/%s', async (name, provider, id) => {
    const { status, body } = await host.json('GET', `/api/models/${name}`)
    expect([status, body.id]).toEqual([200, id])
    if (provider !== 'requesty') expect(body.provider).toBe(provider)
  })
  it('tells its aliases and what a long call costs', async () => {
    expect((await host.json('GET', '/api/models/gemini-2.5-pro')).body).toMatchObject({
      aliases: ['gemini-pro'],
      long_context: { above_input_tokens: 200_000, input_cost_per_1m: 2.5, output_cost_per_1m: 15 },
      origin: 'shipped',
    })
  })
  it('of one provider when several have it', async () => {
    expect((await host.json('GET', '/api/models/gpt-5-mini?provider=azure')).body.provider).toBe('azure')
    expect((await host.json('GET', '/api/models/gpt-5-mini?provider=groq')).status).toBe(404)
  })
  it('nobody knows is 404', async () => {
    expect(await host.json('GET', '/api/models/no/such/model')).toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found', message: "Model 'no/such/model' not found" } },
    })
  })
})

describe('aliases', () => {
  it('are a map with the ones that clients know', async () => {
    const { body } = await host.json('GET', '/api/models/aliases')
    expect(body.aliases).toMatchObject({
      sonnet: 'claude-sonnet-5-5',
      gpt4: 'gpt-4o',
      llama: 'llama-3.3-70b-versatile',
    })
    expect(body.total).toBe(Object.keys(body.aliases).length)
  })
  it('are made, used, audited and removed', async () => {
    expect(
      await host.json('POST', '/api/models/aliases', { alias: 'Writer', model_id: 'anthropic/claude-opus-5' }),
    ).toMatchObject({ status: 201, body: { alias: 'writer', model_id: 'claude-opus-5', status: 'created' } })
    expect((await host.json('GET', '/api/models/writer')).body.id).toBe('claude-opus-5')
    expect(await audited()).toContain('model alias writer stands for anthropic/claude-opus-5')
    expect(await host.json('DELETE', '/api/models/aliases/WRITER')).toMatchObject({
      status: 200,
      body: { status: 'removed' },
    })
    expect((await host.json('GET', '/api/models/writer')).status).toBe(404)
    expect((await host.json('DELETE', '/api/models/aliases/writer')).status).toBe(404)
    expect(await audited()).toContain('model alias writer removed')
  })
  it('are no names that stand for something else already', async () => {
    for (const alias of ['default', 'Auto', 'a b', '__proto__', ''])
      expect((await host.json('POST', '/api/models/aliases', { alias, model_id: 'gpt-5' })).status, alias).toBe(400)
  })
  it("may stand for another alias's model, and that is what they keep", async () => {
    expect((await host.json('POST', '/api/models/aliases', { alias: 'boss', model_id: 'opus' })).body.model_id).toBe(
      'claude-opus-5-5',
    )
  })
  it('that are there from the start can be replaced once they are removed', async () => {
    expect((await host.json('POST', '/api/models/aliases', { alias: 'grok', model_id: 'gpt-5' })).status).toBe(409)
    expect((await host.json('DELETE', '/api/models/aliases/grok')).status).toBe(200)
    expect((await host.json('GET', '/api/models/grok')).status).toBe(404)
    expect((await host.json('POST', '/api/models/aliases', { alias: 'grok', model_id: 'gpt-5' })).status).toBe(201)
    expect((await host.json('GET', '/api/models/grok')).body.id).toBe('gpt-5')
  })
  it('are made once when asked for twenty times at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => host.json('POST', '/api/models/aliases', { alias: 'same', model_id: 'gpt-5' })),
    )
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array.from({ length: 19 }, () => 409),
    ])
  })
  it.each([
    [{}, 400],
    [{ alias: 'x' }, 400],
    [{ model_id: 'gpt-5' }, 400],
    [{ alias: 'a b', model_id: 'gpt-5' }, 400],
    [{ alias: '', model_id: 'gpt-5' }, 400],
    [{ alias: 'a/b', model_id: 'gpt-5' }, 400],
    [{ alias: 'x'.repeat(65), model_id: 'gpt-5' }, 400],
    [{ alias: 'x', model_id: 'no-such-model' }, 404],
    [{ alias: 5, model_id: 'gpt-5' }, 400],
    [[], 400],
  ])('%j is refused with %i and leaves nothing', async (body, status) => {
    const before = (await host.json('GET', '/api/models/aliases')).body.total
    expect((await host.json('POST', '/api/models/aliases', body)).status).toBe(status)
    expect((await host.json('GET', '/api/models/aliases')).body.total).toBe(before)
  })
})

describe('custom models', () => {
  it('with slashes in their ids are added, used, audited and removed', async () => {
    const added = await host.json('POST', '/api/models/custom', {
      id: 'acme/team/writer-1',
      provider: 'openai',
      display_name: 'Writer',
      context_window: 64_000,
      input_cost_per_1m: 1,
      output_cost_per_1m: 3,
    })
    expect(added).toMatchObject({
      status: 201,
      body: { id: 'acme/team/writer-1', provider: 'openai', status: 'added' },
    })
    expect((await host.json('GET', '/api/models/acme/team/writer-1')).body).toMatchObject({
      provider: 'openai',
      display_name: 'Writer',
      tier: 'custom',
      context_window: 64_000,
      max_output_tokens: 8192,
      input_cost_per_1m: 1,
      output_cost_per_1m: 3,
      origin: 'custom',
      available: true,
      supports_tools: true,
    })
    expect(await host.json('DELETE', '/api/models/custom/acme/team/writer-1')).toMatchObject({
      status: 200,
      body: { status: 'removed' },
    })
    expect((await host.json('GET', '/api/models/acme/team/writer-1')).status).toBe(404)
    const trail = await audited()
    expect(trail).toContain('custom model openai/acme/team/writer-1 added')
    expect(trail).toContain('custom model openai/acme/team/writer-1 removed')
  })
  it('have defaults for all but the id, and no price nobody gave', async () => {
    expect((await host.json('POST', '/api/models/custom', { id: 'plain' })).body).toEqual({
      id: 'plain',
      provider: 'openrouter',
      status: 'added',
    })
    expect((await host.json('GET', '/api/models/plain')).body).toMatchObject({
      display_name: 'plain',
      context_window: 128_000,
      input_cost_per_1m: 0,
      output_cost_per_1m: 0,
      pricing_known: false,
    })
  })
  it('of the same id at two providers are told apart', async () => {
    for (const provider of ['openai', 'groq'])
      expect((await host.json('POST', '/api/models/custom', { id: 'twin', provider })).status).toBe(201)
    expect(await host.json('DELETE', '/api/models/custom/twin')).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('?provider= and one of groq, openai') } },
    })
    expect((await host.json('DELETE', '/api/models/custom/groq/twin')).status).toBe(200)
    expect((await host.json('GET', '/api/models/twin')).body.provider).toBe('openai')
  })
  it('have ids that can be asked for and removed', async () => {
    for (const id of ['..', 'a/../b', 'a//b', '/a', 'a/', './a'])
      expect(await host.json('POST', '/api/models/custom', { id }), id).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(/^id: /) } },
      })
    for (const id of ['a?b#c', 'a%2Fb', 'ü/😀 x', '__proto__', 'a...b']) {
      expect((await host.json('POST', '/api/models/custom', { id })).status, id).toBe(201)
      const path = id.split('/').map(encodeURIComponent).join('/')
      expect((await host.json('GET', `/api/models/${path}`)).body.id).toBe(id)
      expect((await host.json('DELETE', `/api/models/custom/${path}`)).status, id).toBe(200)
    }
  })
  it('that are there already are a conflict', async () => {
    expect((await host.json('POST', '/api/models/custom', { id: 'gpt-5', provider: 'openai' })).status).toBe(409)
    await host.json('POST', '/api/models/custom', { id: 'plain' })
    expect((await host.json('POST', '/api/models/custom', { id: 'plain' })).status).toBe(409)
  })
  it('only are removed: a shipped one stays', async () => {
    expect((await host.json('DELETE', '/api/models/custom/gpt-5')).status).toBe(404)
    expect((await host.json('GET', '/api/models/gpt-5')).status).toBe(200)
  })
  it.each([
    {},
    { id: '' },
    { id: '  ' },
    { id: 'a\nb' },
    { id: 'x', context_window: 0 },
    { id: 'x', context_window: 1.5 },
    { id: 'x', input_cost_per_1m: -1, output_cost_per_1m: 1 },
    { id: 'x', input_cost_per_1m: 1 },
    { id: 'x', cached_input_cost_per_1m: 1 },
    { id: 'x', provider: 'No Such!' },
    { id: 'x', supports_tools: 'yes' },
    { id: 'x'.repeat(257) },
  ])('%j is refused', async (body) => {
    expect((await host.json('POST', '/api/models/custom', body)).status).toBe(400)
  })
})

it('what was added outlives a restart', async () => {
  const first = await startHost({ plugins: ['audit', 'catalog'] })
  try {
    await first.json('POST', '/api/models/custom', { id: 'kept/model', provider: 'openai' })
    await first.json('POST', '/api/models/aliases', { alias: 'kept', model_id: 'openai/kept/model' })
    await first.json('DELETE', '/api/models/aliases/jamba')
    await first.stop()
    await using second = await startHost({ plugins: ['audit', 'catalog'], home: first.home })
    expect((await second.json('GET', '/api/models/kept')).body).toMatchObject({ id: 'kept/model', provider: 'openai' })
    expect((await second.json('GET', '/api/models/jamba')).status).toBe(404)
  } finally {
    await first[Symbol.asyncDispose]()
  }
})
