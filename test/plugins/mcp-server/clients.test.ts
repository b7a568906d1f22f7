import { PassThrough } from 'node:stream'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import { Bridge } from '../../../plugins/mcp-server/cli/bridge.ts'
import { byHand } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { openMcp, openSession, rpc, send } from './stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openMcp()
})
afterAll(() => stage[Symbol.asyncDispose]())
const info = { name: 'test', version: '1' }
const address = (): URL => new URL('/mcp', stage.host.url)

test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])('the handshake of %s', async (revision) => {
  const { answer, headers } = await openSession(stage, { revision })
  expect(answer.body.result).toMatchObject({ protocolVersion: revision, serverInfo: { name: 'svc' } })
  expect((await send(stage, rpc('ping'), { headers })).body.result).toEqual({})
})

test('the client of the first SDK lists, calls, is told of progress, and cancels', async () => {
  const client = new FirstClient(info)
  await client.connect(new FirstTransport(address()) as never)
  const { tools } = await client.listTools()
  expect(tools.find(({ name }) => name === 'test_simple_text')?.annotations).toMatchObject({ readOnlyHint: true })
  const leave = new AbortController()
  const steps: (string | undefined)[] = []
  const hanging = client.callTool({ name: 'test_hanging' }, undefined, {
    signal: leave.signal,
    onprogress: ({ message }) => {
      steps.push(message)
      leave.abort()
    },
  })
  await expect(hanging).rejects.toThrow()
  expect(steps).toEqual(['hangs'])
  expect(await client.callTool({ name: 'test_aborted' })).toMatchObject({
    content: [{ type: 'text', text: 'the hanging call was aborted' }],
  })
  await client.close()
})

test('the client of 2026-07-28 needs no session', async () => {
  const client = new Client(info, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(address()))
  expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('test_simple_text')
  const steps: number[] = []
  const answer = await client.callTool(
    { name: 'test_tool_with_progress' },
    { onprogress: ({ progress }) => void steps.push(progress) },
  )
  expect([answer.content, steps]).toEqual([[{ type: 'text', text: 'done' }], [0, 50, 100]])
  await client.close()
})

test('an agent answers as a tool, in a conversation of each session', async () => {
  const sessions: unknown[] = []
  for (const _ of [1, 2]) {
    const { headers } = await openSession(stage)
    for (const message of ['one', 'two']) {
      stage.fake.script({ text: `answer to ${message}` })
      const call = rpc('tools/call', { name: 'svc_agent_conformance', arguments: { message } })
      const { body } = await send(stage, call, { headers })
      expect(body.result?.['structuredContent']).toMatchObject({ text: `answer to ${message}` })
      sessions.push((body.result as { structuredContent: { session_id: string } }).structuredContent.session_id)
    }
  }
  expect([new Set(sessions).size, sessions[0] === sessions[1]]).toEqual([2, true])
  const { body } = await send(stage, rpc('resources/read', { uri: `svc://sessions/${String(sessions[0])}` }))
  const { contents } = body.result as { contents: [{ text: string }] }
  expect(contents[0].text).toContain('answer to two')
})

test('a workflow runs as a tool, with progress, its failure and its end with the call', async () => {
  const define = (name: string, prompt: string) =>
    stage.host.json('POST', '/api/workflows', { name, steps: [{ name: 'one', agent_name: 'conformance', prompt }] })
  expect((await define('Daily report', 'report {{input}}')).status).toBe(201)
  const client = new FirstClient(info)
  await client.connect(new FirstTransport(address()) as never)
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('svc_workflow_daily_report')
  const call = { name: 'svc_workflow_daily_report', arguments: { input: 'of today' } }
  stage.fake.script({ text: 'all is well' })
  const steps: (string | undefined)[] = []
  const answer = await client.callTool(call, undefined, { onprogress: ({ message }) => void steps.push(message) })
  expect(answer).toMatchObject({ structuredContent: { state: 'Completed', output: 'all is well' } })
  expect(steps.at(-1)).toMatch(/^The step one is /)
  const { run_id: id } = answer.structuredContent as { run_id: string }
  expect((await stage.host.json('GET', `/api/workflows/runs/${id}`)).body).toMatchObject({ state: 'Completed' })

  const hanging = byHand()
  stage.fake.script({ text: hanging.text })
  const leave = new AbortController()
  const asked = stage.fake.requests.length
  const cancelled = client.callTool(call, undefined, { signal: leave.signal })
  await eventually(() => expect(stage.fake.requests.length).toBeGreaterThan(asked))
  leave.abort()
  await expect(cancelled).rejects.toThrow()
  await eventually(async () => {
    const { body } = await stage.host.json<{ id: string }[]>('GET', '/api/workflows')
    const runs = await stage.host.json('GET', `/api/workflows/${body[0]?.id}/runs`)
    expect(JSON.stringify(runs.body)).toContain('Cancelled')
  })
  hanging.end()
  await client.close()
})

