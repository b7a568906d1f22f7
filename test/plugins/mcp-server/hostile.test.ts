import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { ACCEPT, openMcp, openSession, rpc, send } from './stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openMcp({
    max_body_bytes: 20_000,
    max_sessions: 3,
    max_requests_per_session: 1,
    max_subscriptions: 1,
    page_size: 2,
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (name: unknown, args?: unknown) =>
  rpc('tools/call', { name, ...(args === undefined ? {} : { arguments: args }) })

test('the bare tools/list of a script is answered as plain JSON, without a handshake or an Accept header', async () => {
  for (const body of [
    { jsonrpc: '2.0', id: 'x', method: 'tools/list' },
    { id: 'x', method: 'tools/list' },
  ]) {
    const answer = await stage.host.json<{ id: string; result: { tools: { name: string; inputSchema: object }[] } }>(
      'POST',
      '/mcp',
      body,
    )
    expect([answer.status, answer.headers.get('content-type'), answer.body.id]).toEqual([200, 'application/json', 'x'])
    const names = answer.body.result.tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['svc_agent_conformance', 'svc_agent_assistant', 'test_simple_text']))
    expect(answer.body.result.tools.every(({ inputSchema }) => typeof inputSchema === 'object')).toBe(true)
  }
})

test.each([
  ['broken JSON', '{"jsonrpc": "2.0", ', 400, -32_700],
  ['bytes that are no text', '\ud800', 400, -32_700],
  ['an empty body', '', 400, -32_700],
  ['deep nesting', `${'['.repeat(5_000)}${']'.repeat(5_000)}`, 400, -32_700],
  ['a number', 5, 400, -32_600],
  ['null', 'null', 400, -32_600],
  ['an empty batch', [], 400, -32_600],
  ['a batch', [rpc('ping'), rpc('ping', {}, 2)], 400, -32_600],
  ['a method that is no text', { jsonrpc: '2.0', id: 1, method: 5 }, 400, -32_600],
  ['another version', { jsonrpc: '1.0', id: 1, method: 'ping' }, 400, -32_600],
  ['an id that is an object', { jsonrpc: '2.0', id: {}, method: 'ping' }, 400, -32_600],
  ['a fractional id', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, 400, -32_600],
  ['an unknown method', rpc('tools/destroy'), 200, -32_601],
  ['params that are a list', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: [] }, 400, -32_600],
  ['a call without a name', rpc('tools/call', {}), 200, -32_602],
  ['a name that is a number', call(5), 200, -32_602],
  ['an unknown tool', call('test_simple_texxt'), 200, -32_602],
  ['arguments that are text', call('test_simple_text', 'x'), 200, -32_602],
  ['an unknown agent', call('svc_agent_nobody', { message: 'x' }), 200, -32_602],
  ['an agent without a message', call('svc_agent_conformance', {}), 200, -32_602],
  ['a session of nobody', call('svc_agent_conformance', { message: 'x', session_id: 'x' }), 200, -32_602],
  ['an unknown resource', rpc('resources/read', { uri: 'svc://agents/../../etc/passwd' }), 200, -32_602],
  ['a file', rpc('resources/read', { uri: 'file:///etc/passwd' }), 200, -32_602],
  ['a broken escape', rpc('resources/read', { uri: 'svc://agents/%' }), 200, -32_602],
  ['an address that is a number', rpc('resources/read', { uri: 5 }), 200, -32_602],
  ['a handshake without a revision', rpc('initialize', {}), 200, -32_602],
  ['a completion of nothing', rpc('completion/complete', {}), 200, -32_602],
  ['a negative cursor', rpc('resources/list', { cursor: '-1' }), 200, -32_602],
  ['an unknown prompt', rpc('prompts/get', { name: 'x' }), 200, -32_602],
  ['a prompt without its arguments', rpc('prompts/get', { name: 'test_prompt_with_arguments' }), 200, -32_602],
])('%s is an error of the protocol', async (_, body, status, code) => {
  const answer = await send(stage, body)
  expect([answer.status, answer.body.error?.code]).toEqual([status, code])
  expect(answer.body.error?.message).not.toMatch(/\p{Cc}/u)
})

test('an id of any length comes back, and so does one that is huge', async () => {
  for (const id of ['x'.repeat(10_000), Number.MAX_SAFE_INTEGER, -1, ''])
    expect((await send(stage, rpc('ping', {}, id))).body).toEqual({ jsonrpc: '2.0', id, result: {} })
})

