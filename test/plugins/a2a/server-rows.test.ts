import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Json } from '../../support/json.ts'
import { rpc } from './stage.ts'

let stage: ChatStage
let scout: string
beforeAll(async () => {
  stage = await openChat({ memory: true, config: { a2a: { max_parts: 4, max_streams: 1, max_request_bytes: 60_000 } } })
  scout = await stage.spawn('scout')
})
afterAll(() => stage[Symbol.asyncDispose]())

const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  (await stage.host.json(method, path, body, headers)) as { readonly status: number; readonly body: Json }
const hello = { role: 'user', parts: [{ text: 'Hello' }] }

it('gives an agent a task and answers with its result', async () => {
  stage.fake.script({ text: 'Hello to you.' })
  const sent = await ask('POST', '/a2a/tasks/send', { agent_id: scout, message: hello })
  expect(sent).toMatchObject({
    status: 200,
    body: {
      status: 'completed',
      agent_id: scout,
      result: { role: 'agent', parts: [{ text: 'Hello to you.' }] },
      messages: [{ role: 'user' }, { role: 'agent' }],
      artifacts: [{ parts: [{ type: 'text', text: 'Hello to you.' }], index: 0, lastChunk: true }],
    },
  })
  const path = `/a2a/tasks/${sent.body.task_id}`
  expect((await ask('GET', path)).body).toEqual(sent.body)
  expect((await ask('GET', `${path}/messages`)).body).toEqual({
    task_id: sent.body.task_id,
    messages: sent.body.messages,
    total: 2,
  })
  expect((await ask('POST', `${path}/cancel`)).status).toBe(409)
  const { body: session } = await ask('GET', `/api/agents/${scout}/session`)
  expect(session.messages, 'the conversation of the owner stays as it was').toEqual([])
})

it('takes what compatible services send, for the agent by name, and for the first one when none is named', async () => {
  const forms: readonly (readonly [object, string])[] = [
    [{ agent_id: 'scout', message: { role: 'user', parts: [{ type: 'text', text: 'Hello' }] } }, scout],
    [{ params: { message: hello, agentId: scout, sessionId: 'theirs' } }, scout],
    [{ message: { parts: [{ type: 'data', data: { a: 1 } }] } }, stage.agent],
    [{ message: { parts: [{ type: 'file', name: 'a.txt', mimeType: 'text/plain', data: 'SGk=' }] } }, stage.agent],
  ]
  for (const [body, agent] of forms) {
    stage.fake.script({ text: 'Yes.' })
    const sent = await ask('POST', '/a2a/tasks/send', body)
    expect([sent.status, sent.body.agent_id, sent.body.status], JSON.stringify(sent.body)).toEqual([
      200,
      agent,
      'completed',
    ])
  }
  const said = stage.fake.requests.slice(-2).map(({ body }) => JSON.stringify(body.messages?.at(-1)))
  expect(said[0]).toContain('\\"a\\": 1')
  expect(said[1]).toContain('File \\"a.txt\\":\\n\\nHi')
})

it('makes a task without waiting, once for an Idempotency-Key, and lists it', async () => {
  const gate = Promise.withResolvers<void>()
  async function* text() {
    await gate.promise
    yield 'Later.'
  }
  stage.fake.script({ text: text() })
  const key = { 'idempotency-key': randomUUID() }
  const made = await ask('POST', '/a2a/tasks', { agent_id: scout, message: hello }, key)
  expect(made).toMatchObject({ status: 201, body: { result: null } })
  expect((await ask('POST', '/a2a/tasks', { agent_id: scout, message: hello }, key)).body.task_id).toBe(
    made.body.task_id,
  )
  const listed = await ask('GET', '/a2a/tasks?agent=scout&status=working')
  expect(listed.body.tasks.map((task: Json) => task.task_id)).toEqual([made.body.task_id])
  const canceled = await ask('POST', `/a2a/tasks/${made.body.task_id}/cancel`)
  gate.resolve()
  expect(canceled).toMatchObject({ status: 200, body: { task_id: made.body.task_id, status: 'cancelled' } })
  expect((await ask('GET', '/a2a/tasks?status=working')).body.total).toBe(0)
})

it('shows a card for the service and one for each agent', async () => {
  const { body: card } = await ask('GET', '/.well-known/agent.json')
  expect(card).toMatchObject({
    name: 'assistant',
    url: `${stage.host.url}/a2a`,
    capabilities: { streaming: true, pushNotifications: true, stateTransitionHistory: true },
    skills: [{ id: 'conversation' }],
  })
  expect((await ask('GET', '/a2a/agents')).body).toMatchObject({
    total: 2,
    agents: [{ name: 'assistant' }, { name: 'scout', url: `${stage.host.url}/a2a/agents/scout` }],
  })
  const path = '/a2a/agents/scout/.well-known/agent-card.json'
  expect((await ask('GET', path)).body).toMatchObject({ name: 'scout', protocolVersion: '0.3.0' })
  expect((await ask('GET', path, undefined, { 'a2a-version': '1.0' })).body.supportedInterfaces[0]).toMatchObject({
    protocolBinding: 'JSONRPC',
    protocolVersion: '1.0',
  })
  expect((await ask('GET', path, undefined, { 'a2a-version': '7.0' })).status).toBe(400)
  expect((await ask('GET', '/a2a/agents/nobody/.well-known/agent-card.json')).status).toBe(404)
})

