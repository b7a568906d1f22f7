import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { openSession, rpc, send } from './stage.ts'

// Two daemons that are MCP servers of each other: the embedded model does what a message says.

let hosts: readonly [TestHost, TestHost]
let asker: string
const start = () =>
  startHost({
    memory: true,
    plugins: [
      ...turnPlugins,
      'providers/builtin',
      'approvals',
      'delegation',
      'mcp',
      'mcp-server',
      'queue',
      'workflows',
    ],
    config: {
      default_provider: 'builtin',
      default_model: 'offline',
      outbound: { allow: ['127.0.0.1'] },
      plugins: { approvals: { policy: 'never' }, 'mcp-server': { agent: 'asker', max_hops: 2 } },
    },
  })
beforeAll(async () => {
  hosts = await Promise.all([start(), start()])
  const capabilities = 'tools = ["*"]\nnetwork = ["127.0.0.1"]\nagent_message = ["*"]'
  for (const host of hosts)
    for (const name of ['asker', 'helper'])
      await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n[capabilities]\n${capabilities}` })
  asker = (await hosts[0].json<Json>('GET', '/api/agents')).body.find(({ name }: Json) => name === 'asker').id
  for (const [host, other] of [hosts, [hosts[1], hosts[0]] as const]) {
    const server = { name: 'neighbour', transport: 'http', url: `${other.url}/mcp` }
    expect(await host.json('POST', '/api/mcp/servers', server)).toMatchObject({ status: 201 })
  }
})
afterAll(() => Promise.all(hosts.map((host) => host[Symbol.asyncDispose]())))

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const namesOf = ({ body }: { readonly body: Json }): readonly string[] =>
  body.result.tools.map(({ name }: Json) => name)
const ask = (message: string): string => `use mcp_neighbour_svc_agent_asker ${JSON.stringify({ message })}`
const relay = (message: string): string => `use agent_send ${JSON.stringify({ agent_id: 'helper', message })}`
const say = async (message: string): Promise<string> =>
  (await hosts[0].json<Json>('POST', `/api/agents/${asker}/message`, { message })).body.response
const call = async (name: string, args: object, hops: unknown): Promise<Json> =>
  (await send({ host: hosts[0] }, rpc('tools/call', { name, arguments: args, _meta: { 'svc/hops': hops } }))).body

it('a daemon gets no tools that another one has from its own MCP servers, other clients do', async () => {
  const own = 'mcp_neighbour_svc_agent_asker'
  for (const host of hosts) {
    const { body } = await host.json<Json>('POST', '/api/mcp/servers/neighbour/restart', {})
    const seen: readonly string[] = body.tools.map(({ name }: Json) => name)
    expect(seen).toContain(own)
    expect(seen.filter((name) => name.startsWith('mcp_neighbour_mcp_'))).toEqual([])
    expect(namesOf(await send({ host }, rpc('tools/list')))).toContain(own)
    const session = await openSession({ host })
    expect(namesOf(await send({ host }, rpc('tools/list'), session))).toContain(own)
    const modern = async (name: string): Promise<readonly string[]> => {
      const _meta = { ...MODERN, 'io.modelcontextprotocol/clientInfo': { name, version: '1' } }
      const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
      return namesOf(await send({ host }, rpc('tools/list', { _meta }), { headers }))
    }
    expect(await modern('desktop')).toContain(own)
    expect(await modern('svc')).toContain('svc_agent_asker')
    expect(await modern('svc')).not.toContain(own)
  }
})
it('agents that call each other in a circle end at max_hops', async () => {
  expect(await say(ask(ask('echo back again')))).toContain('back again')
  expect(await say(ask(ask(ask('echo once more'))))).toContain('came through 3 daemons, plugins.mcp-server.max_hops')
})
it('also when another agent is asked in between, by a turn or by a client', async () => {
  expect(await say(ask(relay(ask(relay(ask('echo once more'))))))).toContain('plugins.mcp-server.max_hops allows 2')
  const sent = await call('agent_send', { agent_id: 'helper', message: ask('echo once more') }, 2)
  expect(JSON.stringify(sent.result.content)).toContain('plugins.mcp-server.max_hops allows 2')
  const passed = await call('mcp_neighbour_svc_agent_asker', { message: 'echo once more' }, 2)
  expect(JSON.stringify(passed.result.content)).toContain('plugins.mcp-server.max_hops allows 2')
})
const sayOn = { name: 'on', agent: { name: 'asker' }, prompt: ask('echo once more') }
const callOn = {
  ...sayOn,
  type: 'tool',
  with: { tool: 'mcp_neighbour_svc_agent_asker', args: { message: 'echo once more' } },
}
it.each([
  ['a step of an agent', [sayOn]],
  ['a step of a tool', [callOn]],
  ['a workflow inside of a workflow', [{ name: 'inner', type: 'workflow', with: { workflow: 'inner' }, prompt: 'go' }]],
])('a workflow counts on: %s', async (what, steps) => {
  const create = async (name: string, of: unknown) =>
    expect((await hosts[0].json('POST', '/api/workflows', { name, steps: of })).status).toBe(201)
  if (what.startsWith('a workflow')) await create('inner', [callOn])
  const name = what.replaceAll(' ', '_')
  await create(name, steps)
  const run = async (hops: number) => JSON.stringify(await call(`svc_workflow_${name}`, { input: 'go' }, hops))
  expect(await run(2)).toContain('plugins.mcp-server.max_hops allows 2')
  expect(await run(1)).toContain('once more')
})
it.each([
  [3, -32_000, 'plugins.mcp-server.max_hops allows 2'],
  [-1, -32_602, 'hop count must be a whole number'],
  ['1', -32_602, 'hop count must be a whole number'],
])('a call that came through %j daemons is refused with an error of the protocol', async (hops, code, reason) => {
  for (const name of ['svc_agent_asker', 'agent_send'])
    expect((await call(name, { message: 'echo hi' }, hops)).error).toMatchObject({
      code,
      message: expect.stringContaining(reason),
    })
})
