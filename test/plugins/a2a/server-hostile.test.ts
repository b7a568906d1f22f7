import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { rpc } from './stage.ts'

// Programs that mean harm, or are broken, ask the agents here.

let host: TestHost
let taskId: string
beforeAll(async () => {
  host = await startHost({
    memory: true,
    config: {
      default_provider: 'builtin',
      default_model: 'offline',
      rate_limit: { tokens_per_minute: 1_000_000 },
      outbound: { allow: ['127.0.0.1'] },
    },
  })
  taskId = (await call('SendMessage', { message: hello() })).result.task.id
})
afterAll(() => host[Symbol.asyncDispose]())

let count = 0
const hello = () => ({ messageId: `m-${++count}`, role: 'ROLE_USER', parts: [{ text: 'echo hi' }] })
const call = async (method: string, params: unknown): Promise<Json> =>
  (await rpc(host, { jsonrpc: '2.0', id: 1, method, params })).body

const deep = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
const hostile: readonly unknown[] = [
  null,
  -1,
  1e308,
  '\0',
  '\ud800',
  'x'.repeat(5_000),
  [[]],
  { $case: 'text', value: 'x' },
  JSON.parse('{"__proto__":{"admin":true},"constructor":1}'),
  deep(60),
]
/** The value with each of its fields, one at a time, made hostile. */
function* mutations(value: unknown): Generator<unknown> {
  for (const other of hostile) yield other
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value))
    for (const other of mutations(inner))
      yield Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other }
  yield { ...value, ['__proto__x']: 1, toString: 1, hasOwnProperty: 'x' }
}
const auth = { scheme: 'Bearer', credentials: 'c' }
const push = (): object => ({ url: 'http://127.0.0.1:9/', token: 't', id: 'p', authentication: auth })
const file = { file: { bytes: 'SGk=', name: 'a.txt', mimeType: 'text/plain' }, kind: 'file' }
const methods: readonly (readonly [string, () => object])[] = [
  [
    'SendMessage',
    () => ({
      message: {
        ...hello(),
        contextId: 'c',
        metadata: { a: 1 },
        extensions: ['x'],
        referenceTaskIds: [taskId],
        parts: [{ raw: 'SGk=', filename: 'a.txt', mediaType: 'text/plain', metadata: { b: 1 } }],
      },
      configuration: { acceptedOutputModes: ['text/plain'], historyLength: 1, returnImmediately: true },
      metadata: { c: 1 },
    }),
  ],
  ['SendMessage', () => ({ message: hello(), configuration: { taskPushNotificationConfig: push() } })],
  ['SendMessage', () => ({ message: { ...hello(), parts: [{ data: { a: [1] } }] } })],
  ['message/send', () => ({ message: { ...hello(), role: 'user', kind: 'message', parts: [file] } })],
  ['GetTask', () => ({ id: taskId, historyLength: 1 })],
  ['CancelTask', () => ({ id: taskId, metadata: { a: 1 } })],
  [
    'ListTasks',
    () => ({ contextId: 'c', status: 1, pageSize: 2, pageToken: 'x', statusTimestampAfter: '2020', historyLength: 1 }),
  ],
  ['CreateTaskPushNotificationConfig', () => ({ taskId, ...push() })],
  ['tasks/pushNotificationConfig/set', () => ({ taskId, pushNotificationConfig: push() })],
  ['GetTaskPushNotificationConfig', () => ({ taskId, id: 'p' })],
  ['tasks/pushNotificationConfig/list', () => ({ id: taskId })],
  ['DeleteTaskPushNotificationConfig', () => ({ taskId, id: 'p' })],
  ['GetExtendedAgentCard', () => ({ tenant: 'x' })],
]

it.each(methods)('%s with any field made hostile is never an internal error', async (method, params) => {
  const failed: string[] = []
  for (const mutated of mutations(params())) {
    const { status, body } = await rpc(host, { jsonrpc: '2.0', id: 1, method, params: mutated })
    const isAnswer =
      status === 200 && (body.result !== undefined || (body.error.code < 0 && body.error.code !== -32603))
    if (!isAnswer) failed.push(`${JSON.stringify(mutated)?.slice(0, 300)} → ${status} ${JSON.stringify(body)}`)
  }
  expect(failed).toEqual([])
  expect(({} as Json).admin).toBeUndefined()
})

it('metadata nested without end is refused', async () => {
  const params = `{"message":{"metadata":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}}`
  const { status, body } = await rpc(host, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${params}}`)
  expect([status, body.error.code]).toEqual([200, -32700])
})
it('a file of 50 MB is refused before it is read', async () => {
  const { status } = await rpc(host, { method: 'SendMessage', params: { raw: 'A'.repeat(50_000_000) } })
  expect(status).toBe(413)
})

/** Asks for a stream, and reads nothing of it. */
function openStream({ url }: TestHost): Promise<IncomingMessage> {
  const params = { message: { ...hello(), contextId: 'unread' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params })
  const headers = { 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const asking = request(`${url}/a2a`, { method: 'POST', headers, agent: false }, resolve)
    asking.on('error', reject).end(body)
  })
}
it('a stream that nobody reads holds up no task, and ends with its client', async () => {
  await using stage = await openChat({ memory: true, config: { a2a: { max_streams: 1 } } })
  async function* text() {
    for (let at = 0; at < 400; at++) yield 'x'.repeat(20_000)
  }
  stage.fake.script({ text: text() })
  const stream = await openStream(stage.host)
  const list = async (): Promise<Json> => {
    const body = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { contextId: 'unread' } }
    return (await rpc(stage.host, body)).body.result
  }
  await expect.poll(async () => (await list()).tasks[0]?.status.state).toBe('TASK_STATE_COMPLETED')
  const refused = await openStream(stage.host)
  expect(refused.headers['content-type']).toBe('application/json')
  expect((await list()).totalSize, 'what is refused makes no task').toBe(1)
  stream.destroy()
  stage.fake.script({ text: 'Yes.' })
  await expect.poll(async () => (await openStream(stage.host)).headers['content-type']).toContain('event-stream')
})