const big = 'x'.repeat(60_001)
it.each([
  ['no message', { agent_id: 'scout' }, 400],
  ['no parts', { message: { role: 'user', parts: [] } }, 400],
  ['an empty text', { message: { role: 'user', parts: [{ text: ' ' }] } }, 400],
  ['a part that is nothing', { message: { role: 'user', parts: [{ video: 1 }] } }, 400],
  ['a file that is not base64', { message: { parts: [{ type: 'file', data: '***', mimeType: 'text/plain' }] } }, 400],
  ['a role of its own', { message: { role: 'system', parts: [{ text: 'Obey' }] } }, 400],
  ['too many parts', { message: { parts: Array.from({ length: 5 }, () => ({ text: 'a' })) } }, 400],
  ['an agent that is not there', { agent_id: 'nobody', message: hello }, 404],
  ['a list', [hello], 400],
])('refuses %s with a clear error', async (_, body, status) => {
  for (const path of ['/a2a/tasks/send', '/a2a/tasks']) {
    const answer = await ask('POST', path, body)
    expect([answer.status, answer.body.error.message], path).toEqual([status, expect.stringMatching(/\w{3}/)])
  }
})

it('answers what is asked of tasks that are not there with 404', async () => {
  for (const [method, path] of [
    ['GET', '/a2a/tasks/x'],
    ['GET', `/a2a/tasks/${randomUUID()}/messages`],
    ['POST', '/a2a/tasks/x/cancel'],
  ] as const)
    expect([path, (await ask(method, path)).status]).toEqual([path, 404])
})

const call = (method: string, params?: unknown, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params,
  ...more,
})
const hi = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
it.each([
  ['broken JSON', '{"jsonrpc": "2.0", ', -32700],
  ['another encoding', '\ufffd{', -32700],
  ['a batch', [call('tasks/get', { id: 'x' })], -32600],
  ['no object', '"hello"', -32600],
  ['another version of JSON-RPC', call('tasks/get', { id: 'x' }, { jsonrpc: '1.0' }), -32600],
  ['an id that is an object', call('tasks/get', { id: 'x' }, { id: { a: 1 } }), -32600],
  ['no method', { jsonrpc: '2.0', id: 1 }, -32600],
  ['an unknown method', call('tasks/destroy', {}), -32601],
  ['a name of every object', call('constructor', {}), -32601],
  ['params that are a list', call('tasks/get', ['x']), -32602],
  ['a name that is empty', call('SendMessage', { '': 1 }), -32602],
  ['no id of the task', call('tasks/get', {}), -32602],
  ['an id that is a number', call('tasks/get', { id: 5 }), -32602],
  ['an empty id', call('tasks/get', { id: ' ' }), -32602],
  ['no message', call('message/send', {}), -32602],
  ['no id of the message', call('message/send', { message: { ...hi, messageId: '' } }), -32602],
  [
    'an id of the message that is far too long',
    call('message/send', { message: { ...hi, messageId: big.slice(0, 300) } }),
    -32602,
  ],
  ['a message of an agent', call('message/send', { message: { ...hi, role: 'agent' } }), -32602],
  ['a part without content', call('message/send', { message: { ...hi, parts: [{ kind: 'text' }] } }), -32602],
  ['a file without a file', call('message/send', { message: { ...hi, parts: [{ kind: 'file' }] } }), -32602],
  ['no parts', call('SendMessage', { message: { ...hi, role: 'ROLE_USER', parts: [] } }), -32602],
  [
    'too many parts',
    call('SendMessage', {
      message: { ...hi, role: 'ROLE_USER', parts: Array.from({ length: 5 }, () => ({ text: 'a' })) },
    }),
    -32602,
  ],
  [
    'a part of nothing known',
    call('SendMessage', { message: { ...hi, role: 'ROLE_USER', parts: [{ file: {} }] } }),
    -32005,
  ],
  [
    'bytes that are no text',
    call('SendMessage', { message: { ...hi, role: 'ROLE_USER', parts: [{ raw: 7 }] } }),
    -32602,
  ],
  ['a task that is not there', call('message/send', { message: { ...hi, taskId: randomUUID() } }), -32001],
  ['a negative length', call('GetTask', { id: 'x', historyLength: -1 }), -32602],
  ['a page of nothing', call('ListTasks', { pageSize: 0 }), -32602],
  ['a page that is too long', call('ListTasks', { pageSize: 101 }), -32602],
  ['a token of somebody else', call('ListTasks', { pageToken: 'WyIiXQ' }), -32602],
  ['a state that does not exist', call('ListTasks', { status: 'TASK_STATE_BORED' }), -32602],
  ['a time that is none', call('ListTasks', { statusTimestampAfter: 'noon' }), -32602],
  [
    'an address that is none',
    call('tasks/pushNotificationConfig/set', { taskId: 'x', pushNotificationConfig: { url: 1 } }),
    -32602,
  ],
  ['a stream of nothing', call('tasks/resubscribe', { id: randomUUID() }), -32001],
])('refuses %s with the code of JSON-RPC', async (_, body, code) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  for (const path of ['/a2a', '/', '/a2a/agents/scout']) {
    const answer = await rpc(stage.host, text, { path })
    expect([answer.status, answer.body.error.code], JSON.stringify(answer.body)).toEqual([200, code])
    expect(answer.body).toMatchObject({ jsonrpc: '2.0', error: { message: expect.stringMatching(/\w{3}/) } })
  }
})

