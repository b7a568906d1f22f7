import { createHmac, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Json } from '../../support/json.ts'
import { connectSdk, message, rpc, send } from './stage.ts'

interface Notification {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: Json
}
const received: Notification[] = []
let status = 200
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString()
    received.push({ headers: request.headers, text, body: JSON.parse(text) })
    response.writeHead(status).end()
  })
})
let url: string
let stage: ChatStage
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/told?secret=1`
  stage = await openChat({
    memory: true,
    config: {
      a2a: { max_push_configs: 2 },
      outbound: { allow: ['127.0.0.1'] },
    },
  })
})
beforeEach(() => {
  received.length = 0
  status = 200
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  receiver.closeAllConnections()
  await new Promise((resolve) => {
    receiver.close(resolve)
  })
})

const none = { tenant: '', id: '', taskId: '', token: '', authentication: undefined }
const arrived = (count: number) => expect.poll(() => received.length).toBe(count)

it.each(['1.0', '0.3'] as const)('tells of the end of a task, signed and once, in the shape of %s', async (version) => {
  const client = await connectSdk(stage.host, version)
  stage.fake.script({ text: 'Done.' })
  const config = { ...none, url, token: 'the-token', authentication: { scheme: 'Bearer', credentials: 'the-bearer' } }
  const task = await send(client, message('work', {}, { taskPushNotificationConfig: config, returnImmediately: true }))
  await arrived(1)
  const [{ headers, text, body } = { headers: {}, text: '', body: undefined }] = received
  expect(headers).toMatchObject({
    'x-a2a-notification-token': 'the-token',
    authorization: 'Bearer the-bearer',
    'webhook-id': expect.any(String),
  })
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`
  const mac = createHmac('sha256', 'the-token').update(signed).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${mac}`)
  if (version === '1.0') expect(body.task).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_COMPLETED' } })
  else expect(body).toMatchObject({ kind: 'task', id: task.id, status: { state: 'completed' } })
  const { configs } = await client.listTaskPushNotificationConfig({
    tenant: '',
    taskId: task.id,
    pageSize: 0,
    pageToken: '',
  })
  expect(configs).toMatchObject([{ url, taskId: task.id }])
  expect(JSON.stringify(configs), 'secrets are never shown again').not.toMatch(/the-token|the-bearer/)
})

it('signs what has no token too, with a secret of the daemon that stays the same', async () => {
  const client = await connectSdk(stage.host, '1.0')
  stage.fake.script({ text: 'Done.' })
  const { id: taskId } = await send(client, message('unsigned?'))
  for (const id of ['one', 'two']) await client.createTaskPushNotificationConfig({ ...none, taskId, id, url })
  await arrived(2)
  for (const { headers } of received) {
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/)
    expect(headers).not.toHaveProperty('x-a2a-notification-token')
  }
})

it('takes the first of several schemes of 0.3, and prints nothing that a client wrote', async () => {
  const print = vi.spyOn(console, 'warn')
  stage.fake.script({ text: 'Done.' })
  const authentication = { schemes: ['Bearer', 'forged\n00:00:00 error [core] line'], credentials: 'c' }
  const params = {
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
    configuration: { pushNotificationConfig: { url, authentication } },
  }
  await rpc(stage.host, { jsonrpc: '2.0', id: 1, method: 'message/send', params })
  await arrived(1)
  expect(received[0]?.headers['authorization']).toBe('Bearer c')
  expect(print).not.toHaveBeenCalled()
  print.mockRestore()
})

it('sets, shows and removes addresses; what was removed is not told, what is added late is', async () => {
  const client = await connectSdk(stage.host, '1.0')
  const gate = Promise.withResolvers<void>()
  async function* text() {
    await gate.promise
    yield 'Late.'
  }
  stage.fake.script({ text: text() })
  const { id: taskId } = await send(client, message('slow', {}, { returnImmediately: true }))
  const kept = await client.createTaskPushNotificationConfig({ ...none, taskId, id: 'kept', url })
  expect(kept).toMatchObject({ id: 'kept', url })
  await client.createTaskPushNotificationConfig({ ...none, taskId, id: 'gone', url: `${url}&gone` })
  expect(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'gone' })).toMatchObject({ id: 'gone' })
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'gone' })
  await expect(client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'gone' })).rejects.toThrow(/no push/)
  gate.resolve()
  await arrived(1)
  await client.createTaskPushNotificationConfig({ ...none, taskId, id: 'late', url })
  await arrived(2)
  expect(received.map(({ body }) => body.task.id)).toEqual([taskId, taskId])
  const { body } = await stage.host.json('GET', '/api/audit/recent?limit=50&event_type=a2a_push_changed')
  expect(body.entries.length).toBeGreaterThanOrEqual(4)
  expect(JSON.stringify(body.entries)).not.toContain('secret=1')
})

it('keeps no more addresses of a task than it may', async () => {
  const client = await connectSdk(stage.host, '1.0')
  stage.fake.script({ text: 'Done.' })
  const { id: taskId } = await send(client, message('quick'))
  status = 410
  for (const id of ['a', 'b']) await client.createTaskPushNotificationConfig({ ...none, taskId, id, url })
  await expect(client.createTaskPushNotificationConfig({ ...none, taskId, id: 'c', url })).rejects.toThrow(
    /a2a\.max_push_configs/,
  )
  await arrived(2)
})

it('tries again what a receiver did not take, with the same id', async () => {
  const client = await connectSdk(stage.host, '1.0')
  status = 503
  stage.fake.script({ text: 'Done.' })
  const { id: taskId } = await send(client, message('again'))
  await client.createTaskPushNotificationConfig({ ...none, taskId, id: 'x', url })
  await arrived(1)
  status = 200
  await expect.poll(() => received.length).toBe(2)
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})

it.each([
  ['an address of a private network', { url: 'http://10.0.0.1/' }],
  ['an address of a metadata service', { url: 'http://169.254.169.254/latest' }],
  ['another scheme', { url: 'file:///etc/passwd' }],
  ['no address', { url: 'hello' }],
  ['a token that breaks out of its header', { url: 'URL', token: 'a\r\nx-evil: 1' }],
  ['a scheme of two words', { url: 'URL', authentication: { scheme: 'Bearer x', credentials: 'y' } }],
  ['an id of signs', { url: 'URL', id: '../../x' }],
])('refuses %s', async (_, config: Record<string, unknown>) => {
  stage.fake.script({ text: 'Done.' })
  const client = await connectSdk(stage.host, '1.0')
  const { id: taskId } = await send(client, message('quick'))
  const params = { ...config, ...(config['url'] === 'URL' && { url }), taskId }
  const set = { jsonrpc: '2.0', id: 1, method: 'CreateTaskPushNotificationConfig', params }
  expect((await rpc(stage.host, set)).body.error).toMatchObject({ code: -32602 })
  const messageId = randomUUID()
  const sent = { message: { messageId, role: 'ROLE_USER', parts: [{ text: 'x' }] } }
  const configuration = { taskPushNotificationConfig: { ...params, taskId: '' } }
  const begun = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { ...sent, configuration } }
  expect((await rpc(stage.host, begun)).body.error, 'and no task is made').toMatchObject({ code: -32602 })
  expect(received).toEqual([])
})
