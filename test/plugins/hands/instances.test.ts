import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { auditDetails, callTool, callToolJson } from '../plugin-test.ts'
import { definition, startHands, writeHand } from './stage.ts'

let test: PluginTest
beforeAll(async () => {
  test = await startHands({ config: { plugins: { hands: { max_instances: 6 } }, approvals: { policy: 'never' } } })
  for (const id of ['tides', 'waves', 'spare']) await writeHand(test, id)
})
afterAll(() => test?.[Symbol.asyncDispose]())

const call = async (method: string, path: string, body?: unknown) => {
  const { status, body: answer } = await test.request<Json>(method, path, body)
  if (Array.isArray(answer)) return answer as Json
  return status < 300 ? answer : { code: status, error: answer.error?.message ?? JSON.stringify(answer) }
}
const activate = (hand: string, body?: unknown) => call('POST', `/api/hands/${hand}/activate`, body)
/** Runs the schedule of an instance now. */
const run = (instance: Json) => call('POST', `/api/schedules/${instance.schedule_id}/run`)
const statusOf = async (id: string): Promise<Json> => {
  const { instances } = await call('GET', '/api/hands/active')
  return instances.find(({ instance_id }: Json) => instance_id === id)
}

it('makes an agent with what the definition grants and nothing else, wakes it, and shows what it recorded', async () => {
  const made = await activate('tides', { config: { harbour: 'husum', loud: true } })
  expect(made).toMatchObject({
    status: 'Active',
    hand_id: 'tides',
    instance_name: 'default',
    agent_name: 'tides-agent',
    config: { harbour: 'husum', loud: true, token: '' },
    next_run: expect.stringMatching(/^\d{4}-/),
  })
  const agent = await call('GET', `/api/agents/${made.agent_id}`)
  expect(agent).toMatchObject({
    capabilities: {
      tools: ['kv_get', 'kv_set', 'kv_list'],
      network: [],
      shell: [],
      agent_message: [],
      agent_spawn: false,
    },
    skills_mode: 'none',
    mcp_servers_mode: 'none',
    system_prompt: 'You watch the tides.',
  })
  test.model.requests.length = 0
  test.model.answer(
    { calls: [{ tool: 'kv_set', args: { key: 'tides.height', value: '3.5' } }] },
    { calls: [{ tool: 'kv_set', args: { key: 'tides.said', value: 'high' } }] },
    'done',
  )
  expect(await run(made)).toMatchObject({ status: 'completed' })
  const [first] = test.model.requests
  expect(first?.tools?.map(({ name }) => name).toSorted()).toEqual(['kv_get', 'kv_list', 'kv_set'])
  expect(first?.system).toContain('You watch the tides.\n\n## Settings')
  expect(first?.system).toContain('- Harbour (harbour): husum\n- Loud (loud): on\n- Token (token): not set')
  expect(await call('GET', `/api/hands/instances/${made.instance_id}/stats`)).toMatchObject({
    instance_id: made.instance_id,
    metrics: { Height: { value: 3.5, format: 'number' }, Said: { value: 'high', format: 'text' } },
  })
  expect(await call('GET', `/api/hands/instances/${made.instance_id}/browser`)).toEqual({ active: false })
  const saved = await call('PUT', '/api/hands/tides/settings', { harbour: 'hamburg' })
  expect(saved).toMatchObject({
    status: 'ok',
    instance_id: made.instance_id,
    config: { harbour: 'hamburg', loud: true },
  })
  await run(made)
  expect(test.model.requests.at(-1)?.system).toContain('- Harbour (harbour): hamburg (Hamburg)')
  expect(await call('GET', '/api/hands/tides/settings')).toMatchObject({
    current_values: { harbour: 'hamburg', loud: true, token: '' },
    settings: [{ key: 'harbour', options: [{ value: 'hamburg', available: true }, { value: 'husum' }] }, {}, {}],
  })
  expect(await call('DELETE', `/api/hands/instances/${made.instance_id}`)).toEqual({
    status: 'deactivated',
    instance_id: made.instance_id,
  })
  expect((await test.request('GET', `/api/agents/${made.agent_id}`)).status).toBe(404)
  expect((await test.request('GET', `/api/hands/instances/${made.instance_id}/stats`)).status).toBe(404)
  expect(await auditDetails(test, 'hand_changed')).toEqual([
    'hand "tides", instance "default", deactivated',
    'hand "tides", instance "default": settings harbour changed',
    'hand "tides" activated as "default"',
  ])
})

it('warns of a setting that it needs, before it runs and until it has one', async () => {
  const needy = definition('needy').replace('env_var = "TIDES_TOKEN"', 'required = true')
  await writeHand(
    test,
    'needy',
    `${needy}\n[[requires]]\nkey = "x"\nlabel = "X"\nrequirement_type = "binary"
check_value = "no-such-program"\noptional = true\n`,
  )
  expect((await call('GET', '/api/hands/needy')).settings.at(-1)).toMatchObject({ key: 'token', required: true })
  const made = await activate('needy')
  expect(made).toMatchObject({ status: 'Active', lacks: ['the setting "token" (Token)', 'X'] })
  test.model.requests.length = 0
  test.model.answer('Nothing to do.')
  await run(made)
  expect(test.model.requests[0]?.system).toContain('- Token (token): not set, and needed')
  await call('PUT', '/api/hands/needy/settings', { token: 'high' })
  expect((await statusOf(made.instance_id)).lacks).toEqual(['X'])
  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
})

