import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import type { Json } from '../support/json.ts'

/** Every PUT and PATCH takes back what its GET shows, changes what was changed in it, and loses nothing it was sent. */
let host: TestHost
let agent: string
let webhook: string
let event: string
let session: string
let workflow: string
let schedule: string
let goal: string
let trigger: string
beforeAll(async () => {
  host = await startHost({ memory: true, config: { providers: { openai: { api_key: 'k' } } } })
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml:
      'name = "trip"\ndescription = "d"\ntags = ["a"]\n[model]\nsystem_prompt = "s"\n[[fallback_models]]\nprovider = "openai"\nmodel = "gpt-4.1"\n',
  })
  agent = body.agent_id
  await host.json('PATCH', `/api/agents/${agent}/identity`, { emoji: '🪶', color: '#112233' })
  const url = 'https://example.com/hook'
  webhook = (await host.json('POST', '/api/webhooks', { name: 'w', url, events: ['all'], secret: 'hidden' })).body.id
  event = (await host.json('POST', '/api/webhooks/events', { event_type: 'agent_spawned', url, secret: 'hidden' })).body
    .id
  session = (await host.json('POST', `/api/agents/${agent}/sessions`, { label: 'one' })).body.session_id
  const steps = [{ name: 'one', agent_name: 'trip', prompt: '{{input}}' }]
  workflow = (await host.json('POST', '/api/workflows', { name: 'w', steps })).body.workflow_id
  schedule = (await host.json('POST', '/api/schedules', { agent_id: agent, cron: '0 9 * * *', prompt: 'p' })).body.id
  goal = (await host.json('POST', '/api/goals', { title: 'g', agent_id: agent, due_at: '2026-12-31T18:00:00Z' })).body
    .id
  trigger = (
    await host.json('POST', '/api/triggers', {
      agent_id: agent,
      pattern: { system_keyword: { keyword: 'no such word' } },
    })
  ).body.trigger_id
  await host.json('POST', '/api/mcp/servers', { name: 'resting', command: 'mcp-server', enabled: false })
})
afterAll(() => host[Symbol.asyncDispose]())

interface Resource {
  readonly get: string
  readonly put: readonly [method: string, path: string]
  /** A field that can be changed, with another value. */
  readonly change: Readonly<Record<string, unknown>>
  /** A field that is shown and cannot be changed, with another value. */
  readonly fixed?: Readonly<Record<string, unknown>>
  /** What of the answer to GET is the resource. */
  readonly of?: (body: Json) => unknown
}
const at = (path: string): string =>
  path
    .replace('{agent}', agent)
    .replace('{webhook}', webhook)
    .replace('{event}', event)
    .replace('{session}', session)
    .replace('{workflow}', workflow)
    .replace('{schedule}', schedule)
    .replace('{goal}', goal)
    .replace('{trigger}', trigger)
    .replace('/servers/{name}', '/servers/resting')
/** What `{id}` is in a path that begins so. */
const idOf = (path: string): string =>
  [
    ['/api/webhooks/events', event],
    ['/api/webhooks', webhook],
    ['/api/sessions', session],
    ['/api/workflows', workflow],
    ['/api/schedules', schedule],
    ['/api/cron', schedule],
    ['/api/goals', goal],
    ['/api/triggers', trigger],
  ].find(([prefix = '']) => path.startsWith(prefix))?.[1] ?? agent
