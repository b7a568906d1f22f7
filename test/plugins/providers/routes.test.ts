import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'right', ollama: true })
})
afterAll(() => fake[Symbol.asyncDispose]())
beforeEach(async () => {
  host = await startHost({
    plugins: ['audit', 'providers', 'providers/builtin', 'providers/openai-compatible'],
    memory: true,
    config: {
      providers: {
        openai: { base_url: fake.url },
        ollama: { base_url: fake.url },
        mine: { base_url: fake.url, api_key: 'right' },
      },
    },
  })
})
afterEach(() => host[Symbol.asyncDispose]())

describe('providers over the API', () => {
  it('are listed with what is known of them and without keys', async () => {
    const { status, body } = await host.json('GET', '/api/providers')
    expect(status).toBe(200)
    expect(body.total).toBe(body.providers.length)
    const named = (name: string) => body.providers.find((row: { name: string }) => row.name === name)
    expect(named('builtin')).toEqual({
      name: 'builtin',
      display_name: 'Built-in offline model',
      base_url: '',
      auth_status: 'no_key_needed',
      default_model: 'offline',
      model_count: 1,
    })
    expect(named('groq')).toMatchObject({
      auth_status: 'missing',
      env_var: 'GROQ_API_KEY',
      base_url: 'https://api.groq.com/openai/v1',
      model_count: 1,
    })
    expect(named('mine')).toMatchObject({ auth_status: 'configured', base_url: fake.url })
    expect(JSON.stringify(body)).not.toContain('right')
  })
  it('are read one by one', async () => {
    expect((await host.json('GET', '/api/providers/ollama')).body).toMatchObject({
      name: 'ollama',
      models: ['fake-1', 'fake-2'],
      model_count: 2,
    })
    expect(await host.json('GET', '/api/providers/nonsense')).toMatchObject({
      status: 404,
      body: { error: { code: 'provider_not_found' } },
    })
  })
  it('Ollama is detected', async () => {
    expect((await host.json('GET', '/api/providers/ollama/detect')).body).toEqual({
      available: true,
      models: ['fake-1', 'fake-2'],
    })
  })
  it('other local servers are detected, and what is no local server is not looked for', async () => {
    expect((await host.json('PUT', '/api/providers/vllm/url', { url: fake.url })).status).toBe(200)
    await host.json('POST', '/api/providers/vllm/key', { api_key: 'right' })
    expect((await host.json('GET', '/api/providers/vllm/detect')).body).toEqual({
      available: true,
      models: ['fake-1', 'fake-2'],
    })
    expect((await host.json('PUT', '/api/providers/lmstudio/url', { url: `${fake.origin}/nowhere` })).status).toBe(200)
    expect((await host.json('GET', '/api/providers/lmstudio/detect')).body).toEqual({ available: false, models: [] })
    expect((await host.json('GET', '/api/providers/groq/detect')).status).toBe(400)
    expect((await host.json('GET', '/api/providers/builtin/detect')).status).toBe(400)
    expect((await host.json('GET', '/api/providers/nonsense/detect')).status).toBe(404)
  })
  const keyOf = '/api/providers/openai/key'
  const authStatus = async (): Promise<string> => (await host.json('GET', '/api/providers/openai')).body.auth_status

  it.each(['api_key', 'key'])('a key sent as %s holds at once', async (field) => {
    expect((await host.json('POST', '/api/providers/openai/test')).status).toBe(400)
    expect(await host.json('POST', keyOf, { [field]: 'right' })).toMatchObject({
      status: 200,
      body: { status: 'configured', provider: 'openai' },
    })
    expect(await authStatus()).toBe('configured')
    expect((await host.json('POST', '/api/providers/openai/test')).body).toMatchObject({
      status: 'ok',
      provider: 'openai',
      model_tested: expect.any(String),
      latency_ms: expect.any(Number),
    })
  })
  it.each(['api_key', 'key'])('a key sent as %s can be removed', async (field) => {
    await host.json('POST', keyOf, { [field]: 'right' })
    expect(await host.json('DELETE', keyOf)).toMatchObject({
      status: 200,
      body: { status: 'removed', provider: 'openai', auth_status: 'missing' },
    })
    expect(await authStatus()).toBe('missing')
  })
  it.each(['api_key', 'key'])('a key sent as %s is audited with its tests, and not told', async (field) => {
    await host.json('POST', keyOf, { [field]: 'right' })
    await host.json('POST', '/api/providers/openai/test')
    const { body } = await host.json('GET', '/api/audit/recent')
    expect(JSON.stringify(body)).toContain('key of provider openai stored')
    expect(body.entries).toContainEqual(
      expect.objectContaining({
        event_type: 'network_access',
        details: `test of provider openai at ${fake.origin}, with its key`,
      }),
    )
    expect(JSON.stringify(body)).not.toContain('"right"')
  })
  it('several keys are stored or added, and an address that is changed takes none of them along', async () => {
    expect((await host.json('POST', '/api/providers/openai/key', { api_keys: ['wrong', 'wrong-too'] })).body).toEqual({
      status: 'configured',
      provider: 'openai',
    })
    expect((await host.json('POST', '/api/providers/openai/key', { api_key: 'right', add: true })).status).toBe(200)
    const agent = (await host.json('GET', '/api/audit/recent')).body.entries.map(
      ({ details }: { details: string }) => details,
    )
    expect(agent).toEqual(expect.arrayContaining(['2 keys of provider openai stored', 'key of provider openai added']))
    await using other = await startFakeProvider()
    await host.json('PUT', '/api/providers/openai/url', { url: other.url })
    await host.json('POST', '/api/providers/openai/test')
    expect(other.requests.length).toBeGreaterThan(0)
    expect(other.requests.map(({ headers }) => headers['authorization'])).toEqual(other.requests.map(() => undefined))
    const { entries } = (await host.json('GET', '/api/audit/recent')).body
    expect(entries.slice(-2)).toMatchObject([
      { details: `address of provider openai set to ${other.origin}, from ${fake.origin}` },
      { event_type: 'network_access', details: `test of provider openai at ${other.origin}, without a key` },
    ])
  })
  it('a key has to be one', async () => {
    expect(
      (await host.json('POST', '/api/providers/openai/key', { api_key: '{\n  "type": "service_account"\n}' })).status,
    ).toBe(200)
    for (const body of [
      {},
      { api_key: '' },
      { api_key: '{ü}' },
      { api_key: 'a b' },
      { api_key: 5 },
      { api_key: 'a\nb' },
      { api_keys: [] },
      { api_keys: ['ok', ''] },
      { api_key: 'a', key: 'b' },
      { add: true },
    ])
      expect((await host.json('POST', '/api/providers/openai/key', body)).status).toBe(400)
    expect((await host.json('POST', '/api/providers/nonsense/key', { api_key: 'k' })).status).toBe(404)
    expect((await host.json('DELETE', '/api/providers/builtin/key')).status).toBe(400)
  })
  it('a test that fails says why', async () => {
    await host.json('POST', '/api/providers/openai/key', { api_key: 'wrong' })
    expect(await host.json('POST', '/api/providers/openai/test')).toMatchObject({
      status: 200,
      body: { status: 'error', error: expect.stringMatching(/401.*Check the key/) },
    })
    expect((await host.json('POST', '/api/providers/nonsense/test')).status).toBe(404)
  })
  it('a test that fails does not show the key that the provider says back', async () => {
    const echo = createServer(({ headers }, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          error: { message: `Incorrect API key provided: ${String(headers.authorization).slice(7)}.` },
        }),
      )
    })
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
    const { port } = echo.address() as AddressInfo
    await host.json('PUT', '/api/providers/groq/url', { url: `http://127.0.0.1:${port}/v1` })
    await host.json('POST', '/api/providers/groq/key', { api_key: 'CANARY' })
    const { body } = await host.json('POST', '/api/providers/groq/test')
    echo.closeAllConnections()
    echo.close()
    expect(body).toMatchObject({ status: 'error', error: expect.stringContaining('Incorrect API key provided: ***') })
    expect(JSON.stringify(body) + host.log.join('')).not.toContain('CANARY')
  })
  it('defaults that are chosen at once do not mix', async () => {
    const wanted = [
      { provider: 'openai', model: 'gpt-5' },
      { provider: 'mine', model: 'fake-1' },
      { provider: 'groq', model: 'llama' },
    ]
    const answers = await Promise.all(wanted.map((body) => host.json('PUT', '/api/config/provider', body)))
    expect(answers.map(({ body: { provider, model } }) => ({ provider, model }))).toEqual(wanted)
  })
  it('a default model is a name, not control characters', async () => {
    for (const model of ['a\u0000b', 'a\nb', '', 'x'.repeat(257), 5])
      expect((await host.json('PUT', '/api/config/provider', { provider: 'mine', model })).status, String(model)).toBe(
        400,
      )
  })
  it('the offline model can be tested', async () => {
    expect((await host.json('POST', '/api/providers/builtin/test')).body).toMatchObject({
      status: 'ok',
      model_tested: 'offline',
    })
  })
  it('an address is changed and said to be reachable or not; metadata services are refused', async () => {
    expect(await host.json('PUT', '/api/providers/groq/url', { url: fake.url })).toMatchObject({
      status: 200,
      body: { status: 'saved', base_url: fake.url, reachable: true },
    })
    expect((await host.json('GET', '/api/providers/groq')).body.base_url).toBe(fake.url)
    const gone = await startFakeProvider()
    await gone[Symbol.asyncDispose]()
    expect((await host.json('PUT', '/api/providers/groq/url', { base_url: gone.url })).body).toMatchObject({
      reachable: false,
      base_url: gone.url,
    })
    for (const url of [
      'ftp://example.org',
      'nonsense',
      'http://169.254.169.254/latest',
      'http://user:pass@127.0.0.1/',
      `${fake.url}?a=b`,
      `${fake.url}#x`,
      `${fake.url}/\u0000`,
      `${fake.url}/${'a'.repeat(2048)}`,
    ])
      expect((await host.json('PUT', '/api/providers/groq/url', { url })).status, url).toBe(400)
  })
  it('a changed address does not carry keys away', async () => {
    await using thief = await startFakeProvider()
    await host.json('POST', '/api/providers/openai/key', { api_key: 'CANARY' })
    for (const name of ['openai', 'mine']) {
      expect((await host.json('PUT', `/api/providers/${name}/url`, { url: thief.url })).status).toBe(200)
      await host.json('POST', `/api/providers/${name}/test`)
    }
    expect(thief.requests.length).toBeGreaterThanOrEqual(4)
    for (const { headers } of thief.requests) expect(headers.authorization).toBeUndefined()
    await host.json('POST', '/api/providers/openai/key', { api_key: 'again' })
    await host.json('POST', '/api/providers/openai/test')
    expect(thief.requests.at(-1)?.headers.authorization).toBe('Bearer again')
  })
  it('the log says which model is the default', async () => {
    await expect
      .poll(() => host.log.join('\n'))
      .toContain('default model: mine / fake-1 ([providers.mine] api_key is set)')
  })
})