it('a paused hand is not woken, and goes on when it is resumed', async () => {
  const { instance_id: id, schedule_id: schedule } = await activate('tides')
  const change = (what: string) => test.request<Json>('POST', `/api/hands/instances/${id}/${what}`)
  expect(await change('resume')).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('not paused') } },
  })
  expect((await change('pause')).body).toEqual({ status: 'paused', instance_id: id })
  expect(await change('pause')).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('paused already') } },
  })
  expect(await statusOf(id)).toMatchObject({ status: 'Paused', next_run: null })
  expect(await call('GET', `/api/schedules/${schedule}`)).toMatchObject({ enabled: false })
  expect((await change('resume')).body).toEqual({ status: 'resumed', instance_id: id })
  expect(await statusOf(id)).toMatchObject({ status: 'Active', next_run: expect.any(String) })
  expect(await test.request('POST', `/api/hands/instances/${crypto.randomUUID()}/pause`)).toMatchObject({ status: 400 })
  expect(await test.request('POST', '/api/hands/instances/none/pause')).toMatchObject({ status: 400 })
  await call('DELETE', `/api/hands/instances/${id}`)
})

it('says why a run failed until one does not', async () => {
  const made = await activate('tides')
  test.model.answer(
    { fails: new Error('no model') },
    { fails: new Error('no model') },
    { fails: new Error('no model') },
  )
  await run(made)
  const failed = await statusOf(made.instance_id)
  expect(failed.status).toMatch(/^Error: \S/)
  test.model.requests.length = 0
  await eventually(async () => {
    test.model.answer('fine')
    await run(made)
    expect((await statusOf(made.instance_id)).status).toBe('Active')
  })
  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
})

it('an instance ends with its agent, and a clone of the agent is none', async () => {
  const made = await activate('tides')
  const clone = await call('POST', `/api/agents/${made.agent_id}/clone`, {})
  expect((await call('GET', '/api/hands/active')).total).toBe(1)
  expect(await call('DELETE', `/api/agents/${clone.agent_id ?? clone.id}`)).toMatchObject({ status: 'killed' })
  expect((await call('GET', '/api/hands/active')).total).toBe(1)
  expect(await call('DELETE', `/api/agents/${made.agent_id}`)).toMatchObject({ status: 'killed' })
  expect(await call('GET', '/api/hands/active')).toMatchObject({ instances: [], total: 0 })
})

describe('several instances', () => {
  it('have names of their own, and settings name one of them', async () => {
    const one = await activate('tides')
    expect(await activate('tides')).toMatchObject({
      code: 400,
      error: expect.stringContaining('active as "default" already; give another instance_name'),
    })
    const two = await activate('tides', { instance_name: 'north sea' })
    expect(two.agent_name).toBe('tides-agent-north sea')
    expect(await call('PUT', '/api/hands/tides/settings?instance=north%20sea', { loud: 'true' })).toMatchObject({
      instance_id: two.instance_id,
    })
    expect((await statusOf(one.instance_id)).config.loud).toBe(false)
    expect(await call('PUT', '/api/hands/tides/settings?instance=south', {})).toMatchObject({ code: 404 })
    for (const { instance_id: id } of [one, two]) await call('DELETE', `/api/hands/instances/${id}`)
  })

  it('are limited in number, and a refused one leaves no agent', async () => {
    const made: Json[] = []
    for (let at = 0; at < 6; at++) made.push(await activate('waves', { instance_name: `n${at}` }))
    const before = (await call('GET', '/api/agents')).length
    expect(await activate('waves', { instance_name: 'n6' })).toMatchObject({
      code: 429,
      error: expect.stringContaining('plugins.hands.max_instances'),
    })
    expect((await call('GET', '/api/agents')).length).toBe(before)
    for (const { instance_id: id } of made) await call('DELETE', `/api/hands/instances/${id}`)
  })

  it('the same key makes one', async () => {
    const headers = { 'idempotency-key': 'one-tide' }
    const first = await test.request<Json>('POST', '/api/hands/tides/activate', {}, headers)
    const again = await test.request<Json>('POST', '/api/hands/tides/activate', {}, headers)
    expect([first.status, again.status, again.body.instance_id]).toEqual([201, 201, first.body.instance_id])
    await call('DELETE', `/api/hands/instances/${first.body.instance_id}`)
  })
})