test('a body that is too large is an error of the protocol', async () => {
  const answer = await send(stage, rpc('ping', { text: 'x'.repeat(20_000) }))
  expect([answer.status, answer.body.error?.message]).toEqual([413, expect.stringContaining('20000 bytes')])
})

test('a foreign Origin or Host is refused before anything is read', async () => {
  for (const headers of [{ origin: 'https://evil.example' }, { host: 'evil.example' }]) {
    const answer = await stage.host.app.fetch(
      new Request('http://127.0.0.1:4545/mcp', { method: 'POST', headers: { ...ACCEPT, ...headers }, body: '{}' }),
    )
    expect(answer.status).toBe(403)
  }
})

test('an agent that does not exist is told as the interface says', async () => {
  const answer = await send(stage, rpc('tools/list'), { headers: { 'x-svc-agent-id': 'nobody' } })
  expect(answer.body.error?.code).toBe(-32_001)
})

test('what an agent may not use is neither listed nor called for it', async () => {
  await stage.spawn('restricted', ['test_simple_text'])
  const headers = { 'x-svc-agent-id': 'restricted' }
  const { body } = await send(stage, rpc('tools/list'), { headers })
  const names = ((body.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
  expect(names.filter((name) => !name.startsWith('svc_'))).toEqual(['test_simple_text'])
  expect((await send(stage, call('test_image_content'), { headers })).body.error).toMatchObject({
    code: -32_602,
    message: 'The agent restricted may not use the tool "test_image_content"',
  })
})

test('sessions are bound, ended and limited', async () => {
  expect((await send(stage, rpc('ping'), { headers: { 'mcp-session-id': 'x' } })).status).toBe(404)
  const { headers } = await openSession(stage)
  expect((await send(stage, rpc('ping'), { headers })).body.result).toEqual({})
  // Another revision than one of the daemon's.
  expect(
    (await send(stage, rpc('ping'), { headers: { ...headers, 'mcp-protocol-version': '1999-01-01' } })).status,
  ).toBe(400)
  expect((await stage.host.fetch('/mcp', { headers })).status).toBe(406)
  const ended = await stage.host.fetch('/mcp', { method: 'DELETE', headers })
  expect([ended.status, (await send(stage, rpc('ping'), { headers })).status]).toEqual([200, 404])
  expect((await stage.host.fetch('/mcp', { method: 'DELETE' })).status).toBe(400)
})

test('the session that was idle longest makes room, and none does when all are used (plugins.mcp-server.max_sessions)', async () => {
  const first = await openSession(stage)
  const leave = new AbortController()
  const feeds: Response[] = []
  for (let n = 0; n < 3; n++) {
    const { headers } = await openSession(stage)
    feeds.push(
      await stage.host.fetch('/mcp', { headers: { ...headers, accept: 'text/event-stream' }, signal: leave.signal }),
    )
  }
  expect(feeds.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await send(stage, rpc('ping'), { headers: first.headers })).status).toBe(404)
  const { answer } = await openSession(stage)
  expect([answer.status, answer.body.error?.message]).toEqual([503, expect.stringContaining('max_sessions')])
  leave.abort()
  await eventually(async () => expect((await openSession(stage)).answer.status).toBe(200))
})

test('requests and subscriptions of a session are limited (max_requests_per_session, plugins.mcp-server.max_subscriptions)', async () => {
  const { headers } = await openSession(stage)
  const leave = new AbortController()
  const hanging = await stage.host.fetch('/mcp', {
    method: 'POST',
    headers: { ...ACCEPT, ...headers },
    body: JSON.stringify(rpc('tools/call', { name: 'test_hanging' }, 'hangs')),
    signal: leave.signal,
  })
  expect(hanging.status).toBe(200)
  const refused = await send(stage, rpc('ping'), { headers })
  expect([refused.status, refused.body.error?.message]).toEqual([
    429,
    expect.stringContaining('max_requests_per_session'),
  ])
  await send(stage, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'hangs' } }, { headers })
  await hanging.text()
  const follow = (uri: string) => send(stage, rpc('resources/subscribe', { uri }), { headers })
  expect((await follow('svc://agents')).body.result).toEqual({})
  expect((await follow('test://watched-resource')).body.error?.message).toContain('max_subscriptions')
  await send(stage, rpc('resources/unsubscribe', { uri: 'svc://agents' }), { headers })
  expect((await follow('test://watched-resource')).body.result).toEqual({})
})
