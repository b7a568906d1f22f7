import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { handPlugins, startHands, writeHand } from './stage.ts'

/** Three agents; the second is the coordinator. */
const several = (id: string, more = ''): string => `
id = "${id}"
name = "Paper"
description = "Writes a paper"
tools = ["kv_set"]

[[settings]]
key = "subject"
label = "Subject"
setting_type = "text"

[agents.writer]
description = "writes what it is told"
system_prompt = "You write."
tools = ["file_write"]

[agents.chief]
coordinator = true
system_prompt = "You are the chief."
heartbeat_interval_secs = 600
${more}
[agents.critic]
invoke_hint = "reads a draft and says what is wrong"
tools = []
[agents.critic.model]
system_prompt = "You criticise."
temperature = 0.1

[[dashboard.metrics]]
label = "Papers"
memory_key = "papers"
`

let test: PluginTest
beforeAll(async () => {
  test = await startHands({
    database: 'file',
    builtIns: [...handPlugins, 'delegation', 'templates'],
    config: { approvals: { policy: 'never' } },
  })
  await writeHand(test, 'paper', several('paper'))
})
afterAll(() => test?.[Symbol.asyncDispose]())

const call = async (method: string, path: string, body?: unknown): Promise<Json> =>
  (await test.request<Json>(method, path, body)).body
const agents = async (): Promise<string[]> => (await call('GET', '/api/agents')).map(({ name }: Json) => name)
const active = async (): Promise<Json> => (await call('GET', '/api/hands/active')).instances

it('makes an agent for each role, wakes the coordinator, which asks the others, and ends all together', async () => {
  const made = await call('POST', '/api/hands/paper/activate', { config: { subject: 'mud' } })
  expect(made).toMatchObject({
    status: 'Active',
    agent_name: 'paper-chief',
    agents: [
      { role: 'chief', agent_id: made.agent_id, agent_name: 'paper-chief', coordinator: true },
      { role: 'writer', agent_name: 'paper-writer', coordinator: false },
      { role: 'critic', agent_name: 'paper-critic', coordinator: false },
    ],
  })
  const [chief, writer, critic] = await Promise.all(
    made.agents.map((one: Json) => call('GET', `/api/agents/${one.agent_id}`)),
  )
  // It grants the others no more than it has itself.
  expect(chief.capabilities).toMatchObject({
    tools: ['kv_set', 'file_write', 'agent_send'],
    agent_message: ['paper-writer', 'paper-critic'],
  })
  expect(writer.capabilities).toMatchObject({ tools: ['file_write'], agent_message: [] })
  expect([critic.capabilities.tools, critic.system_prompt]).toEqual([[], 'You criticise.'])
  expect((await call('GET', '/api/schedules')).total ?? (await call('GET', '/api/schedules')).schedules.length).toBe(1)

  test.model.requests.length = 0
  test.model.answer(
    { calls: [{ tool: 'agent_send', args: { agent_id: 'paper-writer', message: 'Write of mud.' } }] },
    { calls: [{ tool: 'file_write', args: { path: 'mud.md', content: 'Mud.' } }] },
    'Mud is written.',
    'done',
  )
  expect(await call('POST', `/api/schedules/${made.schedule_id}/run`)).toMatchObject({ status: 'completed' })
  const [first, second] = test.model.requests
  expect(first?.system).toContain('- paper-critic: reads a draft and says what is wrong')
  expect(first?.system).toContain('- paper-writer: writes what it is told')
  expect(first?.system).toContain('- Subject (subject): mud')
  expect(second?.system).toContain('You write.')
  expect(second?.system).not.toContain('mud')
  expect(test.model.requests).toHaveLength(4)

  const change = (what: string) => call('POST', `/api/hands/instances/${made.instance_id}/${what}`)
  await change('pause')
  expect(await active()).toMatchObject([{ status: 'Paused', next_run: null }])
  await test.restart()
  expect(await active()).toMatchObject([{ status: 'Paused', agents: made.agents }])
  await change('resume')
  // One that somebody removed is missed, and made anew.
  await call('DELETE', `/api/agents/${made.agents[1].agent_id}`)
  expect(await active()).toMatchObject([
    { status: 'Error: the agent of its role "writer" is gone; resume makes it anew' },
  ])
  await change('resume')
  expect(await active()).toMatchObject([{ status: 'Active', agents: [{}, { agent_name: 'paper-writer' }, {}] }])

  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
  expect([await active(), (await agents()).filter((name) => name.startsWith('paper-'))]).toEqual([[], []])
})