it.each([
  [{ config: { harbor: 'husum' } }, 'config.harbor: there is no such setting; did you mean "harbour"?'],
  [{ config: { weather: 'fair' } }, 'config.weather: there is no such setting; its settings are '],
  [{ config: { harbour: 'kiel' } }, 'config.harbour: must be one of hamburg, husum'],
  [{ config: { loud: 'maybe' } }, 'config.loud: must be true or false'],
  [{ config: { token: 'two\nlines' } }, 'config.token: must be one line'],
  [{ instance_name: '../x' }, 'instance_name'],
])('refuses to activate with %j', async (body, error) => {
  const answer = await activate('spare', body)
  expect([answer.code, answer.error]).toEqual([400, expect.stringContaining(error)])
})

it('agents list, activate and remove hands of their own, with no right that they lack', async () => {
  const rights = (more: string) => `[capabilities]\ntools = ["hand_*"${more}]\nagent_spawn = true\n`
  const poor = await test.spawn('poor', rights(''))
  expect(await callTool(test, poor, 'hand_activate', { hand_id: 'tides' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('a right that this one has not: capabilities.tools: "kv_get"'),
  })
  const rich = await test.spawn('rich', rights(', "kv_*"'))
  const made = await callToolJson(test, rich, 'hand_activate', { hand_id: 'tides', config: { loud: true } })
  expect(made).toMatchObject({ status: 'Active', config: { loud: true } })
  const list = await callToolJson(test, poor, 'hand_list')
  expect(list.instances).toMatchObject([{ instance_id: made.instance_id }])
  expect(list.hands.map(({ id }: Json) => id)).toContain('researcher')
  const [seenByOthers] = (await callToolJson(test, poor, 'hand_status', { hand_id: 'tides' })).instances
  expect(seenByOthers).toMatchObject({ status: 'Active' })
  expect(seenByOthers).not.toHaveProperty('config')
  expect(seenByOthers).not.toHaveProperty('metrics')
  expect(await callToolJson(test, rich, 'hand_status', { hand_id: 'tides' })).toMatchObject({
    instances: [{ status: 'Active', config: { loud: true }, metrics: { Height: { value: null } } }],
  })
  expect(await callTool(test, poor, 'hand_deactivate', { instance_id: made.instance_id })).toMatchObject({
    failed: true,
  })
  expect(await callTool(test, rich, 'hand_deactivate', { instance_id: made.instance_id })).toMatchObject({
    failed: false,
  })
  expect((await call('GET', '/api/hands/active')).total).toBe(0)
})

it('/hands shows them in a conversation', async () => {
  const made = await activate('tides')
  const agent = await test.spawn('talker')
  const send = async (text: string) => (await call('POST', `/api/agents/${agent}/commands`, { command: text })) as Json
  expect(JSON.stringify(await send('/hands'))).toContain('tides (default): Active')
  expect(JSON.stringify(await send('/hands spare'))).toContain('It is not active.')
  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
})

it('goes on after a reload and a restart', async () => {
  await using own = await startHands({ database: 'file' })
  await writeHand(own, 'tides', definition('tides'), 'Ebb comes after flood.')
  const made = (await own.request<Json>('POST', '/api/hands/tides/activate', { config: { loud: true } })).body
  await own.reload()
  const shown = async () => (await own.request<Json>('GET', '/api/hands/active')).body.instances
  expect(await shown()).toEqual([made])
  await own.request('POST', `/api/hands/instances/${made.instance_id}/pause`)
  await own.restart()
  expect(await shown()).toMatchObject([{ instance_id: made.instance_id, status: 'Paused', config: { loud: true } }])
  expect((await own.request<Json>('GET', `/api/agents/${made.agent_id}`)).body.system_prompt).toBe(
    'You watch the tides.\n\nEbb comes after flood.',
  )
})

it('passes where manifests must be signed when it came with svc, and not when somebody changed it', async () => {
  await using own = await startHands({ database: 'file', config: { manifest_signing: { policy: 'require' } } })
  const { hands } = (await own.request<Json>('GET', '/api/hands')).body
  const { id } = hands.find((hand: Json) => hand.requirements_met === true)
  const made = await own.request<Json>('POST', `/api/hands/${id}/activate`)
  expect(made).toMatchObject({ status: 201, body: { status: 'Active' } })
  await own.restart()
  const agent = `/api/agents/${made.body.agent_id}`
  expect((await own.request<Json>('GET', agent)).body).toMatchObject({ state: 'Running', warnings: [] })
  // It gets no more rights than it came with, from the API or by its row.
  expect(await own.request('PUT', `${agent}/tools`, { capabilities_tools: ['*'] })).toMatchObject({ status: 403 })
  const db = new Sqlite(join(own.home, 'data', 'svc.db'))
  db.prepare('UPDATE agents_agent SET manifest_toml = ? WHERE id = ?').run(
    'name = "wide"\n[capabilities]\ntools = ["*"]\n',
    made.body.agent_id,
  )
  db.close()
  await own.restart()
  expect((await own.request<Json>('GET', agent)).body).toMatchObject({ state: 'Stopped', capabilities: { tools: [] } })
  await writeHand(own, 'tides')
  expect(await own.request<Json>('POST', '/api/hands/tides/activate')).toMatchObject({ status: 403 })
})