const resources: readonly Resource[] = [
  {
    get: '/api/agents/{agent}',
    put: ['PATCH', '/api/agents/{agent}'],
    change: { description: 'other' },
    fixed: { mode: 'Stable' },
  },
  {
    get: '/api/agents/{agent}',
    put: ['PATCH', '/api/agents/{agent}/config'],
    change: { system_prompt: 'other' },
    fixed: { capabilities: {} },
  },
  {
    get: '/api/agents/{agent}',
    put: ['PUT', '/api/agents/{agent}/update'],
    change: { tags: ['b'] },
    fixed: { id: 'x' },
  },
  {
    get: '/api/agents/{agent}',
    put: ['PATCH', '/api/agents/{agent}/identity'],
    change: { color: '#445566' },
    of: ({ identity }) => identity,
  },
  {
    get: '/api/agents/{agent}/tools',
    put: ['PUT', '/api/agents/{agent}/tools'],
    change: { tool_blocklist: ['x_*'] },
  },
  {
    get: '/api/agents/{agent}/skills',
    put: ['PUT', '/api/agents/{agent}/skills'],
    change: { mode: 'none' },
    fixed: { assigned: ['x'] },
  },
  {
    get: '/api/agents/{agent}/mcp_servers',
    put: ['PUT', '/api/agents/{agent}/mcp_servers'],
    change: { mode: 'none' },
    fixed: { assigned: ['x'] },
  },
  { get: '/api/budget', put: ['PUT', '/api/budget'], change: { daily_limit_usd: 7 } },
  {
    get: '/api/budget/agents/{agent}',
    put: ['PUT', '/api/budget/agents/{agent}'],
    change: { monthly_limit_usd: 7 },
    fixed: { agent_name: 'x' },
  },
  {
    get: '/api/webhooks/{webhook}',
    put: ['PUT', '/api/webhooks/{webhook}'],
    change: { enabled: false },
    fixed: { id: 'x' },
  },
  {
    get: '/api/webhooks/events',
    put: ['PUT', '/api/webhooks/events/{event}'],
    change: { enabled: false },
    fixed: { created_at: 'x' },
    of: ([first]) => first,
  },
  {
    get: '/api/config/provider',
    put: ['PUT', '/api/config/provider'],
    change: { model: 'gpt-4.1' },
    fixed: { auth_status: 'missing' },
  },
  {
    get: '/api/sessions/{session}',
    put: ['PUT', '/api/sessions/{session}/label'],
    change: { label: 'two' },
    of: ({ label }) => ({ label }),
  },
  {
    get: '/api/workflows/{workflow}',
    put: ['PUT', '/api/workflows/{workflow}'],
    change: { description: 'other' },
  },
  {
    get: '/api/schedules/{schedule}',
    put: ['PUT', '/api/schedules/{schedule}'],
    change: { prompt: 'other' },
  },
  {
    get: '/api/cron/jobs/{schedule}',
    put: ['PUT', '/api/cron/jobs/{schedule}'],
    change: { name: 'other' },
  },
  {
    get: '/api/goals/{goal}',
    put: ['PUT', '/api/goals/{goal}'],
    change: { progress: 7 },
  },
  {
    get: '/api/triggers/{trigger}',
    put: ['PUT', '/api/triggers/{trigger}'],
    change: { max_fires: 7 },
  },
  {
    get: '/api/mcp/servers/resting',
    put: ['PUT', '/api/mcp/servers/{name}'],
    change: { timeout_secs: 7 },
    fixed: { origin: 'file' },
  },
]

describe.each(resources.map((one) => [`${one.put[0]} ${one.put[1]}`, one] as const))('%s', (_, resource) => {
  const { change, fixed, of = (body: unknown) => body } = resource
  const [method, path] = resource.put
  const read = async (): Promise<Json> => of((await host.json('GET', at(resource.get))).body)
  /** Without what moves by itself. */
  const steady = ({ updated_at: _at, ...rest }: Json): unknown => rest

  it('takes back what GET shows', async () => {
    const shown = await read()
    const answer = await host.json(method, at(path), shown)
    expect([answer.status, answer.body]).toEqual([200, answer.body])
    expect(steady(await read())).toEqual(steady(shown))
  })
  it('changes what was changed in it', async () => {
    const shown = await read()
    const { status, body } = await host.json(method, at(path), { ...shown, ...change })
    expect([status, body]).toEqual([200, body])
    expect(await read()).toMatchObject(change)
  })
  it('refuses what it cannot change and what it does not know', async () => {
    const shown = await read()
    const wrong = [{ no_such_field: 1 }, { ...shown, no_such_field: 1 }, ...(fixed ? [{ ...shown, ...fixed }] : [])]
    for (const body of wrong) {
      const answer = await host.json(method, at(path), body)
      expect(answer.status).toBe(400)
      expect(answer.body.error.message).toMatch(new RegExp(`^(no_such_field|${Object.keys(fixed ?? {}).join()}): `))
    }
    expect(steady(await read())).toEqual(steady(shown))
  })
})

