import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { createRig } from './rig.ts'
import type { RigOptions } from './rig.ts'

let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider()
})
afterAll(() => fake[Symbol.asyncDispose]())
const never = new AbortController().signal
const rig = (options: RigOptions = {}) =>
  createRig({
    ...options,
    config: {
      providers: { qwen: { base_url: fake.url, api_key: 'k' }, openai: { base_url: fake.url, api_key: 'k' } },
      ...options.config,
    },
  })
const inputs = (start: number) =>
  fake.requests.slice(start).map(({ body }) => (Array.isArray(body.input) ? body.input.length : 0))

describe('embedding', () => {
  it('asks in as many requests as the provider needs and keeps the order', async () => {
    await using part = await rig()
    const start = fake.requests.length
    const texts = Array.from({ length: 23 }, (_, index) => 'x'.repeat(index + 1))
    const embedded = await part.inference.embed({ provider: 'qwen', model: 'default' }, texts, never)
    expect(inputs(start)).toEqual([10, 10, 3])
    // The fake's first number is how long the text was.
    expect(embedded.vectors.map(([length]) => length)).toEqual(texts.map(({ length }) => length))
    expect(embedded).toMatchObject({ provider: 'qwen', model: 'text-embedding-v4', usage: { input: 21 } })
  })
  it('a request holds no more characters than the provider takes; a text that is too long goes by itself', async () => {
    await using part = await rig()
    const start = fake.requests.length
    await part.inference.embed(
      { provider: 'qwen', model: 'default' },
      ['a'.repeat(79_000), 'b'.repeat(2000), 'c'.repeat(90_000), 'd'],
      never,
    )
    expect(inputs(start)).toEqual([1, 1, 1, 1])
  })
  it('a request that fails is tried again, and only that one', async () => {
    await using part = await rig()
    const start = fake.requests.length
    fake.script({}, { status: 503 }, {})
    const texts = Array.from({ length: 12 }, () => 'x')
    expect((await part.inference.embed({ provider: 'qwen', model: 'default' }, texts, never)).vectors).toHaveLength(12)
    expect(inputs(start)).toEqual([10, 2, 2])
    expect(part.pauses).toHaveLength(1)
  })
  it('a refused key is told with what to do, once', async () => {
    await using part = await rig()
    const start = fake.requests.length
    fake.script({ status: 401 })
    await expect(part.inference.embed({ provider: 'openai', model: 'default' }, ['x'], never)).rejects.toMatchObject({
      reason: 'auth',
      message: expect.stringContaining('Check the key'),
    })
    expect(inputs(start)).toEqual([1])
  })
  it.each([
    [[[1, 2]], 'sent 1 vectors for 2 texts'],
    [[[1, 2], [1]], 'different lengths'],
    [[[], []], 'an invalid vector'],
  ])('vectors that cannot be are refused: %j', async (vectors, why) => {
    await using part = await rig()
    fake.always({ vectors })
    await expect(part.inference.embed({ provider: 'openai', model: 'default' }, ['a', 'b'], never)).rejects.toThrow(why)
    fake.always({})
  })
  it('an abort ends it with its reason', async () => {
    await using part = await rig()
    const reason = new Error('stop')
    await expect(
      part.inference.embed({ provider: 'openai', model: 'default' }, ['a'], AbortSignal.abort(reason)),
    ).rejects.toBe(reason)
  })
  it('nobody named means the embedded one, which asks no network, unless the configuration names another', async () => {
    await using part = await rig({ env: { OPENAI_API_KEY: 'k' } })
    expect(await part.inference.embed({ provider: 'default', model: 'default' }, ['hello'], never)).toMatchObject({
      provider: 'builtin',
      model: 'ngram-256',
      price: { input: 0, output: 0 },
    })
    await using other = await rig({
      config: {
        providers: { openai: { base_url: fake.url, api_key: 'k' } },
        embedding: { provider: 'openai', model: 'my-embedder' },
      },
    })
    expect(await other.inference.embed({ provider: 'default', model: 'default' }, ['hello'], never)).toMatchObject({
      provider: 'openai',
      model: 'my-embedder',
    })
  })
  it('a provider that cannot, one without a usual model and too many texts are told apart', async () => {
    await using part = await rig({ env: { GROQ_API_KEY: 'k', TOGETHER_API_KEY: 'k' } })
    await expect(part.inference.embed({ provider: 'groq', model: 'x' }, ['a'], never)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('cannot embed'),
    })
    await expect(part.inference.embed({ provider: 'together', model: 'default' }, ['a'], never)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('name one'),
    })
    await expect(part.inference.embed({ provider: 'nonsense', model: 'x' }, ['a'], never)).rejects.toMatchObject({
      code: 'service_unavailable',
    })
    await expect(
      part.inference.embed(
        { provider: 'builtin', model: 'ngram-256' },
        Array.from({ length: 10_001 }, () => ''),
        never,
      ),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await part.inference.embed({ provider: 'builtin', model: 'ngram-256' }, [], never)).toMatchObject({
      vectors: [],
      usage: { input: 0 },
    })
  })
})
