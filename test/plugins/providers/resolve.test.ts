import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bedrock } from '../../../adapters/providers/bedrock/index.ts'
import { builtin } from '../../../adapters/providers/builtin/driver.ts'
import type { ProviderDriver } from 'svc/providers'
import { UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { outboundSettings } from '../../support/provider-stage.ts'
import type { Catalog } from '../../../plugins/catalog/contract.ts'
import { createRig } from './rig.ts'
import type { RigOptions } from './rig.ts'

let fake: FakeProvider
let local: FakeProvider
beforeAll(async () => {
  ;[fake, local] = await Promise.all([
    startFakeProvider(),
    startFakeProvider({ ollama: true, models: ['nomic-embed-text', 'qwen3:8b', 'llama3.2'] }),
  ])
})
afterAll(() => Promise.all([fake[Symbol.asyncDispose](), local[Symbol.asyncDispose]()]))

const nothing = { ollama: { base_url: 'http://127.0.0.1:9/v1' } }
const withOllama = () => ({ ollama: { base_url: local.url } })
const defaultOf = async (options: RigOptions) => {
  await using part = await createRig({ config: { providers: nothing }, ...options })
  return await part.inference.defaultModel()
}
const authorization = () => fake.requests.at(-1)?.headers.authorization

describe('what default stands for', () => {
  it('the configuration first', async () => {
    expect(await defaultOf({ wanted: { provider: 'groq', model: 'm' }, env: { OPENAI_API_KEY: 'k' } })).toEqual({
      provider: 'groq',
      model: 'm',
    })
    expect(await defaultOf({ wanted: { provider: 'mistral' } })).toEqual({
      provider: 'mistral',
      model: 'mistral-small-latest',
    })
  })
  it('then the first provider with a key, in the documented order', async () => {
    expect(await defaultOf({ env: { DEEPSEEK_API_KEY: 'k', GROQ_API_KEY: 'k' } })).toEqual({
      provider: 'groq',
      model: 'llama-3.3-70b-versatile',
    })
    expect(await defaultOf({ env: { GROQ_API_KEY: 'k', OPENAI_API_KEY: 'k' } })).toMatchObject({ provider: 'openai' })
    expect(await defaultOf({ env: { OPENAI_API_KEY: '  ' } })).toEqual({ provider: 'builtin', model: 'offline' })
    expect(
      await defaultOf({ config: { providers: { ...nothing, xai: { api_key: 'k', default_model: 'grok-x' } } } }),
    ).toEqual({ provider: 'xai', model: 'grok-x' })
  })
  it('a default model alone may name its provider', async () => {
    expect(await defaultOf({ wanted: { model: 'groq/some-model' }, env: { OPENAI_API_KEY: 'k' } })).toEqual({
      provider: 'groq',
      model: 'some-model',
    })
    expect(await defaultOf({ wanted: { model: 'openai/gpt-x' }, env: { OPENAI_API_KEY: 'k' } })).toEqual({
      provider: 'openai',
      model: 'gpt-x',
    })
    const catalog = { ready: async () => undefined, find: () => ({}) } as unknown as Catalog
    expect(await defaultOf({ catalog, wanted: { model: 'groq/own' }, env: { GROQ_API_KEY: 'k' } })).toEqual({
      provider: 'groq',
      model: 'groq/own',
    })
    expect(await defaultOf({ wanted: { model: 'gpt-x' }, env: { OPENAI_API_KEY: 'k' } })).toEqual({
      provider: 'openai',
      model: 'gpt-x',
    })
  })
  it('then a local Ollama with a model it has, then the offline model', async () => {
    expect(await defaultOf({ config: { providers: withOllama() } })).toEqual({ provider: 'ollama', model: 'qwen3:8b' })
    expect(await defaultOf({})).toEqual({ provider: 'builtin', model: 'offline' })
  })
  it('a key beats Ollama, which is then not even asked', async () => {
    const start = local.requests.length
    expect(await defaultOf({ config: { providers: withOllama() }, env: { OPENAI_API_KEY: 'k' } })).toMatchObject({
      provider: 'openai',
    })
    expect(local.requests.length).toBe(start)
  })
  it('the answer of Ollama is remembered, asked for again later, and after a call failed', async () => {
    await using part = await createRig({ config: { tries: 1, providers: withOllama() } })
    const start = local.requests.length
    for (let i = 0; i < 3; i++) await part.inference.defaultModel()
    expect(local.requests.length - start).toBe(1)
    part.clock.advance(60_000)
    await part.inference.defaultModel()
    // Joins the request in the background, which is over then.
    await part.ollama.detect()
    expect(local.requests.length - start).toBe(2)
    part.ollama.forget()
    await part.inference.defaultModel()
    expect(local.requests.length - start).toBe(3)
  })
  it('a detection that began before the answer was forgotten is not remembered', async () => {
    await using outbound = createOutbound({ settings: () => outboundSettings })
    const answers: ((value: boolean) => void)[] = []
    await using part = await createRig({
      config: { providers: withOllama() },
      fetch: async (url) => {
        const isThere = await new Promise<boolean>((resolve) => answers.push(resolve))
        if (!isThere) throw new Error('connection refused')
        return outbound.forOperator()(url)
      },
    })
    const before = part.ollama.detect()
    part.ollama.forget()
    const after = part.ollama.detected()
    expect(answers).toHaveLength(2)
    answers[1]?.(true)
    expect(await after).toMatchObject({ available: true })
    answers[0]?.(false)
    expect(await before).toMatchObject({ available: false })
    expect(await part.ollama.detected()).toMatchObject({ available: true })
  })

  it('an Ollama that does not answer in time is not there', async () => {
    await using part = await createRig({
      config: { providers: nothing },
      fetch: (_, request) =>
        new Promise((_, reject) => request?.signal?.addEventListener('abort', () => reject(request.signal?.reason))),
    })
    const asked = part.inference.defaultModel()
    await expect.poll(() => part.clock.waiting).toBe(1)
    part.clock.advance(300)
    expect(await asked).toEqual({ provider: 'builtin', model: 'offline' })
  })
})

describe('resolving', () => {
  it('default fills in provider and model apart', async () => {
    await using part = await createRig({
      config: { providers: { ...nothing, openai: { api_key: 'k', default_model: 'm1' } } },
    })
    expect(await part.inference.resolve({ provider: 'default', model: 'default' })).toMatchObject({
      provider: 'openai',
      model: 'm1',
    })
    expect(await part.inference.resolve({ provider: 'openai', model: 'default' })).toMatchObject({ model: 'm1' })
    expect(await part.inference.resolve({ provider: 'default', model: 'm2' })).toMatchObject({
      provider: 'openai',
      model: 'm2',
    })
  })
  it('a model that was meant for a real provider is not asked of the offline one', async () => {
    await using part = await createRig({ config: { providers: nothing } })
    expect(await part.inference.resolve({ provider: 'default', model: 'gpt-x' })).toMatchObject({
      provider: 'builtin',
      model: 'offline',
      price: { input: 0, output: 0 },
    })
  })
  it('a provider without a key says which variable to set', async () => {
    await using part = await createRig()
    await expect(part.inference.resolve({ provider: 'openai', model: 'm' })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringMatching(/set OPENAI_API_KEY, or \[providers\.openai\] api_key/),
    })
  })
  it('an unknown provider names those there are', async () => {
    await using part = await createRig()
    await expect(part.inference.resolve({ provider: 'nonsense', model: 'm' })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('builtin, cerebras'),
    })
  })
  it('a section with an address makes a provider of its own', async () => {
    await using part = await createRig({
      config: {
        providers: {
          mine: {
            base_url: fake.url,
            api_key: 'mine-key',
            prices: { m: { input: 1, output: 2, cached_input: 0.5 } },
            context_window: 5000,
          },
        },
      },
    })
    const model = await part.inference.resolve({ provider: 'mine', model: 'm' })
    expect(model).toMatchObject({ price: { input: 1, output: 2, cachedInput: 0.5 }, contextWindow: 5000 })
    expect(await part.ask(model)).toBe('Hello from the fake.')
    expect(authorization()).toBe('Bearer mine-key')
    expect(part.inference.providers().find(({ name }) => name === 'mine')).toMatchObject({
      authStatus: 'configured',
      baseUrl: fake.url,
    })
  })
  it('a server without a usual model is asked for the first it lists', async () => {
    await using part = await createRig({ config: { providers: { mine: { base_url: fake.url } } } })
    expect(await part.inference.resolve({ provider: 'mine', model: 'default' })).toMatchObject({ model: 'fake-1' })
  })
  it('a price nobody knows is not a price of nothing', async () => {
    await using part = await createRig({ env: { OPENAI_API_KEY: 'k' } })
    expect((await part.inference.resolve({ provider: 'openai', model: 'm' })).price).toBeUndefined()
    expect((await part.inference.resolve({ provider: 'vllm', model: 'm' })).price).toEqual({ input: 0, output: 0 })
  })
})