it('ends with its coordinator, several instances have agents of their own, and a refused one leaves none', async () => {
  const one = await call('POST', '/api/hands/paper/activate')
  const two = await call('POST', '/api/hands/paper/activate', { instance_name: 'north' })
  expect(two.agents.map((each: Json) => each.agent_name)).toEqual([
    'paper-north-chief',
    'paper-north-writer',
    'paper-north-critic',
  ])
  await call('DELETE', `/api/agents/${one.agent_id}`)
  await eventually(async () =>
    expect((await agents()).filter((name) => name.startsWith('paper-')).toSorted()).toEqual([
      'paper-north-chief',
      'paper-north-critic',
      'paper-north-writer',
    ]),
  )
  await call('DELETE', `/api/hands/instances/${two.instance_id}`)
  const taken = await test.spawn('paper-critic')
  const refused = await test.request<Json>('POST', '/api/hands/paper/activate')
  expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('paper-critic')])
  expect((await agents()).filter((name) => name.startsWith('paper-'))).toEqual(['paper-critic'])
  expect(await active()).toEqual([])
  await call('DELETE', `/api/agents/${taken}`)
})

it('a role may take its prompt from a template', async () => {
  await writeHand(test, 'based', several('based').replace('system_prompt = "You write."', 'base = "writer"'))
  const [{ manifest_toml: template }, made] = [
    await call('GET', '/api/templates/writer'),
    await call('POST', '/api/hands/based/activate'),
  ]
  const writer = await call('GET', `/api/agents/${made.agents[1].agent_id}`)
  expect(template).toContain(writer.system_prompt.slice(0, 200))
  expect(writer.capabilities.tools).toEqual(['file_write'])
  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
  await writeHand(test, 'based', several('based').replace('system_prompt = "You write."', 'base = "writter"'))
  const refused = await test.request<Json>('POST', '/api/hands/based/activate')
  expect([refused.status, refused.body.error.message]).toEqual([
    400,
    expect.stringContaining('agents.writer.base: there is no template "writter"; did you mean "writer"?'),
  ])
})

it.each([
  [
    'two coordinators',
    /HAND.toml:\d+: agents.critic.coordinator: "chief" is the coordinator already/,
    (toml: string) => toml.replace('[agents.critic]', '[agents.critic]\ncoordinator = true'),
  ],
  [
    'one agent beside them',
    /HAND.toml:\d+: agents: write one \[agent\] or several \[agents.<role>\]/,
    (toml: string) => `${toml}\n[agent]\nname = "x"\nsystem_prompt = "x"\n`,
  ],
  [
    'no prompt',
    /HAND.toml:12: agents.writer.system_prompt: is missing/,
    (toml: string) => toml.replace('system_prompt = "You write."', ''),
  ],
  [
    'a schedule of another',
    /HAND.toml:\d+: agents.writer.heartbeat_interval_secs: the coordinator wakes it/,
    (toml: string) => toml.replace('tools = ["file_write"]', 'heartbeat_interval_secs = 600'),
  ],
  [
    'a name that is none',
    /agents.Chief!: must be/,
    (toml: string) => toml.replace('[agents.writer]', '[agents."Chief!"]'),
  ],
])('is refused with line and key: %s', async (_, error, change) => {
  const answer = await test.request<Json>('POST', '/api/hands/install', { toml_content: change(several('bad')) })
  expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringMatching(error)])
})