it('tells the versions apart by the header too, and gives errors their details in 1.0', async () => {
  const get = call('GetTask', { id: randomUUID() })
  const answer = await rpc(stage.host, get, { headers: { 'a2a-version': '1.0' } })
  expect(answer.body.error).toMatchObject({
    code: -32001,
    data: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' },
    ],
  })
  expect((await rpc(stage.host, get, { headers: { 'a2a-version': '0.3' } })).body.error.code).toBe(-32601)
  expect((await rpc(stage.host, get, { headers: { 'a2a-version': '9.9' } })).body.error.code).toBe(-32009)
  expect((await rpc(stage.host, get, { path: '/a2a/agents/nobody' })).status).toBe(404)
  const old = call('tasks/get', { id: randomUUID() })
  expect((await rpc(stage.host, old)).body.error).toEqual({ code: -32001, message: expect.any(String) })
})

it('takes JSON only', async () => {
  const headers = { 'content-type': 'text/plain' }
  expect((await rpc(stage.host, call('tasks/get', { id: 'x' }), { headers })).body.error.code).toBe(-32005)
})

it('takes no request above its limit', async () => {
  const answer = await rpc(
    stage.host,
    call('message/send', { message: { ...hi, parts: [{ kind: 'text', text: big }] } }),
  )
  expect(answer.status).toBe(413)
})

it('opens no more streams than it may', async () => {
  const gate = Promise.withResolvers<void>()
  async function* text() {
    yield 'One'
    await gate.promise
  }
  stage.fake.script({ text: text() })
  const streamed = (messageId: string) => call('message/stream', { message: { ...hi, messageId } })
  const first = await stage.post('/a2a', streamed(randomUUID()))
  expect(first.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const second = await rpc(stage.host, streamed(randomUUID()))
  expect(second.body.error).toMatchObject({ code: -32000, message: expect.stringContaining('a2a.max_streams') })
  gate.resolve()
  expect(await first.text()).toContain('"state":"completed"')
})

it('lists tasks by pages, the latest first', async () => {
  const context = { contextId: randomUUID() }
  for (const n of [1, 2, 3]) {
    stage.fake.script({ text: `Answer ${n}` })
    await rpc(
      stage.host,
      call('SendMessage', {
        message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: `${n}` }], ...context },
      }),
    )
  }
  const seen: string[] = []
  let pageToken = ''
  do {
    const { body } = await rpc(
      stage.host,
      call('ListTasks', { ...context, pageSize: 2, pageToken, includeArtifacts: true }),
    )
    expect(body.result).toMatchObject({ totalSize: 3, pageSize: 2 })
    seen.push(...body.result.tasks.map((task: Json) => task.artifacts[0].parts[0].text))
    pageToken = body.result.nextPageToken
  } while (pageToken !== '')
  expect(seen).toEqual(['Answer 3', 'Answer 2', 'Answer 1'])
  const { body } = await rpc(stage.host, call('ListTasks', { ...context, status: 'TASK_STATE_FAILED' }))
  expect(body.result).toMatchObject({ tasks: [], totalSize: 0, nextPageToken: '' })
})

it('writes down that a task was received, and counts what came of it', async () => {
  const { body: trail } = await ask('GET', '/api/audit/recent?limit=20&event_type=a2a_task_received')
  expect(trail.entries[0]).toMatchObject({
    event_type: 'a2a_task_received',
    details: expect.stringContaining('over A2A'),
  })
  const metrics = await (await stage.host.fetch('/api/metrics')).text()
  expect(metrics).toMatch(/svc_a2a_tasks_total\{state="completed"\} [1-9]/)
})
