import { randomUUID } from 'node:crypto'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { otherRequirements } from './tck-1.0.ts'

// The mandatory requirements of the A2A Technology Compatibility Kit by their ids, each checked against the daemon.

let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'webhooks', 'approvals'],
    fetch: async () => new Response('', { status: 204 }),
    config: { rate_limit: { tokens_per_minute: 1_000_000 } },
  })
  await test.spawn('echo')
})
afterAll(() => test[Symbol.asyncDispose]())

const post = (body: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  test.fetch('/a2a', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
async function call(method: string, params: unknown, headers = { 'a2a-version': '1.0' }): Promise<Json> {
  return (await post(JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method, params }), headers)).json() as Promise<Json>
}
const message = (text = 'hello', more: object = {}) => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})
const send = async (more: object = {}, configuration?: object): Promise<Json> =>
  (await call('SendMessage', { message: message('hello', more), configuration })).result.task
const code = async (method: string, params: unknown): Promise<number> => (await call(method, params)).error?.code
async function stream(method: string, params: unknown): Promise<{ readonly type: string; readonly events: Json[] }> {
  const answer = await post(JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method, params }), { 'a2a-version': '1.0' })
  const events = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => JSON.parse(line.slice(5)))
  return { type: answer.headers.get('content-type') ?? '', events }
}
/** A task that works until the work of the test is done. */
async function whileWorking(work: (task: Json, finish: () => void) => Promise<void>): Promise<void> {
  const gate = Promise.withResolvers<void>()
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* (_request, signal) {
    signal.addEventListener('abort', () => gate.resolve(), { once: true })
    await gate.promise
    signal.throwIfAborted()
    yield { type: 'text', delta: 'late' }
    yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
  })
  try {
    await work(await send({}, { returnImmediately: true }), () => gate.resolve())
  } finally {
    gate.resolve()
  }
}
const push = { url: 'https://hooks.example.com/a2a', token: 't' }
const card = async (version = '1.0'): Promise<Json> =>
  (await test.request<Json>('GET', '/.well-known/agent-card.json', undefined, { 'a2a-version': version })).body
const details = (error: Json): Json[] => error.data ?? []