test('a script that ends its input at once gets its answers', async () => {
  const lines: { id?: unknown; result?: object }[] = []
  const bridge = new Bridge({
    client: createDaemonClient({ url: stage.host.url }),
    path: '/mcp',
    headers: {},
    write: (line) => void lines.push(line as never),
  })
  const input = new PassThrough()
  input.end(`${JSON.stringify(rpc('tools/call', { name: 'test_simple_text' }, 'b'))}\n`)
  await bridge.serve(input)
  expect(lines).toMatchObject([{ id: 'b', result: { content: [{ type: 'text' }] } }])
})

test('a bridge opens a session anew that the daemon has ended, and says that tools may have changed', async () => {
  const daemon = createDaemonClient({ url: stage.host.url })
  const sessions: string[] = []
  const exchange: typeof daemon.exchange = async (...request) => {
    const answer = await daemon.exchange(...request)
    const id = answer.headers.get('mcp-session-id')
    if (id !== null && !sessions.includes(id)) sessions.push(id)
    return answer
  }
  const lines: { id?: unknown; method?: string; result?: object }[] = []
  const client = { url: stage.host.url, exchange }
  const bridge = new Bridge({ client, path: '/mcp', headers: {}, write: (line) => void lines.push(line as never) })
  const input = new PassThrough()
  const served = bridge.serve(input)
  const say = (message: object): boolean => input.write(`${JSON.stringify(message)}\n`)
  say(rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info }, 'a'))
  say({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await eventually(() => expect(lines.map(({ id }) => id)).toContain('a'))
  await daemon.exchange('DELETE', '/mcp', { headers: { 'mcp-session-id': sessions[0] ?? '' } })
  for (const id of ['b', 'c']) say(rpc('tools/call', { name: 'test_simple_text' }, id))
  const answered = { content: [{ type: 'text', text: 'This is a simple text response for testing.' }] }
  await eventually(() => {
    for (const id of ['b', 'c']) expect(lines.find((line) => line.id === id)?.result).toMatchObject(answered)
  })
  expect(lines.filter(({ method }) => method === 'notifications/tools/list_changed')).toHaveLength(1)
  expect(sessions).toHaveLength(2)
  input.end()
  await served
})

test('a bridge passes lines on to the daemon and back', async () => {
  const input = new PassThrough()
  const lines: { id?: unknown; result?: object; error?: { code: number } }[] = []
  const bridge = new Bridge({
    client: createDaemonClient({ url: stage.host.url }),
    path: '/mcp',
    headers: {},
    write: (line) => void lines.push(line as never),
  })
  const served = bridge.serve(input)
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info }
  for (const line of [
    rpc('initialize', params, 'a'),
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    rpc('tools/call', { name: 'test_simple_text' }, 'b'),
  ])
    input.write(`${JSON.stringify(line)}\n`)
  input.write('{ broken\n')
  await eventually(() => expect(lines.map(({ id }) => id).toSorted()).toEqual(['a', 'b', null]))
  expect(lines.find(({ id }) => id === 'b')?.result).toMatchObject({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  })
  expect(lines.find(({ id }) => id === null)?.error?.code).toBe(-32_700)
  input.end()
  await served
})
