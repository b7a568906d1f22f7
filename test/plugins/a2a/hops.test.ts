import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { rpc } from './stage.ts'

// Two daemons whose agents ask each other: the embedded model does what a message says.

const HOPS = 'urn:svc:a2a:hop-count'
let hosts: readonly [TestHost, TestHost]
let asker: string
const start = () =>
  startHost({
    memory: true,
    config: {
      default_provider: 'builtin',
      default_model: 'offline',
      outbound: { allow: ['127.0.0.1'] },
      plugins: { approvals: { policy: 'never' } },
      a2a: { max_hops: 2, poll_min_ms: 10, poll_max_ms: 10 },
    },
  })
const json = (host: TestHost, method: string, path: string, body?: unknown): Promise<{ status: number; body: Json }> =>
  host.json(method, path, body)
beforeAll(async () => {
  hosts = await Promise.all([start(), start()])
  const capabilities = 'tools = ["*"]\nnetwork = ["127.0.0.1"]\nagent_message = ["*"]'
  for (const host of hosts)
    for (const name of ['asker', 'helper'])
      await json(host, 'POST', '/api/agents', { manifest_toml: `name = "${name}"\n[capabilities]\n${capabilities}` })
  const { body: agents } = await json(hosts[0], 'GET', '/api/agents')
  asker = agents.find(({ name }: Json) => name === 'asker').id
  for (const [host, other] of [hosts, [hosts[1], hosts[0]] as const]) {
    await json(host, 'POST', '/api/a2a/discover', { url: `${other.url}/a2a/agents/asker`, name: 'neighbour' })
    expect(await json(host, 'POST', '/api/a2a/agents/neighbour/approve', {})).toMatchObject({ status: 200 })
  }
})
afterAll(() => Promise.all(hosts.map((host) => host[Symbol.asyncDispose]())))

const ask = (message: string): string => `use a2a_send ${JSON.stringify({ agent_name: 'neighbour', message })}`
const relay = (message: string): string => `use agent_send ${JSON.stringify({ agent_id: 'helper', message })}`
const say = async (message: string): Promise<string> =>
  (await json(hosts[0], 'POST', `/api/agents/${asker}/message`, { message })).body.response
const send = async (metadata: object) =>
  (
    await rpc(hosts[0], {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'echo hi' }], metadata } },
    })
  ).body

it('agents that ask each other in a circle end at max_hops', async () => {
  expect(await say(ask(ask('echo back again')))).toContain('back again')
  expect(await say(ask(ask(ask('echo once more'))))).toContain('came through 3 daemons, a2a.max_hops allows 2')
})
it('also when another agent is asked in between', async () => {
  expect(await say(ask(relay(ask('echo back again'))))).toContain('back again')
  expect(await say(ask(relay(ask(relay(ask('echo once more'))))))).toContain('a2a.max_hops allows 2')
})
it('also when the next one is asked by a task', async () => {
  const post = `use task_post ${JSON.stringify({ title: ask('echo on'), assigned_to: 'helper', description: '' })}`
  expect(await say(ask(ask(post)))).toContain('task_id')
  await eventually(async () => {
    const { tasks } = (await json(hosts[0], 'GET', '/api/tasks')).body
    expect(tasks).toMatchObject([{ result: expect.stringContaining('a2a.max_hops allows 2') }])
  })
})
it('also when the next one is asked by a schedule', async () => {
  const make = `use schedule_create ${JSON.stringify({ description: ask('echo on'), schedule: 'daily at 9' })}`
  expect(await say(ask(ask(make)))).toContain('next_run')
  const { schedules } = (await json(hosts[0], 'GET', `/api/schedules?agent_id=${asker}`)).body
  const ran = await json(hosts[0], 'POST', `/api/schedules/${schedules[0].id}/run`)
  expect(JSON.stringify(ran.body)).toContain('a2a.max_hops allows 2')
})
it('also when the next one is asked by a trigger', async () => {
  const pattern = { content_match: { substring: 'go-on' } }
  const make = `use trigger_create ${JSON.stringify({ pattern, prompt_template: ask('echo on'), max_fires: 1 })}`
  expect(await say(ask(ask(make)))).toContain('enabled')
  const [trigger] = (await json(hosts[0], 'GET', '/api/triggers')).body as unknown as Json[]
  await say(`use event_publish ${JSON.stringify({ event_type: 'go-on', payload: {} })}`)
  await eventually(async () => {
    const { firings } = (await json(hosts[0], 'GET', `/api/triggers/${trigger!.id}/history`)).body
    expect(firings).toMatchObject([{ result: expect.stringContaining('a2a.max_hops allows 2') }])
  })
})
it('a message that came too far is refused by whoever gets it, with an error of the protocol', async () => {
  expect((await send({ [HOPS]: 3 })).error).toMatchObject({
    code: -32004,
    message: expect.stringContaining('max_hops'),
  })
  expect((await send({ [HOPS]: -1 })).error).toMatchObject({ code: -32602, message: expect.stringContaining(HOPS) })
  expect((await send({ [HOPS]: 2 })).result.task.status.state).toBe('TASK_STATE_COMPLETED')
  const row = { message: { parts: [{ text: 'echo hi' }], metadata: { [HOPS]: 3 } } }
  expect((await json(hosts[0], 'POST', '/a2a/tasks/send', row)).status).toBe(409)
})
it('cards name the extension', async () => {
  const headers = { 'a2a-version': '1.0' }
  for (const init of [{ headers }, {}]) {
    const card = (await (await hosts[0].fetch('/.well-known/agent-card.json', init)).json()) as Json
    expect(card.capabilities.extensions).toMatchObject([{ uri: HOPS }])
  }
})