describe('which key goes where', () => {
  it('one from the section goes to the address of the section', async () => {
    await using part = await createRig({
      config: { providers: { openai: { base_url: fake.url, api_key: 'section' } } },
    })
    await part.ask()
    expect(authorization()).toBe('Bearer section')
  })
  it('one from a variable that the section names does as well', async () => {
    await using part = await createRig({
      env: { MY_KEY: 'mine' },
      config: { providers: { mine: { base_url: fake.url, api_key_env: 'MY_KEY' } } },
    })
    await part.ask(await part.inference.resolve({ provider: 'mine', model: 'fake-1' }))
    expect(authorization()).toBe('Bearer mine')
  })
  it('one that is not in the variable that the section names is missed under this name', async () => {
    await using part = await createRig({ config: { providers: { openai: { api_key_env: 'MY_KEY' } } } })
    await expect(part.inference.resolve({ provider: 'openai', model: 'gpt-5' })).rejects.toThrow(
      'has no key: set MY_KEY',
    )
  })
  it('one from the environment does not go to another origin', async () => {
    await using part = await createRig({
      env: { OPENAI_API_KEY: 'CANARY' },
      config: { providers: { openai: { base_url: fake.url } } },
    })
    await part.ask()
    expect(authorization()).toBeUndefined()
  })
  it('unless that origin is named, and the failure without it says so', async () => {
    await using part = await createRig({
      env: { OPENAI_API_KEY: 'CANARY' },
      config: { providers: { openai: { base_url: fake.url, key_origins: [fake.origin] } } },
    })
    await part.ask()
    expect(authorization()).toBe('Bearer CANARY')
    await using other = await createRig({
      env: { OPENAI_API_KEY: 'CANARY' },
      config: { providers: { openai: { base_url: fake.url } } },
    })
    fake.script({ status: 401 })
    await expect(other.ask()).rejects.toThrow(/key of OPENAI_API_KEY is not sent to .* key_origins/)
  })
  it('a vendor with an address in each region is at home in the region that is set, and nowhere else', async () => {
    const asked: { url: string; authorization: string }[] = []
    const fetch: Fetch = async (url, { headers } = {}) => {
      asked.push({ url: String(url), authorization: headers?.['authorization'] ?? '' })
      throw new UpstreamFailure('bedrock', 'bedrock is not here', { reason: 'network', retry: 'never' })
    }
    const env = {
      AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE',
      AWS_SECRET_ACCESS_KEY: 'the secret',
      AWS_REGION: 'eu-central-1',
    }
    const call = async (options: RigOptions): Promise<void> => {
      await using part = await createRig({ fetch, drivers: [bedrock], ...options })
      await part.ask(await part.inference.resolve({ provider: 'bedrock', model: 'a:0' }))
    }
    await expect(call({ env })).rejects.toThrow(/not here/)
    await expect(call({ env, config: { providers: { bedrock: { region: 'us-west-2' } } } })).rejects.toThrow(/not here/)
    await expect(
      call({
        env: { AWS_BEARER_TOKEN_BEDROCK: 'CANARY' },
        config: { providers: { bedrock: { base_url: 'https://proxy.example' } } },
      }),
    ).rejects.toThrow(/not here/)
    expect(asked.map(({ url }) => url)).toEqual([
      'https://bedrock-runtime.eu-central-1.amazonaws.com/model/a%3A0/converse-stream',
      'https://bedrock-runtime.us-west-2.amazonaws.com/model/a%3A0/converse-stream',
      'https://proxy.example/model/a%3A0/converse-stream',
    ])
    expect(
      asked.map(
        ({ authorization }) =>
          /Credential=AKIAIOSFODNN7EXAMPLE\/\d+\/([^/]+)/.exec(authorization)?.[1] ?? authorization,
      ),
    ).toEqual(['eu-central-1', 'us-west-2', ''])
    await expect(call({ env, config: { providers: { bedrock: { region: 'EU west' } } } })).rejects.toThrow(
      /\[providers\.bedrock\] region: expected a region/,
    )
  })
  it('none goes to an address of a manifest, from the environment, the section or the vault', async () => {
    await using part = await createRig({
      env: { OPENAI_API_KEY: 'CANARY', OTHER_SECRET: 'CANARY' },
      config: { providers: { groq: { api_key: 'CANARY' } } },
    })
    await part.keys.store('mistral', 'CANARY', 'https://api.mistral.ai/v1')
    for (const choice of [
      { provider: 'openai' },
      { provider: 'groq' },
      { provider: 'mistral' },
      { provider: 'openai', apiKeyEnv: 'OTHER_SECRET' },
      { provider: 'default', apiKeyEnv: 'OTHER_SECRET' },
    ]) {
      await part.ask(await part.inference.resolve({ model: 'fake-1', baseUrl: fake.url, ...choice }))
      expect(JSON.stringify(fake.requests.at(-1)?.headers)).not.toContain('CANARY')
    }
  })
  it('a stored key holds at once and goes when it is removed', async () => {
    await using part = await createRig({
      config: { providers: { openai: { base_url: fake.url, api_key: 'section' } } },
    })
    await part.keys.store('openai', 'stored', fake.url)
    await part.ask()
    expect(authorization()).toBe('Bearer stored')
    await part.keys.remove('openai')
    await part.ask()
    expect(authorization()).toBe('Bearer section')
  })
  it("a manifest's variable is used at the provider's own address", async () => {
    const own: ProviderDriver = {
      ...builtin,
      name: 'own',
      envVar: 'OWN_KEY',
      baseUrl: fake.url,
      connect: (link) => ({
        async *complete() {
          yield { type: 'text', delta: `${await link.apiKey()}` }
          yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
        },
        probe: async () => ({ model: 'x' }),
      }),
    }
    await using part = await createRig({ drivers: [own], env: { OWN_KEY: 'one', SECOND: 'two' } })
    expect(await part.ask(await part.inference.resolve({ provider: 'own', model: 'm', apiKeyEnv: 'SECOND' }))).toBe(
      'two',
    )
    expect(await part.ask(await part.inference.resolve({ provider: 'own', model: 'm' }))).toBe('one')
  })
})

