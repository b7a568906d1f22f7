import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { anthropic } from '../../../adapters/providers/anthropic/index.ts'
import { bedrock } from '../../../adapters/providers/bedrock/index.ts'
import { builtin } from '../../../adapters/providers/builtin/driver.ts'
import { cohere } from '../../../adapters/providers/cohere/index.ts'
import { gemini, vertexAi } from '../../../adapters/providers/gemini/index.ts'
import { openAiCompatible } from '../../../adapters/providers/openai-compatible/driver.ts'
import { vendors } from '../../../adapters/providers/openai-compatible/vendors.ts'
import { replicate } from '../../../adapters/providers/replicate/index.ts'
import { commandLine } from '../../../adapters/providers/command-line/driver.ts'
import { programs } from '../../../adapters/providers/command-line/programs.ts'
import { createSpawn } from '../../../core/process/spawn.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { codex } from '../../../adapters/providers/responses/index.ts'
import { dialects } from '../../support/dialects.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { createRig } from './rig.ts'

const spawn = createSpawn(new Scope('test'))
const drivers = [
  ...programs.map((program) => commandLine(program, spawn)),
  builtin,
  anthropic,
  bedrock,
  cohere,
  gemini,
  vertexAi,
  replicate,
  codex,
  ...vendors.map(openAiCompatible),
]
/** Where each customer has an address. */
const unaddressed = new Set(['azure', 'cloudflare'])
const nothing = { ollama: { base_url: 'http://127.0.0.1:9/v1' } }

describe('every provider', () => {
  it('that clients of this interface expect is there', () => {
    const wanted = [
      'anthropic',
      'openai',
      'gemini',
      'groq',
      'deepseek',
      'openrouter',
      'mistral',
      'together',
      'fireworks',
      'perplexity',
      'cohere',
      'ai21',
      'cerebras',
      'sambanova',
      'huggingface',
      'xai',
      'replicate',
      'github-copilot',
      'qwen',
      'minimax',
      'zhipu',
      'zai',
      'moonshot',
      'qianfan',
      'bedrock',
      'azure',
      'requesty',
      'chutes',
      'venice',
      'lemonade',
      'claude-code',
      'codex-cli',
      'gemini-cli',
      'qwen-code',
      'codex',
      'vertex-ai',
      'nvidia-nim',
      'volcengine',
      'novita',
      'deepinfra',
      'ollama',
      'vllm',
      'lmstudio',
      'builtin',
    ]
    const there = new Set(drivers.map(({ name }) => name))
    expect(wanted.filter((name) => !there.has(name))).toEqual([])
    expect(there.size).toBe(drivers.length)
  })
  it.each(
    drivers.flatMap((driver) =>
      [driver.envVar, ...(driver.otherEnvVars ?? [])].flatMap((variable) =>
        variable !== undefined && !unaddressed.has(driver.name) ? [[driver.name, variable] as const] : [],
      ),
    ),
  )('%s is ready with %s alone', async (name, variable) => {
    await using part = await createRig({ drivers, env: { [variable]: 'its-key' }, config: { providers: nothing } })
    const { provider, model } = await part.inference.resolve({ provider: name, model: 'default' })
    expect([provider, model === 'default']).toEqual([name, false])
    const { key, baseUrl } = await part.connections.open({ provider: name })
    expect([key?.value, new URL(baseUrl).protocol]).toEqual(['its-key', 'https:'])
  })
  it('names an address with which variable it needs when it has none', async () => {
    await using part = await createRig({ drivers, env: { AZURE_OPENAI_API_KEY: 'k' }, config: { providers: nothing } })
    await expect(part.connections.open({ provider: 'azure' })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('AZURE_OPENAI_ENDPOINT'),
    })
  })
  it('has the address of the account that a variable or its section names', async () => {
    const key = { CLOUDFLARE_API_TOKEN: 'k' }
    const ask = { provider: 'cloudflare' }
    await using without = await createRig({ drivers, env: key, config: { providers: nothing } })
    await expect(without.connections.open(ask)).rejects.toMatchObject({
      message: expect.stringContaining('set CLOUDFLARE_ACCOUNT_ID or [providers.cloudflare] base_url'),
    })
    await using part = await createRig({ drivers, env: { ...key, CLOUDFLARE_ACCOUNT_ID: 'mine' } })
    expect(await part.connections.open(ask)).toMatchObject({
      baseUrl: 'https://api.cloudflare.com/client/v4/accounts/mine/ai/v1',
      key: { value: 'k' },
    })
    await using other = await createRig({
      drivers,
      env: key,
      config: { providers: { cloudflare: { account_id: 'a/b' } } },
    })
    await expect(other.connections.open(ask)).rejects.toMatchObject({
      message: expect.stringContaining('[providers.cloudflare] account_id'),
    })
  })
  it('leaves the variable that OpenAI and Codex share to OpenAI', async () => {
    await using part = await createRig({ drivers, env: { OPENAI_API_KEY: 'k' }, config: { providers: nothing } })
    expect((await part.inference.defaultModel()).provider).toBe('openai')
  })
  it.each([
    'GITHUB_TOKEN',
    'GOOGLE_APPLICATION_CREDENTIALS',
    'AWS_ACCESS_KEY_ID',
    'AZURE_OPENAI_API_KEY',
    'CLOUDFLARE_API_TOKEN',
  ])('is not the default because of %s, which says nothing of models', async (variable) => {
    await using part = await createRig({ drivers, env: { [variable]: 'k' }, config: { providers: nothing } })
    expect((await part.inference.defaultModel()).provider).toBe('builtin')
  })
})

describe('Azure', () => {
  let fake: FakeProvider
  beforeAll(async () => {
    fake = await startFakeProvider({ dialect: dialects.azure })
  })
  afterAll(() => fake[Symbol.asyncDispose]())
  const env = { AZURE_OPENAI_API_KEY: 'test-key' }
  const ask = { provider: 'azure', model: 'fake-1', price: undefined, contextWindow: 1 }

  it('is called where its variable says, with its key', async () => {
    await using part = await createRig({ drivers, env: { ...env, AZURE_OPENAI_ENDPOINT: `${fake.origin}/` } })
    expect(await part.ask(ask)).toBe('Hello from the fake.')
  })
  it('is called where its section says, and the key goes nowhere else', async () => {
    await using part = await createRig({ drivers, env, config: { providers: { azure: { base_url: fake.origin } } } })
    expect(await part.ask(ask)).toBe('Hello from the fake.')
    expect(
      (await part.connections.open({ provider: 'azure', baseUrl: 'https://elsewhere.openai.azure.com' })).key,
    ).toBeUndefined()
  })
  it('has the address of its resource', async () => {
    await using part = await createRig({ drivers, env: { ...env, AZURE_RESOURCE_NAME: 'my-resource' } })
    expect(await part.connections.open({ provider: 'azure' })).toMatchObject({
      baseUrl: 'https://my-resource.openai.azure.com',
      key: { value: 'test-key' },
    })
    await using wrong = await createRig({
      drivers,
      env,
      config: { providers: { azure: { resource: 'my.resource/x' } } },
    })
    await expect(wrong.connections.open({ provider: 'azure' })).rejects.toThrow('[providers.azure] resource')
  })
})