type Row = readonly [ids: string, what: string, check: () => Promise<void>]
const cards: readonly Row[] = [
  [
    'CARD-DISC-001 CARD-STRUCT-001',
    'the card is there and has its required fields',
    async () => {
      const shown = await card()
      for (const field of ['name', 'description', 'version']) expect(shown[field]).toEqual(expect.any(String))
      for (const field of ['supportedInterfaces', 'defaultInputModes', 'defaultOutputModes', 'skills'])
        expect(shown[field].length).toBeGreaterThan(0)
      expect(shown.capabilities).toEqual(expect.any(Object))
      for (const old of ['url', 'preferredTransport', 'protocolVersion']) expect(shown).not.toHaveProperty(old)
    },
  ],
  [
    'CARD-PROTO-001 CARD-PROTO-002 BIND-FIELD-001',
    'the card names each protocol with its address',
    async () => {
      for (const each of (await card()).supportedInterfaces)
        expect(each).toEqual({
          url: expect.stringMatching(/^https?:/),
          protocolBinding: 'JSONRPC',
          protocolVersion: expect.any(String),
        })
    },
  ],
]
const wire: readonly Row[] = [
  [
    'JSONRPC-FMT-001 JSONRPC-FMT-002 JSONRPC-SVC-001',
    'answers are JSON-RPC 2.0 with the id of the request',
    async () => {
      for (const id of ['text', 17]) {
        const answer = await post(JSON.stringify({ jsonrpc: '2.0', id, method: 'ListTasks', params: {} }), {
          'a2a-version': '1.0',
        })
        expect(answer.headers.get('content-type')).toContain('application/json')
        expect(await answer.json()).toEqual({ jsonrpc: '2.0', id, result: expect.any(Object) })
      }
    },
  ],
  [
    'JSONRPC-ERR-001',
    'errors are those of JSON-RPC',
    async () => {
      const bodies: readonly (readonly [string, number])[] = [
        ['{', -32700],
        ['{"jsonrpc":"1.0","id":1,"method":"ListTasks"}', -32600],
        ['{"jsonrpc":"2.0","id":1}', -32600],
        ['{"jsonrpc":"2.0","id":1,"method":"NoSuchMethod","params":{}}', -32601],
        ['{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}', -32602],
      ]
      for (const [body, expected] of bodies) {
        const { error } = (await (await post(body, { 'a2a-version': '1.0' })).json()) as Json
        expect([body, error]).toEqual([body, expect.objectContaining({ code: expected, message: expect.any(String) })])
      }
    },
  ],
  [
    'JSONRPC-ERR-002 JSONRPC-ERR-003 JSONRPC-SSE-002 CORE-ERR-001',
    'errors of A2A have codes of their own, with ErrorInfo',
    async () => {
      const { error } = await call('GetTask', { id: randomUUID() })
      expect(error.code).toBe(-32001)
      expect(details(error)).toContainEqual(
        expect.objectContaining({
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'TASK_NOT_FOUND',
          domain: 'a2a-protocol.org',
        }),
      )
    },
  ],
  [
    'CORE-ERR-002 DM-SERIAL-004',
    'what is missing in a message is refused',
    async () => {
      const whole = message()
      for (const field of ['messageId', 'role', 'parts'])
        expect([field, await code('SendMessage', { message: { ...whole, [field]: undefined } })]).toEqual([
          field,
          -32602,
        ])
      expect(await code('SendMessage', { message: { ...whole, parts: [] } })).toBe(-32602)
    },
  ],
  [
    'JSONRPC-SVC-002 VER-SERVER-001 VER-SERVER-003',
    'A2A-Version decides, and 0.3 is meant without it',
    async () => {
      expect((await call('SendMessage', { message: message() })).result.task.status.state).toBe('TASK_STATE_COMPLETED')
      const old = { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
      for (const headers of [{}, { 'a2a-version': '' }, { 'a2a-version': '0.3' }])
        expect(
          (await call('message/send', { message: { ...old, messageId: randomUUID() } }, headers as never)).result,
        ).toMatchObject({
          kind: 'task',
          status: { state: 'completed' },
        })
    },
  ],
  [
    'VER-SERVER-002',
    'another version is refused by name',
    async () => {
      expect((await call('ListTasks', {}, { 'a2a-version': '99.0' })).error.code).toBe(-32009)
    },
  ],
]
const sending: readonly Row[] = [
  [
    'CORE-SEND-001 CORE-EXECUTION-MODE-001 DM-TASK-001 DM-TASK-002 DM-STATUS-001 DM-SERIAL-001 DM-SERIAL-002 DM-SERIAL-003',
    'a message becomes a task that is waited for',
    async () => {
      expect(await send()).toMatchObject({
        id: expect.stringMatching(/./),
        contextId: expect.stringMatching(/./),
        status: { state: 'TASK_STATE_COMPLETED', timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) },
      })
    },
  ],
  [
    'DM-ART-001 DM-PART-001',
    'its answer is an artifact with one content in each part',
    async () => {
      for (const artifact of (await send()).artifacts) {
        expect(artifact.artifactId).toMatch(/./)
        for (const part of artifact.parts)
          expect(['text', 'raw', 'url', 'data'].filter((name) => name in part)).toHaveLength(1)
      }
    },
  ],
  [
    'DM-MSG-001 DM-MSG-002',
    'messages of its history have their fields',
    async () => {
      const { history } = await send({}, { historyLength: 5 })
      expect(history.length).toBeGreaterThan(0)
      for (const each of history)
        expect(each).toMatchObject({
          messageId: expect.any(String),
          role: expect.stringMatching(/^ROLE_(USER|AGENT)$/),
          parts: expect.any(Array),
        })
    },
  ],
  [
    'CORE-EXECUTION-MODE-002',
    'it is not waited for with returnImmediately',
    () =>
      whileWorking(async ({ status }) => {
        expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(status.state)
      }),
  ],
  [
    'CORE-SEND-002',
    'a task that has ended takes no message',
    async () => {
      const { id: taskId, contextId } = await send()
      expect(await code('SendMessage', { message: message('more', { taskId, contextId }) })).toBe(-32004)
    },
  ],
  [
    'CORE-SEND-003',
    'an unknown media type is refused',
    async () => {
      const parts = [{ raw: 'AAAA', mediaType: 'application/x-unsupported-tck-type', filename: 'x' }]
      expect(await code('SendMessage', { message: message('', { parts }) })).toBe(-32005)
    },
  ],
  [
    'CORE-MULTI-001a CORE-MULTI-003',
    'each task has an id and a context of its own',
    async () => {
      const [one, two] = [await send(), await send()]
      expect(new Set([one.id, two.id, one.contextId, two.contextId]).size).toBe(4)
    },
  ],
  [
    'CORE-MULTI-004',
    'an unknown task takes no message',
    async () => {
      expect(await code('SendMessage', { message: message('x', { taskId: randomUUID() }) })).toBe(-32001)
    },
  ],
  [
    'CORE-MULTI-005',
    'the context is that of the task when only the task is named',
    () =>
      whileWorking(async ({ id, contextId }) => {
        const { result, error } = await call('SendMessage', {
          message: message('x', { taskId: id }),
          configuration: { returnImmediately: true },
        })
        if (error) expect(error.code).toBe(-32004)
        else expect(result.task.contextId).toBe(contextId)
      }),
  ],
  [
    'CORE-MULTI-006',
    'a task of another context is refused',
    () =>
      whileWorking(async ({ id }) => {
        expect(await code('SendMessage', { message: message('x', { taskId: id, contextId: randomUUID() }) })).toBe(
          -32602,
        )
      }),
  ],
]
const tasks: readonly Row[] = [
  [
    'CORE-GET-001 CORE-GET-002',
    'a task is found by its id, and no other',
    async () => {
      const { id } = await send()
      expect((await call('GetTask', { id })).result).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } })
      expect(await code('GetTask', { id: randomUUID() })).toBe(-32001)
    },
  ],
  [
    'CORE-HIST-002',
    'no more of the history is shown than was asked for',
    async () => {
      const { id } = await send()
      for (const historyLength of [0, 1])
        expect(((await call('GetTask', { id, historyLength })).result.history ?? []).length).toBeLessThanOrEqual(
          historyLength,
        )
    },
  ],
  [
    'CORE-LIST-002 CORE-LIST-003 CORE-LIST-004',
    'tasks are listed page by page, the newest first',
    async () => {
      const made = [await send(), await send(), await send()]
      const contextId = made[0]?.contextId
      expect((await call('ListTasks', { contextId })).result).toMatchObject({
        tasks: [{ id: made[0]?.id }],
        nextPageToken: '',
      })
      const ids: string[] = []
      const times: string[] = []
      let pageToken = ''
      do {
        const { result } = await call('ListTasks', { pageSize: 2, ...(pageToken && { pageToken }) })
        ids.push(...result.tasks.map(({ id }: Json) => id))
        times.push(...result.tasks.map(({ status }: Json) => status.timestamp))
        pageToken = result.nextPageToken
      } while (pageToken !== '')
      expect(new Set(ids).size).toBe(ids.length)
      expect(ids).toEqual(expect.arrayContaining(made.map(({ id }) => id)))
      expect(times).toEqual(times.toSorted().toReversed())
    },
  ],
  [
    'CORE-LIST-005',
    'artifacts are listed only when they are asked for',
    async () => {
      const { contextId } = await send()
      const [without] = (await call('ListTasks', { contextId })).result.tasks
      expect(without).not.toHaveProperty('artifacts')
      const [whole] = (await call('ListTasks', { contextId, includeArtifacts: true })).result.tasks
      expect(whole.artifacts).toHaveLength(1)
    },
  ],
  [
    'CORE-CANCEL-001',
    'a task that works is cancelled',
    () =>
      whileWorking(async ({ id }) => {
        expect((await call('CancelTask', { id })).result.status.state).toBe('TASK_STATE_CANCELED')
      }),
  ],
  [
    'CORE-CANCEL-002 CORE-CANCEL-003',
    'one that has ended or is unknown is not',
    async () => {
      expect(await code('CancelTask', { id: (await send()).id })).toBe(-32002)
      expect(await code('CancelTask', { id: randomUUID() })).toBe(-32001)
    },
  ],
]
const streams: readonly Row[] = [
  [
    'CORE-STREAM-001 CORE-STREAM-003 JSONRPC-SSE-001 STREAM-ORDER-001',
    'a stream begins with the task and ends with its last state',
    async () => {
      const { type, events } = await stream('SendStreamingMessage', { message: message() })
      expect(type).toContain('text/event-stream')
      const results = events.map(({ result }) => result)
      expect(results[0]).toHaveProperty('task')
      expect((results.at(-1)?.statusUpdate ?? results.at(-1)?.task)?.status.state).toBe('TASK_STATE_COMPLETED')
      for (const event of events) expect(event).toMatchObject({ jsonrpc: '2.0', id: 'r-1' })
    },
  ],
  [
    'STREAM-SUB-001 STREAM-SUB-002 STREAM-ORDER-002 STREAM-ORDER-003 STREAM-ORDER-004',
    'all streams of a task tell the same from the task to its end, also when one is closed',
    () =>
      whileWorking(async ({ id }, finish) => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method: 'SubscribeToTask', params: { id } })
        const closed = await post(body, { 'a2a-version': '1.0' })
        const both = [stream('SubscribeToTask', { id }), stream('SubscribeToTask', { id })]
        await closed.body?.cancel()
        finish()
        const [one, two] = (await Promise.all(both)).map(({ events }) => events.map(({ result }) => result))
        for (const results of [one, two]) {
          expect(results?.[0]?.task).toMatchObject({ id })
          expect(results?.at(-1)?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED')
        }
        expect(two?.slice(1)).toEqual(one?.slice(1))
      }),
  ],
  [
    'STREAM-SUB-003',
    'a task that has ended has no stream',
    async () => {
      expect(await code('SubscribeToTask', { id: (await send()).id })).toBe(-32004)
    },
  ],
  [
    'STREAM-SUB-004',
    'nor has an unknown one',
    async () => {
      expect(await code('SubscribeToTask', { id: randomUUID() })).toBe(-32001)
    },
  ],
]
const notifications: readonly Row[] = [
  [
    'PUSH-CREATE-001 PUSH-GET-001 PUSH-GET-002 PUSH-LIST-001 PUSH-DEL-001 PUSH-DEL-002',
    'addresses to notify are made, read, listed and deleted',
    () =>
      whileWorking(async ({ id: taskId }) => {
        const { result } = await call('CreateTaskPushNotificationConfig', { taskId, ...push })
        expect(result).toMatchObject({ taskId, url: push.url, id: expect.stringMatching(/./) })
        const { id } = result
        expect((await call('GetTaskPushNotificationConfig', { taskId, id })).result).toMatchObject({
          id,
          url: push.url,
        })
        expect((await call('ListTaskPushNotificationConfigs', { taskId })).result.configs).toMatchObject([{ id }])
        for (let time = 0; time < 2; time++)
          expect(await call('DeleteTaskPushNotificationConfig', { taskId, id })).not.toHaveProperty('error')
        expect(await code('GetTaskPushNotificationConfig', { taskId, id })).toEqual(expect.any(Number))
      }),
  ],
]

