import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { openMcp, rpc, send } from './stage.ts'

const child = fileURLToPath(new URL('../../fixtures/mcp/conformance.ts', import.meta.url))
let stage: ChatStage
beforeAll(async () => {
  stage = await openMcp(
    {},
    { mcp_servers: [{ name: 'child', command: process.execPath, args: [child], risk: 'read' }] },
    { approvals: { agents: { conformance: 'never' }, require_approval: ['mcp_child_read_resource'] } },
  )
  await stage.spawn('alone', ['*'], 'mcp_disabled = true')
})
afterAll(() => stage[Symbol.asyncDispose]())

/** A client of the gateway, and what it is told. */
async function open(): Promise<{ readonly client: Client; readonly told: unknown[] }> {
  const client = new Client({ name: 'test', version: '1' })
  const told: unknown[] = []
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void told.push(params.data))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void told.push(params.uri))
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void told.push('resources'))
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp/child', stage.host.url)) as never)
  return { client, told }
}
interface State {
  readonly level: string
  readonly followed: readonly string[]
}
async function stateOf(client: Client): Promise<State> {
  const { content } = (await client.callTool({ name: 'state' })) as { content: readonly { text?: string }[] }
  return JSON.parse(content[0]?.text ?? '') as State
}
const watched = 'test://watched-resource'

test('a program tells what the most curious client wants, and each client what it wants itself', async () => {
  const [curious, calm] = [await open(), await open()]
  await curious.client.setLoggingLevel('debug')
  await calm.client.setLoggingLevel('error')
  expect(await stateOf(curious.client)).toMatchObject({ level: 'debug' })
  await curious.client.callTool({ name: 'change' })
  await eventually(() => expect(curious.told).toContain('a detail'))
  await calm.client.callTool({ name: 'change' })
  expect(calm.told).not.toContain('a detail')
  await (curious.client.transport as StreamableHTTPClientTransport).terminateSession()
  await eventually(async () => expect(await stateOf(calm.client)).toMatchObject({ level: 'error' }))
  await Promise.all([curious.client.close(), calm.client.close()])
})

test('what a client follows is followed at the program, also when it was started anew', async () => {
  const { client, told } = await open()
  await client.subscribeResource({ uri: watched })
  expect((await stateOf(client)).followed).toEqual([watched])
  const pid = (await stage.host.json<{ pid: number }>('GET', '/api/mcp/servers/child')).body.pid
  const again = await stage.host.json<{ pid: number }>('POST', '/api/mcp/servers/child/restart')
  expect([again.status, again.body.pid === pid]).toEqual([200, false])
  await client.setLoggingLevel('warning')
  expect(await stateOf(client)).toEqual({ level: 'warning', followed: [watched] })
  await client.callTool({ name: 'change' })
  await eventually(() => expect(told).toEqual(expect.arrayContaining([watched, 'resources'])))
  await client.unsubscribeResource({ uri: watched })
  expect((await stateOf(client)).followed).toEqual([])
  await client.close()
})

test('a server that does not exist, and a tool that an agent may not use, are refused', async () => {
  const unknown = await send(stage, rpc('tools/list'), { path: '/mcp/nobody' })
  expect([unknown.status, unknown.body.error?.message]).toEqual([404, expect.stringContaining('"nobody"')])
  await stage.spawn('restricted', ['mcp_child_state'])
  const options = { path: '/mcp/child', headers: { 'x-svc-agent-id': 'restricted' } }
  const { body } = await send(stage, rpc('tools/list'), options)
  expect(((body.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)).toEqual(['state'])
  const refused = await send(stage, rpc('tools/call', { name: 'change' }), options)
  expect(refused.body.error).toMatchObject({ code: -32_602, message: 'Unknown tool: change' })
})

test.each([
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'test://static-text' }],
  ['prompts/list', {}],
  ['prompts/get', { name: 'test_simple_prompt' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }],
  ['completion/complete', { ref: { type: 'ref/resource', uri: 'test://a' }, argument: { name: 'a', value: '' } }],
])('%s is refused for an agent that may not use the server: %j', async (method, params) => {
  const answer = await send(stage, rpc(method, params), { path: '/mcp/child', headers: { 'x-svc-agent-id': 'alone' } })
  expect(answer.body.error).toMatchObject({ code: -32_602, message: expect.stringContaining('may not use') })
})

const audited = async (text: string): Promise<number> => {
  const { body } = await stage.host.json<{ entries: { details: string }[] }>('GET', '/api/audit/recent?n=200')
  return body.entries.filter(({ details }) => details.includes(text)).length
}

test('resources and prompts are read as agents read them: in the journal, the audit trail and with approvals', async () => {
  const path = '/mcp/child'
  const before = await audited('mcp_child_read_resource done')
  const read = rpc('resources/read', { uri: 'test://static-text' })
  const text = { uri: 'test://static-text', text: 'This is the content of the static text resource.' }
  expect((await send(stage, read, { path })).body.result).toMatchObject({ contents: [text] })
  // The call, and the end of the turn that it is.
  expect(await audited('mcp_child_read_resource done')).toBe(before + 2)
  const prompt = await send(stage, rpc('prompts/get', { name: 'test_simple_prompt' }), { path })
  expect(prompt.body.result).toMatchObject({ messages: [{ role: 'user', content: { type: 'text' } }] })
  expect(await audited('mcp_child_get_prompt done')).toBeGreaterThan(0)
  await send(stage, rpc('resources/list'), { path })
  expect(await audited('as with mcp_child_list_resources')).toBeGreaterThan(0)

  await stage.spawn('asked')
  const asking = send(stage, read, { path, headers: { 'x-svc-agent-id': 'asked' } })
  const id = await eventually(async () => {
    const { body } = await stage.host.json<{ approvals: { id: string; status: string; tool_name: string }[] }>(
      'GET',
      '/api/approvals',
    )
    const waiting = body.approvals.find(({ status }) => status === 'pending')
    expect(waiting?.tool_name).toBe('mcp_child_read_resource')
    return waiting?.id
  })
  await stage.host.json('POST', `/api/approvals/${id}/approve`, {})
  expect((await asking).body.result).toMatchObject({ contents: [text] })
})

test('what a server says is wrong comes back as it said it', async () => {
  const read = rpc('resources/read', { uri: 'test://nowhere' })
  const { body } = await send(stage, read, { path: '/mcp/child' })
  expect(body.error).toMatchObject({ code: expect.any(Number), message: expect.stringContaining('nowhere') })
  expect(stage.host.defects()).toEqual([])
})

test('a session goes on through a reload of the plugin mcp, and is told what it follows', async () => {
  const { client, told } = await open()
  await client.subscribeResource({ uri: watched })
  expect((await stage.host.json('POST', '/api/plugins/mcp/reload')).status).toBe(200)
  expect((await stateOf(client)).followed).toEqual([watched])
  await client.callTool({ name: 'change' })
  await eventually(() => expect(told).toContain(watched))
  await client.close()
})
