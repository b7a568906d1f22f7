import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { toConfig } from '../../support/chat-stage.ts'
import { KEY, operator, pair, startPairing } from '../pairing/devices.ts'
import type { TestHost } from '../../support/host.ts'
import { eventually } from '../../support/eventually.ts'
import { ACCEPT, fixture, openSession, rpc, send } from './stage.ts'

let fake: FakeProvider
let host: TestHost
const plugins = { paths: [fixture], 'mcp-server': { agent: 'conformance', max_requests_per_session: 8, retry_ms: 1 } }
beforeAll(async () => {
  fake = await startFakeProvider()
  host = await startPairing({}, { config: toConfig(fake, { api_key: KEY, plugins }) })
  await spawn('name = "conformance"\n[capabilities]\ntools = ["*"]\n')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

async function spawn(manifest_toml: string): Promise<void> {
  expect((await host.json('POST', '/api/agents', { manifest_toml }, operator)).status).toBe(201)
}
const open = async (headers: Record<string, string> = operator) => (await openSession({ host }, { headers })).headers
const hang = (id: string | number) => rpc('tools/call', { name: 'test_hanging' }, id)
const cancel = (requestId: string | number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
})
const post = (body: unknown, headers: Record<string, string>) =>
  host.fetch('/mcp', { method: 'POST', headers: { ...ACCEPT, ...headers }, body: JSON.stringify(body) })
const follow = (headers: Record<string, string>, lastId?: string) =>
  host.fetch('/mcp', {
    headers: { ...headers, accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) },
  })
const messages = (text: string): { id?: unknown; result?: object; error?: { message: string } }[] =>
  text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))

test('an answer that is there at once is plain JSON, of which nothing is kept', async () => {
  const headers = await open()
  const answered = async (body: object) => {
    const answer = await post(body, headers)
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('mcp-session-id')]).toEqual([
      200,
      'application/json',
      headers['mcp-session-id'],
    ])
    return answer.json()
  }
  expect(await answered(rpc('ping', {}, 'a'))).toEqual({ jsonrpc: '2.0', id: 'a', result: {} })
  expect(await answered(rpc('tools/destroy', {}, 'b'))).toMatchObject({ id: 'b', error: { code: -32_601 } })
  // The handshake has the events 1 and 2.
  expect((await follow(headers, '3')).status).toBe(400)
  // On a busy machine a call may take longer than a moment.
  await eventually(async () => {
    const call = rpc('tools/call', { name: 'test_simple_text' }, 'c')
    expect(await answered(call)).toMatchObject({ id: 'c', result: { content: [{ type: 'text' }] } })
  })
})

test('an answer with progress before it is a stream that can be asked for again, and the call is made once', async () => {
  const headers = await open()
  const params = { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } }
  const answer = await post(rpc('tools/call', params, 'a'), { ...headers, 'mcp-protocol-version': '2025-11-25' })
  expect(answer.headers.get('content-type')).toBe('text/event-stream')
  const text = await answer.text()
  expect(messages(text)).toMatchObject([
    { params: { progress: 0 } },
    { params: { progress: 50 } },
    { params: { progress: 100 } },
    { id: 'a', result: { content: [{ text: 'done' }] } },
  ])
  const [first = ''] = text.match(/(?<=id: )\d+/) ?? []
  expect(messages(await (await follow(headers, first)).text())).toEqual(messages(text))
})

test('a call that is cancelled at once ends without an answer, and its id is free again', async () => {
  const headers = await open()
  const hanging = post(hang('x'), headers)
  let text = ''
  const ended = hanging.then(async (answer) => (text = await answer.text()))
  await eventually(async () => {
    await send({ host }, cancel('x'), { headers })
    expect((await send({ host }, rpc('ping', {}, 'x'), { headers })).body.result).toEqual({})
  })
  await ended
  expect(messages(text)).toEqual([])
})

test('an id that runs already is refused, also within a batch, and is free again at its end', async () => {
  const headers = await open()
  const first = await post(hang('x'), headers)
  const again = await send({ host }, rpc('ping', {}, 'x'), { headers })
  expect([again.status, again.body.error]).toEqual([
    400,
    { code: -32_600, message: expect.stringContaining('"x" runs already') },
  ])
  const twice = await send({ host }, [rpc('ping', {}, 1), rpc('ping', {}, 1)], { headers })
  expect(twice.status).toBe(400)
  await send({ host }, cancel('x'), { headers })
  await first.text()
  expect((await send({ host }, rpc('ping', {}, 'x'), { headers })).body.result).toEqual({})
  // A number is another id than its text, and a refused request none that runs.
  for (const accept of ['text/plain', ACCEPT.accept]) {
    const answer = await post(rpc('ping', {}, 1), { ...headers, accept })
    expect(answer.status).toBe(accept === ACCEPT.accept ? 200 : 406)
    await answer.text()
  }
})

