import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main, path, runCli } from '../../core/cli/process.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { openMcp, rpc } from './stage.ts'

let stage: ChatStage
let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-serve-'))
  stage = await openMcp()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true })
})
const env = { PATH: path, HOME: '/nonexistent' }
const sessions = async (): Promise<string | undefined> =>
  /^svc_mcp_server_sessions (\d+)/m.exec(await (await stage.host.fetch('/api/metrics')).text())?.[1]

test('the official client over stdio lists, calls, is told of progress and cancels; its end ends the program and the session', async () => {
  const client = new Client({ name: 'test', version: '1' })
  const args = [main, 'mcp', 'serve', '--home', home, '--url', stage.host.url]
  const transport = new StdioClientTransport({ command: process.execPath, args, env, cwd: '/' })
  await client.connect(transport as never)
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('svc_agent_conformance')
  const leave = new AbortController()
  const hanging = client.callTool({ name: 'test_hanging' }, undefined, {
    signal: leave.signal,
    onprogress: () => leave.abort(),
  })
  await expect(hanging).rejects.toThrow()
  expect(await client.callTool({ name: 'test_aborted' })).toMatchObject({
    content: [{ type: 'text', text: 'the hanging call was aborted' }],
  })
  expect(await sessions()).toBe('1')
  const { pid } = transport
  expect(pid).toEqual(expect.any(Number))
  await client.close()
  await eventually(() => expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH'))
  expect(await sessions()).toBe('0')
})

test('without a daemon it says what to do, and answers none that has gone', async () => {
  const none = await runCli(['mcp', 'serve', '--home', home])
  expect([none.stdout, none.stderr]).toEqual([
    '',
    expect.stringMatching(/no svc is running.*\n.*start it with `svc start --home /),
  ])
  expect(none.code).not.toBe(0)
  const gone = await runCli(['mcp', 'serve', '--home', home, '--url', 'http://127.0.0.1:1'], {
    input: `${JSON.stringify(rpc('tools/list', {}, 'a'))}\n`,
  })
  expect(JSON.parse(gone.stdout)).toEqual({
    jsonrpc: '2.0',
    id: 'a',
    error: { code: -32_000, message: expect.stringMatching(/does not run any more/) },
  })
})

test('a client whose session ended with the plugin is told again of what it follows', async () => {
  const client = new Client({ name: 'test', version: '1' })
  const args = [main, 'mcp', 'serve', '--home', home, '--url', stage.host.url]
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, cwd: '/' }) as never)
  const told = vi.fn<(uri: string) => void>()
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => told(params.uri))
  for (const uri of ['svc://agents', 'test://watched-resource']) await client.subscribeResource({ uri })
  await client.unsubscribeResource({ uri: 'test://watched-resource' })
  expect((await stage.host.json('POST', '/api/plugins/mcp-server/reload')).status).toBe(200)
  await client.listTools()
  // Once for what may have changed without a session, and then of every change.
  await eventually(() => expect(told.mock.calls).toEqual([['svc://agents']]))
  let count = 0
  await eventually(async () => {
    await stage.spawn(`followed-${++count}`)
    expect(told.mock.calls.length).toBeGreaterThan(1)
  })
  await client.close()
})