const groups = { cards, wire, sending, tasks, streams, notifications }
describe.each(Object.entries(groups))('1.0: %s', (_, rows) => {
  it.each(rows)('%s: %s', (_ids, _what, check) => check())
})

it('1.0: every requirement of the suite is a row or has a reason, and none has both', () => {
  const rows = Object.values(groups).flatMap((each) => each.flatMap(([ids]) => ids.split(' ')))
  const all = [...rows, ...Object.keys(otherRequirements)]
  expect(all.toSorted()).toEqual([...new Set(all)].toSorted())
  expect(all).toHaveLength(114)
})

const recommended: readonly Row[] = [
  [
    'CARD-CACHE-001 CARD-CACHE-002',
    'the card may be kept, and is not sent again while it is the same',
    async () => {
      const path = '/.well-known/agent-card.json'
      const { headers } = await test.request('GET', path)
      const etag = headers.get('etag') ?? ''
      expect([headers.get('cache-control'), etag]).toEqual([
        expect.stringContaining('max-age'),
        expect.stringMatching(/^"/),
      ])
      const again = await test.request('GET', path, undefined, { 'if-none-match': `W/${etag}` })
      expect(again).toMatchObject({ status: 304, body: undefined })
      expect(again.headers.get('etag')).toBe(etag)
      const other = { 'if-none-match': etag, 'a2a-version': '1.0' }
      expect(await test.request('GET', path, undefined, other)).toMatchObject({ status: 200 })
    },
  ],
]
describe('1.0: recommended', () => {
  it.each(recommended)('%s: %s', (_ids, _what, check) => check())
})

const sendOld = (more: object = {}, configuration?: object): Promise<Json> =>
  call(
    'message/send',
    {
      message: {
        kind: 'message',
        messageId: randomUUID(),
        role: 'user',
        parts: [{ kind: 'text', text: 'hello' }],
        ...more,
      },
      configuration,
    },
    {} as never,
  )
const old = (method: string, params: unknown): Promise<Json> => call(method, params, {} as never)
const mandatory: readonly Row[] = [
  [
    'test_agent_card_available test_mandatory_fields_present test_mandatory_field_types',
    'the card has its fields',
    async () => {
      const shown = await card('0.3')
      for (const field of ['name', 'description', 'url', 'version', 'protocolVersion', 'preferredTransport'])
        expect([field, shown[field]]).toEqual([field, expect.any(String)])
      for (const field of ['defaultInputModes', 'defaultOutputModes', 'skills'])
        expect(shown[field].length).toBeGreaterThan(0)
      for (const skill of shown.skills)
        expect(skill).toMatchObject({
          id: expect.any(String),
          name: expect.any(String),
          description: expect.any(String),
          tags: expect.any(Array),
        })
    },
  ],
  [
    'test_message_send_valid_text',
    'a text becomes a task',
    async () => {
      expect((await sendOld()).result).toMatchObject({
        kind: 'task',
        id: expect.any(String),
        status: { state: 'completed' },
      })
    },
  ],
  [
    'test_message_send_invalid_params',
    'a message without parts is refused',
    async () => {
      expect((await sendOld({ parts: undefined })).error.code).toBe(-32602)
    },
  ],
  [
    'test_tasks_get_valid test_tasks_get_with_history_length test_tasks_get_nonexistent',
    'tasks/get',
    async () => {
      const { id } = (await sendOld()).result
      expect((await old('tasks/get', { id, historyLength: 1 })).result).toMatchObject({
        kind: 'task',
        id,
        history: [{ kind: 'message' }],
      })
      expect((await old('tasks/get', { id: randomUUID() })).error.code).toBe(-32001)
    },
  ],
  [
    'test_tasks_cancel_valid test_tasks_cancel_nonexistent',
    'tasks/cancel',
    async () => {
      await whileWorking(async ({ id }) => {
        expect((await old('tasks/cancel', { id })).result.status.state).toBe('canceled')
      })
      expect((await old('tasks/cancel', { id: randomUUID() })).error.code).toBe(-32001)
    },
  ],
  [
    'test_rejects_malformed_json test_rejects_invalid_json_rpc_requests test_rejects_unknown_method test_rejects_invalid_params',
    'errors of JSON-RPC',
    async () => {
      const bodies: readonly (readonly [string, number])[] = [
        ['{"jsonrpc": "2.0", "method": "message/send", "params": {', -32700],
        ['{"method":"message/send","params":{}}', -32600],
        ['{"jsonrpc":"2.0","id":{},"method":"message/send","params":{}}', -32600],
        ['{"jsonrpc":"2.0","id":1,"method":"nonexistent/method","params":{}}', -32601],
        ['{"jsonrpc":"2.0","id":1,"method":"message/send","params":"text"}', -32602],
      ]
      for (const [body, expected] of bodies)
        expect([body, ((await (await post(body)).json()) as Json).error.code]).toEqual([body, expected])
    },
  ],
  [
    'test_content_type_not_supported_error_32005',
    'an unknown media type is refused',
    async () => {
      const file = { kind: 'file', file: { name: 'x', mimeType: 'application/x-unknown', bytes: 'AAAA' } }
      expect((await sendOld({ parts: [file] })).error.code).toBe(-32005)
    },
  ],
  [
    'test_extended_agent_card_response_format',
    'the extended card is a card',
    async () => {
      expect((await old('agent/getAuthenticatedExtendedCard', {})).result).toMatchObject({
        name: expect.any(String),
        skills: expect.any(Array),
      })
    },
  ],
]
describe('0.3: mandatory', () => {
  it.each(mandatory)('%s: %s', (_ids, _what, check) => check())
})
