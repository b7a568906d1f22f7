import { PassThrough } from 'node:stream'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import { Bridge } from '../../../plugins/mcp-server/cli/bridge.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
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
  await vi.waitFor(() => expect(lines.map(({ id }) => id).toSorted()).toEqual(['a', 'b', null]))
  expect(lines.find(({ id }) => id === 'b')?.result).toMatchObject({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  })
  expect(lines.find(({ id }) => id === null)?.error?.code).toBe(-32_700)
  input.end()
  await served
})