it('every PUT and PATCH of JSON refuses a field it does not know', async () => {
  const { paths } = (await host.json('GET', '/api/openapi.json')).body
  const tried: string[] = []
  for (const [path, methods] of Object.entries<Record<string, Json>>(paths))
    for (const method of ['put', 'patch']) {
      const content = methods[method]?.requestBody?.content
      if (content?.['application/json'] === undefined || path.includes('/files/')) continue
      const target = path
        .replace('{key}', 'k')
        .replace('{id}', idOf(path))
        .replace('{hand_id}', 'wiki')
        .replace('{memory_id}', goal)
        .replace('{name}', path.includes('/skills/') ? 'github' : path.includes('/mcp/') ? 'resting' : 'openai')
      const { status, body } = await host.json(method.toUpperCase(), target, { no_such_field: 1 })
      tried.push(`${method} ${path}`)
      expect([path, status]).toEqual([path, 400])
      expect(JSON.stringify(body)).toMatch(/no_such_field|value: is missing/)
    }
  expect(tried.length).toBeGreaterThan(12)
})

describe('PATCH /api/agents/{id}', () => {
  const patch = (body: unknown, path = '') => host.json('PATCH', `/api/agents/${agent}${path}`, body)
  const model = async () => (await host.json('GET', `/api/agents/${agent}`)).body.model

  it('takes the model as GET shows it', async () => {
    expect((await patch({ model: { provider: 'openai', model: 'gpt-4.1', temperature: 0.2 } })).status).toBe(200)
    expect(await model()).toMatchObject({ provider: 'openai', model: 'gpt-4.1', temperature: 0.2 })
    expect((await patch({ model: { ...(await model()), max_tokens: 100 } })).status).toBe(200)
    expect(await model()).toMatchObject({ provider: 'openai', model: 'gpt-4.1', temperature: 0.2, max_tokens: 100 })
  })
  it('removes an address that is sent as null, and keeps the one that is not named', async () => {
    expect((await patch({ model: { base_url: 'https://models.example/v1' } })).status).toBe(200)
    expect((await patch({ model: { temperature: 0.3 } })).status).toBe(200)
    expect(await model()).toMatchObject({ base_url: 'https://models.example/v1' })
    expect((await patch({ model: { base_url: null } })).status).toBe(200)
    expect(await model()).toMatchObject({ base_url: null })
  })
  it('refuses a field inside of it that nobody knows, and two values of one', async () => {
    expect((await patch({ model: { modle: 'x' } })).body.error.message).toMatch(/^model\.modle: /)
    expect((await patch({ temperature: 1, model: { temperature: 0.5 } })).body.error.message).toMatch(/^temperature: /)
    expect((await patch({ fallback_models: [{ model: 'x', modle: 'y' }] })).body.error.message).toMatch(
      /^fallback_models\.0\.modle: /,
    )
  })
  it('what default stands for is not made the choice of the agent by sending it back', async () => {
    const { body } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "trip-default"\n' })
    const shown = (await host.json('GET', `/api/agents/${body.agent_id}`)).body
    expect(shown.model.provider).toBe('openai')
    const answer = await host.json('PATCH', `/api/agents/${body.agent_id}`, { ...shown, description: 'new' })
    expect(answer.status).toBe(200)
    const after = (await host.json('GET', `/api/agents/${body.agent_id}`)).body
    expect([after.description, after.manifest_toml.includes('openai')]).toEqual(['new', false])
  })
  it.each(['', '/config', '/identity'])('%s {} changes nothing', async (path) => {
    expect((await patch({}, path)).status).toBe(200)
  })
})
