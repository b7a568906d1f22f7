import { fileURLToPath } from 'node:url'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
const contract = fileURLToPath(new URL('../../plugins/agents/contract.ts', import.meta.url))
let host: TestHost
let catalog: string
beforeAll(async () => {
  // A feature that has skills and servers to assign, as later ones will.
  catalog = await mkdtemp(join(tmpdir(), 'svc-test-'))
  await writeFile(
    join(catalog, 'index.ts'),
    `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { AssignablesListed } from ${JSON.stringify(contract)}
const names = { skills: ['research', 'writing'], mcp_servers: ['github'] }
export default definePlugin({
  name: 'catalog-of-test', version: '1.0.0', config: v.object({}),
  setup({ hooks }) { hooks.on(AssignablesListed, (asked) => ({ ...asked, names: [...asked.names, ...names[asked.kind]] })); return {} },
})
`,
  )
  host = await startHost({ plugins: ['audit', 'agents', 'kv', catalog] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(catalog, { recursive: true, force: true })
})

let count = 0
const spawn = async (more = ''): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${count++}"\n${more}` })).body.agent_id

describe('the tools of an agent', () => {
  const get = async (id: string) => (await host.json('GET', `/api/agents/${id}/tools`)).body
  const put = (id: string, body: unknown) => host.json('PUT', `/api/agents/${id}/tools`, body)

  it('are what the manifest grants, less what its lists hold back', async () => {
    const id = await spawn('tool_blocklist = ["kv_delete"]\n[capabilities]\ntools = ["kv_*"]')
    const tools = await get(id)
    expect(tools).toMatchObject({
      tools: ['kv_*'],
      capabilities_tools: ['kv_*'],
      tool_allowlist: [],
      tool_blocklist: ['kv_delete'],
      disabled: false,
    })
    expect(tools.effective).toEqual(expect.arrayContaining(['kv_get', 'kv_set']))
    expect(tools.effective).not.toContain('kv_delete')
  })

  it('are replaced as a list', async () => {
    const id = await spawn('[capabilities]\ntools = ["*"]')
    expect((await put(id, { tools: ['kv_get'] })).body).toMatchObject({
      status: 'ok',
      tools: ['kv_get'],
      effective: ['kv_get'],
    })
    expect((await host.json('GET', `/api/agents/${id}`)).body.capabilities.tools).toEqual(['kv_get'])
    expect((await put(id, { tools: [] })).body).toMatchObject({ tools: [], effective: [] })
  })

  it('are narrowed by an allowlist, then by a blocklist', async () => {
    const id = await spawn('[capabilities]\ntools = ["*"]')
    expect((await put(id, { tool_allowlist: ['kv_get', 'kv_set'], tool_blocklist: ['kv_set'] })).body).toMatchObject({
      tools: ['*'],
      effective: ['kv_get'],
    })
    expect((await put(id, { disabled: true })).body).toMatchObject({ disabled: true, effective: [] })
    expect(
      (await put(id, { capabilities_tools: ['nothing-yet'], disabled: false, tool_allowlist: [], tool_blocklist: [] }))
        .body,
    ).toMatchObject({ tools: ['nothing-yet'], effective: [] })
  })

  it.each([
    ['nothing', {}],
    ['text', { tools: 'kv_get' }],
    ['null', { tools: null }],
    ['numbers', { tools: [1] }],
    ['an empty name', { tools: [''] }],
    ['a long name', { tools: ['x'.repeat(257)] }],
    ['a name twice', { tools: ['a', 'a'] }],
    ['control characters', { tool_blocklist: ['a\nb'] }],
    ['too many', { tools: Array.from({ length: 1001 }, (_, index) => `t${index}`) }],
    ['two lists that disagree', { tools: ['a'], capabilities_tools: ['b'] }],
    ['text for disabled', { disabled: 'yes' }],
    ['a list', []],
  ])('%s is 400 and changes nothing', async (_, body) => {
    const id = await spawn('[capabilities]\ntools = ["kv_get"]')
    const before = await get(id)
    expect((await put(id, body)).status).toBe(400)
    expect(await get(id)).toEqual(before)
  })
})

describe.each([
  ['skills', 'research', 'writing'],
  ['mcp_servers', 'github', 'github'],
] as const)('the %s of an agent', (kind, known, last) => {
  const get = async (id: string) => (await host.json('GET', `/api/agents/${id}/${kind}`)).body
  const put = (id: string, body: unknown) => host.json('PUT', `/api/agents/${id}/${kind}`, body)
  const available = kind === 'skills' ? ['research', 'writing'] : ['github']

  it('are all of them until some are assigned', async () => {
    const id = await spawn()
    expect(await get(id)).toEqual({ [kind]: [], assigned: [], available, mode: 'all' })
    expect(await put(id, { [kind]: [known] })).toMatchObject({
      status: 200,
      body: { status: 'ok', [kind]: [known], assigned: [known], mode: 'allowlist' },
    })
    expect(await get(id)).toMatchObject({ assigned: [known], mode: 'allowlist' })
    expect((await put(id, [last])).body).toMatchObject({ assigned: [last] })
    expect((await put(id, { [kind]: ['*'] })).body).toMatchObject({ assigned: [], mode: 'all' })
    expect((await put(id, { mode: 'none' })).body).toMatchObject({ mode: 'none' })
    expect((await put(id, { [kind]: [] })).body).toMatchObject({ assigned: [], mode: 'all' })
  })

  it('an unknown name is 400 and says what there is', async () => {
    const id = await spawn()
    const { status, body } = await put(id, { [kind]: [known, 'none-of-that'] })
    expect([status, body.error.details]).toEqual([400, { unknown: 'none-of-that', available }])
    expect((await get(id)).mode).toBe('all')
  })

  it.each([
    ['nothing', {}],
    ['text', { [kind]: 'x' }],
    ['null', { [kind]: null }],
    ['numbers', [1]],
    ['an unknown mode', { mode: 'some' }],
    ['an allowlist of nothing', { mode: 'allowlist', [kind]: [] }],
    ['all with names', { mode: 'all', [kind]: [known] }],
  ])('%s is 400', async (_, body) => {
    const id = await spawn()
    expect((await put(id, body)).status).toBe(400)
    expect((await get(id)).mode).toBe('all')
  })
})

it('without a catalogue nothing can be assigned, and the list says so', async () => {
  await using bare = await startHost({ plugins: ['audit', 'agents'] })
  const { agent_id: id } = (
    await bare.json('POST', '/api/agents', { manifest_toml: 'name = "bare"\nskills = ["from-manifest"]' })
  ).body
  expect((await bare.json('GET', `/api/agents/${id}/skills`)).body).toEqual({
    skills: ['from-manifest'],
    assigned: ['from-manifest'],
    available: [],
    mode: 'allowlist',
  })
  expect((await bare.json('PUT', `/api/agents/${id}/skills`, { skills: ['x'] })).body.error.message).toContain(
    'there are none',
  )
  expect((await bare.json('PUT', `/api/agents/${id}/mcp_servers`, { mcp_servers: ['x'] })).status).toBe(400)
})

it('Stable freezes the skills of the moment', async () => {
  const id = await spawn()
  await host.json('PUT', `/api/agents/${id}/mode`, { mode: 'Stable' })
  expect((await host.json('GET', `/api/agents/${id}/skills`)).body).toMatchObject({
    assigned: ['research', 'writing'],
    mode: 'allowlist',
  })
  expect((await host.json('PUT', `/api/agents/${id}/skills`, { skills: ['research'] })).status).toBe(409)
  await host.json('PUT', `/api/agents/${id}/mode`, { mode: 'Normal' })
  expect((await host.json('GET', `/api/agents/${id}/skills`)).body).toMatchObject({ assigned: [], mode: 'all' })
})

it.each(['tools', 'skills', 'mcp_servers'])('%s of an unknown agent is 404, of no agent 400', async (kind) => {
  for (const [id, status] of [
    [nobody, 404],
    ['x', 400],
  ] as const) {
    expect((await host.json('GET', `/api/agents/${id}/${kind}`)).status).toBe(status)
    expect((await host.json('PUT', `/api/agents/${id}/${kind}`, { [kind]: [] })).status).toBe(status)
  }
})

it('PATCH assigns servers and skills that there are, with whatever else it changes, or changes nothing', async () => {
  const id = await spawn()
  expect(
    (
      await host.json('PATCH', `/api/agents/${id}`, {
        description: 'assigned',
        mcp_servers: ['github'],
        skills: ['writing'],
      })
    ).status,
  ).toBe(200)
  expect((await host.json('GET', `/api/agents/${id}`)).body).toMatchObject({
    description: 'assigned',
    mcp_servers: ['github'],
    mcp_servers_mode: 'allowlist',
    skills: ['writing'],
  })
  const refused = await host.json('PATCH', `/api/agents/${id}`, { description: 'other', mcp_servers: ['nowhere'] })
  expect([refused.status, refused.body.error.message]).toEqual([
    400,
    expect.stringContaining('mcp_servers: there is no "nowhere"'),
  ])
  expect((await host.json('GET', `/api/agents/${id}`)).body.description).toBe('assigned')
  await host.json('PATCH', `/api/agents/${id}`, { mcp_servers: ['*'] })
  expect((await host.json('GET', `/api/agents/${id}/mcp_servers`)).body).toMatchObject({ assigned: [], mode: 'all' })
})