test('a batch is answered as a whole, and ends though one of its requests was cancelled', async () => {
  const headers = await open()
  const pings = await post([rpc('ping', {}, 1), cancel('nothing'), rpc('tools/destroy', {}, 2)], headers)
  const answers = messages(await pings.text()).map(({ id, error }) => [Number(id), error === undefined])
  expect(answers.toSorted()).toEqual([
    [1, true],
    [2, false],
  ])
  const mixed = await post([hang('hangs'), rpc('ping', {}, 3)], headers)
  await send({ host }, cancel('hangs'), { headers })
  expect(messages(await mixed.text()).filter(({ id }) => id !== undefined)).toMatchObject([{ id: 3, result: {} }])
})

test('a session is of whoever opened it: neither another device nor the key can use, follow or end it', async () => {
  const [one, two] = [await pair(host, 'one'), await pair(host, 'two')]
  const own = await open(one.bearer)
  for (const other of [two.bearer, operator]) {
    const headers = { ...own, ...other }
    expect((await send({ host }, rpc('ping'), { headers })).status).toBe(404)
    expect((await follow(headers, '1')).status).toBe(404)
    expect((await host.fetch('/mcp', { method: 'DELETE', headers })).status).toBe(404)
  }
  expect((await send({ host }, rpc('ping'), { headers: own })).body.result).toEqual({})
})

test('a request is cancelled by its own session only', async () => {
  const [own, other] = [await open(), await open()]
  const hanging = await post(hang(1), own)
  await send({ host }, cancel(1), { headers: other })
  expect((await send({ host }, rpc('ping', {}, 1), { headers: own })).status).toBe(400)
  await send({ host }, cancel(1), { headers: own })
  await hanging.text()
})

test('an event of another session, one that is gone and one that never was resume nothing', async () => {
  const [own, other] = [await open(), await open()]
  for (const id of ['a', 'b', 'c', 'd'])
    await (await post(rpc('tools/call', { name: 'test_simple_text' }, id), other)).text()
  for (const lastId of ['3', '999999', '-1', 'x', '1e3', '0x1']) {
    const answer = await follow(own, lastId)
    expect([lastId, answer.status]).toEqual([lastId, 400])
    expect(await answer.text()).not.toContain('simple text')
  }
})

test('with a key the key protects, whatever the Host; a page of another site is refused all the same', async () => {
  const status = async (headers: Record<string, string>) =>
    (
      await host.app.fetch(
        new Request('http://127.0.0.1:4545/mcp', {
          method: 'POST',
          headers: { ...ACCEPT, ...headers },
          body: JSON.stringify(rpc('ping')),
        }),
      )
    ).status
  expect([
    await status({ host: 'svc.example' }),
    await status({ ...operator, host: 'svc.example' }),
    await status({ ...operator, origin: 'https://evil.example' }),
  ]).toEqual([401, 200, 403])
})

test('an agent that has made its calls of a minute says so at once (max_tool_calls_per_minute)', async () => {
  await spawn('name = "slow"\n[capabilities]\ntools = ["*"]\n[resources]\nmax_tool_calls_per_minute = 1\n')
  const headers = { ...operator, 'x-svc-agent-id': 'slow' }
  const call = rpc('tools/call', { name: 'test_simple_text' })
  expect((await send({ host }, call, { headers })).body.result).not.toHaveProperty('isError')
  expect((await send({ host }, call, { headers })).body.result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/slow may call 1 tools a minute .*Call again in \d+ seconds/) }],
  })
})

test('a reload of the plugin ends streams cleanly; a client shakes hands again and goes on', async () => {
  const headers = await open()
  const feed = await follow(headers)
  const hanging = await post(hang('hangs'), headers)
  const reloaded = host.json('POST', '/api/plugins/mcp-server/reload', undefined, operator)
  // Both end without an error of the connection.
  await Promise.all([feed.text(), hanging.text()])
  expect((await reloaded).status).toBe(200)
  const gone = await send({ host }, rpc('ping'), { headers })
  expect([gone.status, gone.body.error?.message]).toEqual([404, 'Session not found: send initialize again'])
  const again = await open()
  const answer = await send({ host }, rpc('tools/call', { name: 'test_simple_text' }), { headers: again })
  expect(answer.body.result).toMatchObject({ content: [{ text: 'This is a simple text response for testing.' }] })
})
