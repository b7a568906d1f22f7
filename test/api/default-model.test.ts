import { describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { HostOptions, TestHost } from '../support/host.ts'

const start = (config: HostOptions['config']): Promise<TestHost> => startHost({ memory: true, config: config ?? {} })

/** What one command over the socket of an agent is answered. */
async function command(host: TestHost, id: string, content: string): Promise<string> {
  const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${id}/ws`)
  const answered = Promise.withResolvers<string>()
  socket.addEventListener('open', () => socket.send(JSON.stringify({ type: 'message', content })))
  socket.addEventListener('message', ({ data }) => {
    const frame = JSON.parse(String(data))
    if (frame.type === 'response' || frame.type === 'error') answered.resolve(frame.content)
  })
  const text = await answered.promise
  socket.close()
  return text
}

describe('a default that cannot be used', () => {
  it.each([
    [
      'a provider nobody knows',
      { default_provider: 'openia' },
      /There is no provider "openia"; did you mean "openai"\?/,
    ],
    ['a provider without a key', { default_provider: 'groq' }, /Provider groq has no key/],
    [
      'a model no provider with a key has',
      { default_model: 'gpt-4.1-mni' },
      /default_model is "gpt-4.1-mni".*the nearest: .*gpt-4\.1-mini/,
    ],
  ])('is a warning everywhere: %s', async (_, config, problem) => {
    await using host = await start(config)
    await host.app.greeted()
    const { body: status } = await host.json('GET', '/api/status')
    expect(status.default_problem).toMatch(problem)
    expect((await host.json('GET', '/api/config/provider')).body.problem).toMatch(problem)
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual([
      expect.stringMatching(problem),
    ])
    const told = host.log.filter((line) => line.includes('default model: '))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(/warn/i)
    expect(told[0]).toMatch(problem)
  })

  it.each([
    ['nothing is configured', {}],
    ['the offline model is', { default_provider: 'builtin' }],
    ['an alias is', { default_model: 'haiku', providers: { anthropic: { api_key: 'k' } } }],
    ['a provider with a key is', { default_provider: 'openai', providers: { openai: { api_key: 'k' } } }],
  ])('is none when %s', async (_, config) => {
    await using host = await start(config)
    await host.app.greeted()
    expect((await host.json('GET', '/api/status')).body.default_problem).toBeNull()
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual([])
  })
})

describe('/model with a model that cannot be had', () => {
  it('says so, names the nearest, and the list of agents shows what answers', async () => {
    await using host = await start({})
    const { body: agent } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "a"' })
    for (const [model, nearest] of [
      ['toy', /no model "toy"|has a model "toy"/],
      ['gpt-4.1-mni', /the nearest: .*gpt-4\.1-mini/],
    ] as const) {
      const answer = await command(host, agent.agent_id, `/model ${model}`)
      expect(answer).toContain(`The model is set to ${model}, but offline by builtin answers`)
      expect(answer).toMatch(nearest)
      const { body } = await host.json('GET', '/api/agents')
      const shown = body.find(({ id }: { id: string }) => id === agent.agent_id)
      expect([shown.model_provider, shown.model_name]).toEqual(['builtin', 'offline'])
    }
    expect(await command(host, agent.agent_id, '/modle x')).toContain('did you mean "model"?')
    expect(await command(host, agent.agent_id, '/models opnai')).toContain('did you mean "openai"?')
  })
})