describe('drivers that come and go', () => {
  const slow = (name: string): ProviderDriver => ({
    ...builtin,
    name,
    connect: () => ({
      async *complete(_, signal) {
        yield { type: 'text', delta: 'begun' }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      probe: async () => ({ model: 'x' }),
    }),
  })
  const model = (provider: string) => ({ provider, model: 'm', price: undefined, contextWindow: 1 })
  const begin = (part: Awaited<ReturnType<typeof createRig>>, provider: string) => {
    const request = { system: '', tools: [], turns: [] }
    const answer = part.inference.complete(model(provider), request, new AbortController().signal)
    return answer[Symbol.asyncIterator]()
  }
  const gated = (name: string, gate: Promise<void>, text = 'old'): ProviderDriver => ({
    ...builtin,
    name,
    connect: () => ({
      async *complete() {
        yield { type: 'text', delta: `${text} begun` }
        await gate
        yield { type: 'text', delta: `${text} ended` }
        yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
      },
      probe: async () => ({ model: 'x' }),
    }),
  })
  it('a call that runs when its driver goes ends on the old code, and the next one gets the new', async () => {
    await using part = await createRig({ drivers: [] })
    const gate = Promise.withResolvers<void>()
    const remove = part.registry.add(gated('acme', gate.promise))
    const events = begin(part, 'acme')
    expect((await events.next()).value).toMatchObject({ delta: 'old begun' })
    await remove()
    part.registry.add(gated('acme', Promise.resolve(), 'new'))
    expect(await part.ask(model('acme'))).toBe('new begunnew ended')
    gate.resolve()
    expect((await events.next()).value).toMatchObject({ delta: 'old ended' })
    expect((await events.next()).value).toMatchObject({ type: 'end' })
  })
  it('a call that comes while a driver is replaced waits for the new one', async () => {
    await using part = await createRig({ drivers: [] })
    await part.registry.add(gated('acme', Promise.resolve()))()
    const answer = part.ask(model('acme'))
    part.registry.add(gated('acme', Promise.resolve(), 'new'))
    expect(await answer).toBe('new begunnew ended')
  })
  it('a driver that does not come back is not waited for again, and the refusal says which there are', async () => {
    await using part = await createRig({ drivers: [slow('other')] })
    await part.registry.add(slow('acme'))()
    const refused = expect(part.ask(model('acme'))).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringMatching(/no provider "acme"\. There are: other/),
    })
    part.clock.advance(1000)
    await refused
    await expect(part.ask(model('acme'))).rejects.toMatchObject({ code: 'service_unavailable' })
  })
  it('when providers go, calls of drivers that went before end too', async () => {
    await using part = await createRig({ drivers: [] })
    const remove = part.registry.add(slow('slow'))
    const events = begin(part, 'slow')
    await events.next()
    const ended = expect(events.next()).rejects.toMatchObject({
      name: 'UpstreamFailure',
      message: expect.stringContaining('was unloaded'),
    })
    await remove()
    await part.registry.close()
    await ended
  })
  it('two of one name are an error', async () => {
    await using part = await createRig({ drivers: [slow('slow')] })
    expect(() => part.registry.add(slow('slow'))).toThrow('provider "slow" exists already')
  })
  it('one that ignores the signal is reported, and unloading goes on', async () => {
    const deaf: ProviderDriver = {
      ...slow('deaf'),
      connect: () => ({
        async *complete() {
          yield { type: 'text', delta: 'x' }
          await new Promise(() => {})
        },
        probe: async () => ({ model: 'x' }),
      }),
    }
    await using part = await createRig({ drivers: [] })
    part.registry.add(deaf)
    const request = { system: '', tools: [], turns: [] }
    const answer = part.inference.complete(model('deaf'), request, new AbortController().signal)
    const events = answer[Symbol.asyncIterator]()
    await events.next()
    const ended = expect(events.next()).rejects.toThrow('was unloaded')
    const removed = expect(part.registry.close()).rejects.toThrow('1 calls ignored the abort signal')
    await ended
    part.clock.advance(5000)
    await removed
  })
})

describe('a provider whose plugin is being loaded again', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const away = async (isReloading: () => boolean) => {
    const part = await createRig({
      drivers: [],
      config: { reload_wait_ms: 30_000 },
      isReloading,
    })
    await part.registry.add(builtin)()
    const answer = part.inference.resolve({ provider: 'builtin', model: 'offline' }).then(
      ({ provider }) => provider,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    await settled()
    return { ...part, answer }
  }

  it('is waited for as long as that takes', async () => {
    const { clock, registry, answer } = await away(() => true)
    clock.advance(20_000)
    await settled()
    registry.add(builtin)
    expect(await answer).toBe('builtin')
  })

  it('is not there when that fails, or takes longer than reload_wait_ms', async () => {
    let isReloading = true
    const failed = await away(() => isReloading)
    failed.clock.advance(5_000)
    isReloading = false
    failed.clock.advance(100)
    expect(await failed.answer).toContain('There is no provider "builtin"')
    const slow = await away(() => true)
    slow.clock.advance(30_100)
    expect(await slow.answer).toContain('There is no provider "builtin"')
  })
})
