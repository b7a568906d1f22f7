import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { operator, pair, startPairing } from '../pairing/devices.ts'
import type { Device } from '../pairing/devices.ts'
import { rpc } from './stage.ts'

// Tasks, contexts and notifications are those of the caller that began them; the key has all.

type Headers = Readonly<Record<string, string>>
let host: TestHost
let phone: Device
let tablet: Device
let task: Json
beforeAll(async () => {
  const config = {
    default_provider: 'builtin',
    default_model: 'offline',
    a2a: { max_streams: 8 },
    plugins: { approvals: { policy: 'always' } },
  }
  host = await startPairing({}, { memory: true, config })
  ;[phone, tablet] = [await pair(host, 'phone'), await pair(host, 'tablet')]
  task = await send(phone.bearer, 'echo my secret plan', 'shared-context')
})
afterAll(() => host[Symbol.asyncDispose]())

const call = async (headers: Headers, method: string, params: object): Promise<Json> =>
  (await rpc(host, { jsonrpc: '2.0', id: 1, method, params }, { headers })).body
async function send(headers: Headers, text: string, contextId?: string): Promise<Json> {
  const message = { messageId: 'the-same-id', role: 'ROLE_USER', parts: [{ text }], ...(contextId && { contextId }) }
  return (await call(headers, 'SendMessage', { message })).result.task
}
const pushConfig = { url: 'https://example.com/told', token: 't' }

describe('what another caller began', () => {
  it.each<readonly [string, () => object]>([
    ['GetTask', () => ({ id: task.id })],
    ['CancelTask', () => ({ id: task.id })],
    ['SubscribeToTask', () => ({ id: task.id })],
    ['CreateTaskPushNotificationConfig', () => ({ taskId: task.id, ...pushConfig })],
    ['GetTaskPushNotificationConfig', () => ({ taskId: task.id, id: 'x' })],
    ['ListTaskPushNotificationConfigs', () => ({ taskId: task.id })],
    ['DeleteTaskPushNotificationConfig', () => ({ taskId: task.id, id: 'x' })],
    ['tasks/get', () => ({ id: task.id })],
    ['tasks/cancel', () => ({ id: task.id })],
    ['tasks/resubscribe', () => ({ id: task.id })],
    ['tasks/pushNotificationConfig/set', () => ({ taskId: task.id, pushNotificationConfig: pushConfig })],
    ['tasks/pushNotificationConfig/list', () => ({ id: task.id })],
    [
      'SendMessage',
      () => ({ message: { messageId: 'm', taskId: task.id, role: 'ROLE_USER', parts: [{ text: 'and me?' }] } }),
    ],
  ])('is not there for %s', async (method, params) => {
    const { error } = await call(tablet.bearer, method, params())
    expect([error.code, error.message]).toEqual([-32001, expect.stringContaining('Task not found')])
  })
  it.each([
    ['GET', ''],
    ['GET', '/messages'],
    ['POST', '/cancel'],
  ])('is not there for the row %s /a2a/tasks/{id}%s', async (method, path) => {
    const answer = await host.json(method, `/a2a/tasks/${task.id}${path}`, undefined, tablet.bearer)
    expect(answer).toMatchObject({ status: 404 })
    expect(JSON.stringify(answer.body)).not.toContain('secret plan')
  })
  it('is in no list', async () => {
    for (const params of [{}, { contextId: 'shared-context' }])
      expect((await call(tablet.bearer, 'ListTasks', params)).result).toMatchObject({ tasks: [], totalSize: 0 })
    expect((await host.json('GET', '/a2a/tasks', undefined, tablet.bearer)).body).toEqual({ tasks: [], total: 0 })
  })
})

it('the caller that began it, and whoever holds the key, have it', async () => {
  for (const headers of [phone.bearer, operator]) {
    expect((await call(headers, 'GetTask', { id: task.id })).result).toMatchObject({ id: task.id })
    expect((await call(headers, 'ListTasks', { contextId: 'shared-context' })).result.totalSize).toBe(1)
    expect((await host.json('GET', `/a2a/tasks/${task.id}`, undefined, headers)).status).toBe(200)
  }
})

it('a context of the same name is another conversation', async () => {
  const sessions = async () => (await host.json('GET', '/api/sessions', undefined, operator)).body.sessions.length
  const before = await sessions()
  const other = await send(tablet.bearer, 'echo my secret plan', 'shared-context')
  expect(other.id).not.toBe(task.id)
  expect(await sessions()).toBe(before + 1)
  expect((await send(phone.bearer, 'echo my secret plan', 'shared-context')).id).toBe(task.id)
  expect(await sessions()).toBe(before + 1)
})

it.each<readonly [string, string, object]>([
  ['message', 'SendMessage', { message: { messageId: 'a\0b', role: 'ROLE_USER', parts: [{ text: 'x' }] } }],
  [
    'context',
    'SendMessage',
    { message: { messageId: 'a', contextId: 'a\nb', role: 'ROLE_USER', parts: [{ text: 'x' }] } },
  ],
  ['task', 'GetTask', { id: 'a\0b' }],
  [
    'task of a message',
    'SendMessage',
    { message: { messageId: 'a', taskId: '\0', role: 'ROLE_USER', parts: [{ text: 'x' }] } },
  ],
  ['task, in 0.3,', 'tasks/get', { id: 'a\u0085b' }],
  ['listed context', 'ListTasks', { contextId: 'a\0b' }],
  ['half character in a listed context', 'ListTasks', { contextId: 'a\ud800' }],
  ['cancelled task', 'CancelTask', { id: '\u001b[2J' }],
])('a control character in the id of a %s is an invalid parameter', async (_, method, params) => {
  expect((await call(phone.bearer, method, params)).error).toMatchObject({ code: -32602 })
})
it('a caller leaves streams to the others', async () => {
  const closing = new AbortController()
  const open = async (bearer: Headers): Promise<string | null> => {
    const message = {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: [{ text: 'use file_write {"path":"a","content":"b"}' }],
    }
    const answer = await host.fetch('/a2a', {
      method: 'POST',
      signal: closing.signal,
      headers: { ...bearer, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }),
    })
    return answer.headers.get('content-type')
  }
  const stream = expect.stringContaining('event-stream')
  // Each waits for an approval.
  expect([await open(phone.bearer), await open(phone.bearer)]).toEqual([stream, stream])
  expect(await open(phone.bearer)).toBe('application/json')
  expect([await open(tablet.bearer), await open(operator)]).toEqual([stream, stream])
  closing.abort()
})

it('a control character in the id or address of a notification is an invalid parameter', async () => {
  for (const more of [{ id: 'a\0b' }, { url: 'https://example.com/\0' }, { id: 'a/b' }]) {
    const { error } = await call(phone.bearer, 'CreateTaskPushNotificationConfig', {
      taskId: task.id,
      ...pushConfig,
      ...more,
    })
    expect(error).toMatchObject({ code: -32602 })
  }
})
