import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'right' })
  const reached = { base_url: fake.url, api_key: 'right' }
  host = await startHost({
    memory: true,
    config: { providers: { openai: reached, openrouter: reached, cohere: { api_key: 'right' } } },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

let count = 0
async function spawn(provider: string, model: string, more = ''): Promise<{ id: string; warnings: string[] }> {
  const { status, body } = await host.json('POST', '/api/agents', {
    manifest_toml: `name = "model-${++count}"\n[model]\nprovider = "${provider}"\nmodel = "${model}"\n${more}`,
  })
  expect(status).toBe(201)
  return body
}
const modelOf = async (id: string): Promise<string> => {
  const { model } = (await host.json('GET', `/api/agents/${id}`)).body
  return `${model.provider}: ${model.model}`
}

async function command(id: string, content: string): Promise<number> {
  const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${id}/ws`)
  const answered = Promise.withResolvers<{ type: string }>()
  socket.addEventListener('open', () => socket.send(JSON.stringify({ type: 'message', content })))
  socket.addEventListener('message', ({ data }) => {
    const frame = JSON.parse(String(data))
    if (frame.type === 'response' || frame.type === 'error') answered.resolve(frame)
  })
  const { type } = await answered.promise
  socket.close()
  return type === 'response' ? 200 : 500
}

/** Every place where somebody names a model, with what it makes of the agent. */
const ways: readonly (readonly [string, (id: string, model: string) => Promise<number>])[] = [
  ['PUT …/model', async (id, model) => (await host.json('PUT', `/api/agents/${id}/model`, { model })).status],
  ['PATCH …/config', async (id, model) => (await host.json('PATCH', `/api/agents/${id}/config`, { model })).status],
  ['PATCH', async (id, model) => (await host.json('PATCH', `/api/agents/${id}`, { model })).status],
  ['PUT …/update', async (id, model) => (await host.json('PUT', `/api/agents/${id}/update`, { model })).status],
  ['/model', (id, model) => command(id, `/model ${model}`)],
]
describe.each(ways)('a model named by %s', (_, set) => {
  it.each([
    ['that its provider lists stays there', 'openrouter', 'openai/gpt-4.1', 'openrouter: openai/gpt-4.1'],
    [
      'with its provider before it moves there',
      'openrouter',
      'groq/llama-3.3-70b-versatile',
      'groq: llama-3.3-70b-versatile',
    ],
    [
      'that only the provider before it lists moves there',
      'openai',
      'openrouter/openai/gpt-4.1',
      'openrouter: openai/gpt-4.1',
    ],
    ['by an alias is what that stands for', 'openai', 'sonnet', 'anthropic: claude-sonnet-5-5'],
    ['that nobody knows is one of its own provider', 'openrouter', 'openai/gpt-999', 'openrouter: openai/gpt-999'],
    ['that nobody knows, with its provider, moves there', 'cohere', 'openai/gpt-999', 'openai: gpt-999'],
  ])('%s', async (_title, provider, wanted, then) => {
    const { id } = await spawn(provider, 'default')
    expect(await set(id, wanted)).toBe(200)
    expect(await modelOf(id)).toBe(then)
  })
})

describe('PUT /api/agents/{id}/model', () => {
  const set = (id: string, model: string, provider?: string) =>
    host.json('PUT', `/api/agents/${id}/model`, { model, ...(provider === undefined ? {} : { provider }) })

  it('says what is in force, without a warning for a model that is known', async () => {
    const { id } = await spawn('openrouter', 'default')
    expect((await set(id, 'openai/gpt-4.1')).body).toEqual({
      status: 'updated',
      model: 'openai/gpt-4.1',
      provider: 'openrouter',
      warnings: [],
    })
  })
  it('warns of a model that nobody knows, of a provider there is none of, and says who has it', async () => {
    const { id } = await spawn('openrouter', 'default')
    expect((await set(id, 'openai/gpt-999')).body.warnings).toEqual([
      expect.stringMatching(
        /^model: provider openrouter has no model "openai\/gpt-999" that is known here; the nearest: .*; GET/,
      ),
    ])
    expect((await set(id, 'gpt-4.1')).body.warnings).toEqual([expect.stringContaining('there is openai/gpt-4.1')])
    expect((await set(id, 'x', 'nobody')).body.warnings).toEqual([
      expect.stringContaining('model: there is no provider "nobody"; there are '),
    ])
  })
  it('leaves the address and the key of the old provider behind, and says so', async () => {
    const { id } = await spawn('openai', 'gpt-4.1', 'api_key_env = "SOME_KEY"\n')
    expect((await set(id, 'groq/llama-3.3-70b-versatile')).body.warnings).toEqual([
      '"model.api_key_env" was that of provider openai and is removed',
    ])
    expect((await host.json('GET', `/api/agents/${id}`)).body.manifest_toml).not.toContain('SOME_KEY')
  })
  it('takes any name for an agent with an address of its own', async () => {
    const { id } = await spawn('openai', 'x', `base_url = "${fake.url}"\n`)
    expect((await set(id, 'groq/anything')).body).toMatchObject({
      provider: 'openai',
      model: 'groq/anything',
      warnings: [],
    })
  })
})

it.each([
  ['openai', 'gpt-4.1', []],
  ['openrouter', 'openai/gpt-4.1', []],
  ['default', 'default', []],
  ['builtin', 'anything', [expect.stringContaining('model: provider builtin has no model "anything"')]],
  ['anthropic', 'haiku', []],
  ['openai', 'gpt-999', [expect.stringContaining('model: provider openai has no model "gpt-999"')]],
  ['nobody', 'gpt-4.1', [expect.stringContaining('model: there is no provider "nobody"')]],
])('an agent spawned or cloned with %s and %s is told of it', async (provider, model, warnings) => {
  const { id, warnings: told } = await spawn(provider, model)
  expect(told).toEqual(warnings)
  expect((await host.json('POST', `/api/agents/${id}/clone`, {})).body.warnings).toEqual(warnings)
})

it('what is pinned is named by the same rule', async () => {
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml:
      'name = "pinned"\npinned_model = "openai/gpt-4.1"\n[model]\nprovider = "openrouter"\nmodel = "openrouter/auto"\n',
  })
  await host.json('PUT', `/api/agents/${body.agent_id}/mode`, { mode: 'Stable' })
  expect(await modelOf(body.agent_id)).toBe('openrouter: openai/gpt-4.1')
})
