import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fileURLToPath } from 'node:url'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { server, startMcp, untilState, viewOf } from './servers.ts'

const asking = fileURLToPath(new URL('../../fixtures/mcp/asking.mjs', import.meta.url))
const program = (name: string, more: object = {}): object => ({
  name,
  command: process.execPath,
  args: [asking],
  risk: 'read',
  ...more,
})

let test: PluginTest
let agent: string
beforeAll(async () => {
  test = await startMcp(
    [program('ask', { sampling: true }), program('quiet'), server('far', [], { risk: 'read' })],
    { sampling_max_tokens: 10 },
    { plugins: { approvals: { policy: 'never' } } },
    {
      builtIns: [...turnPlugins, 'approvals', 'files'],
    },
  )
  await untilState(test, 'ask', 'connected')
  await untilState(test, 'quiet', 'connected')
  agent = await test.spawn('clerk')
})
afterAll(() => test[Symbol.asyncDispose]())

const get = async (path: string): Promise<Json> => (await test.request<Json>('GET', path)).body
const pending = (): Promise<Json> =>
  eventually(async () => {
    const { approvals } = await get('/api/approvals?status=pending')
    if (approvals.length === 0) throw new Error('nothing waits')
    return approvals[0]
  })
const approve = (id: string, body: object = {}) => test.request<Json>('POST', `/api/approvals/${id}/approve`, body)
/** What the tool told the model. */
async function use(tool: string, ...answers: readonly string[]): Promise<string> {
  await test.say(agent, `use ${tool}`, { calls: [{ tool, args: {} }] }, ...answers, 'done')
  return JSON.stringify(test.model.requests.at(-1)?.turns.at(-1))
}

/** The phases that a follower of the turn hears of. */
async function readPhases(message: string): Promise<readonly Json[]> {
  const answer = await test.fetch(`/api/agents/${agent}/message/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  })
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice(6)) as Json).filter(({ type }) => type === 'phase')
}

describe('a server that asks during a call of a turn', () => {
  it('is answered by a person over the API, with a form', async () => {
    const turn = use('mcp_ask_ask_person')
    const asked = await pending()
    expect(asked).toMatchObject({ agent_id: agent, action_summary: 'Which city?', form: { title: 'For ask' } })
    expect((await approve(asked.id, { content: {} })).status).toBe(400)
    expect((await approve(asked.id, { content: { city: 'Oslo' } })).status).toBe(200)
    expect(await turn).toContain('Oslo')
  })

  it('is waited for in the phase of the turn, for whoever follows it', async () => {
    test.model.answer({ calls: [{ tool: 'mcp_ask_ask_person', args: {} }] }, 'done')
    const told = readPhases('which city?')
    const asked = await pending()
    expect((await approve(asked.id, { content: { city: 'Oslo' } })).status).toBe(200)
    expect(await told).toMatchObject([
      { phase: 'waiting_for_approval', detail: 'The MCP server ask waits for your answer' },
      { phase: 'running_tools', detail: 'mcp_ask_ask_person is running' },
    ])
  })

  it('says how far it is, to whoever follows the turn', async () => {
    test.model.answer({ calls: [{ tool: 'mcp_far_progress', args: {} }] }, 'done')
    const [told] = await readPhases('how far?')
    const detail = 'mcp_far_progress: half of it (1 of 2)'
    expect(told).toMatchObject({ type: 'phase', phase: 'running_tools', detail, progress: 1, total: 2 })
  })

  it('is answered by the model of the agent, whose use counts, and only where the file allows it', async () => {
    const calls = async (): Promise<number> => (await get('/api/usage/summary')).today.requests
    const before = await calls()
    const told = await use('mcp_ask_ask_model', 'forty-two')
    expect(told).toContain('forty-two')
    const sampled = test.model.requests.find(({ turns }) => JSON.stringify(turns).includes('six by seven'))
    expect(sampled).toMatchObject({ maxTokens: 10, tools: [] })
    expect(await calls()).toBe(before + 3)
    expect(await use('mcp_quiet_ask_model')).toContain('refused')
  })

  it('is told the workspace of the agent', async () => {
    expect(await use('mcp_ask_ask_roots')).toMatch(/file:\/\/[^"]*\/workspaces\//)
  })

  it('is heard in its log', async () => {
    await use('mcp_ask_log')
    expect((await get('/api/mcp/servers/ask/log')).log).toContain('the disk is nearly full')
  })
})

it('resources and prompts are tools', async () => {
  const call = async (tool: string, args: object): Promise<string> => (await test.callTool(tool, args)).text
  expect(await call('mcp_ask_list_resources', {})).toContain('notes://today')
  expect(await call('mcp_ask_read_resource', { uri: 'notes://today' })).toBe('buy milk')
  expect(await call('mcp_ask_list_prompts', {})).toContain('greet')
  expect(await call('mcp_ask_get_prompt', { name: 'greet', arguments: { name: 'Ada' } })).toContain('Greet Ada')
})

it('a tool that says something else is disabled, shown, approved and used', async () => {
  const tool = async (): Promise<Json> => (await viewOf(test, 'ask')).tools.find((each: Json) => each.tool === 'rug')
  expect(await tool()).toMatchObject({ usable: true })
  expect((await test.callTool('mcp_ask_rug', {})).text).toBe('read')
  await test.callTool('mcp_ask_change', {})
  await eventually(async () => expect(await tool()).toMatchObject({ usable: false, reason: expect.any(String) }))
  expect((await test.callTool('mcp_ask_rug', {})).text).toMatch(/no tool/)
  const asked = await pending()
  expect(asked.payload.changes).toEqual([
    {
      tool: 'rug',
      before: expect.objectContaining({ description: 'Reads a page.' }),
      after: expect.objectContaining({ description: 'Reads a page and tells its author.' }),
    },
  ])
  expect((await approve(asked.id)).status).toBe(200)
  await eventually(async () => expect(await tool()).toMatchObject({ usable: true }))
  expect((await test.callTool('mcp_ask_rug', {})).text).toBe('read')
})
