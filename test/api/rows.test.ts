import { afterAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { parseEvents } from '../support/chat-stage.ts'
import type { Json } from '../support/json.ts'

/**
 * The rows of the interface's tables 4.1, 4.3, 4.10, 4.11, 4.12, 6.1 and 6.2 that these features answer, each with
 * its status and the fields it promises.
 */
const host = await startHost({ config: { default_provider: 'builtin', pairing: { enabled: true } } })
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})
const spawn = async (name: string): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\n` })).body
    .agent_id
const agent = await spawn('rows')
const doomed = [await spawn('doomed-one'), await spawn('doomed-two'), await spawn('doomed-three')]
await host.json('POST', `/api/agents/${agent}/message`, { message: 'echo first' })
const session: string = (await host.json('POST', `/api/agents/${agent}/sessions`, { label: 'kept' })).body.session_id
const spare: string = (await host.json('POST', `/api/agents/${agent}/sessions`, {})).body.session_id
await host.json('POST', `/api/agents/${agent}/sessions/${session}/switch`)
const goal: string = (await host.json('POST', '/api/goals', { title: 'first' })).body.id
const memory: string = (await host.json('POST', '/api/memory', { content: 'Likes water', agent_id: agent })).body
  .memories[0].id
const form = new FormData()
form.append('file', new Blob(['hello'], { type: 'text/plain' }), 'hello.txt')
const upload: { file_id: string } = await (
  await host.fetch(`/api/agents/${agent}/upload`, { method: 'POST', body: form })
).json()

const codeOf = async (): Promise<string> => (await host.json('POST', '/api/pairing/request')).body.pairing_code
const leaving: string = (await host.json('POST', '/api/pairing/complete', { pairing_code: await codeOf() })).body
  .device_id
const code = await codeOf()

const A = `/api/agents/${agent}`
const detail = ['id', 'name', 'state', 'created_at', 'session_id', 'model', 'capabilities', 'description', 'tags']
type Row = readonly [method: string, path: string, body: unknown, status: number, fields: readonly string[]]
const rows: readonly Row[] = [
  // 4.1
  [
    'GET',
    '/api/agents',
    undefined,
    200,
    ['0.id', '0.name', '0.state', '0.created_at', '0.model_provider', '0.model_name'],
  ],
  ['POST', '/api/agents', { manifest_toml: 'name = "row-made"' }, 201, ['agent_id', 'name']],
  [
    'POST',
    '/api/agents/bulk',
    { agents: [{ manifest_toml: 'name = "row-bulk"' }, { manifest_toml: 'name = ' }] },
    200,
    ['total', 'succeeded', 'failed', 'results.0.agent_id', 'results.1.error'],
  ],
  [
    'POST',
    '/api/agents/bulk/stop',
    { agent_ids: [doomed[0]] },
    200,
    ['total', 'succeeded', 'failed', 'results.0.success'],
  ],
  [
    'POST',
    '/api/agents/bulk/start',
    { agent_ids: [doomed[0]] },
    200,
    ['total', 'succeeded', 'failed', 'results.0.success'],
  ],
  ['DELETE', '/api/agents/bulk', [doomed[0]], 200, ['total', 'succeeded', 'failed', 'results.0.agent_id']],
  [
    'DELETE',
    '/api/agents/bulk',
    { agent_ids: [doomed[1]] },
    200,
    ['total', 'succeeded', 'failed', 'results.0.agent_id'],
  ],
  [
    'GET',
    A,
    undefined,
    200,
    [...detail, 'model.provider', 'model.model', 'capabilities.tools', 'capabilities.network'],
  ],
  ['DELETE', `/api/agents/${doomed[2]}`, undefined, 200, ['status', 'agent_id']],
  ['PATCH', A, { description: 'patched' }, 200, ['status', 'agent_id']],
  [
    'PUT',
    `${A}/update`,
    { description: 'updated', system_prompt: 'Be brief.', tags: ['row'] },
    200,
    ['status', 'agent_id'],
  ],
  ['PUT', `${A}/mode`, { mode: 'Stable' }, 200, ['status', 'mode', 'agent_id']],
  ['PUT', `${A}/mode`, { mode: 'Normal' }, 200, ['status', 'mode', 'agent_id']],
  ['PATCH', `${A}/identity`, { avatar: 'https://example.com/a.png', persona: 'dry' }, 200, ['status', 'agent_id']],
  ['PATCH', `${A}/config`, { temperature: 0.2 }, 200, ['status', 'agent_id']],
  ['POST', `${A}/clone`, undefined, 201, ['agent_id', 'name']],
  [
    'POST',
    `${A}/message`,
    { message: 'echo hello' },
    200,
    ['response', 'input_tokens', 'output_tokens', 'iterations', 'cost_usd', 'session_id'],
  ],
  [
    'GET',
    `${A}/session`,
    undefined,
    200,
    ['session_id', 'agent_id', 'message_count', 'context_window_tokens', 'messages.0.role', 'messages.0.content'],
  ],
  [
    'GET',
    `${A}/sessions`,
    undefined,
    200,
    [
      'sessions.0.session_id',
      'sessions.0.message_count',
      'sessions.0.created_at',
      'sessions.0.label',
      'sessions.0.active',
    ],
  ],
  ['POST', `${A}/sessions`, { label: 'another' }, 201, ['session_id', 'label']],
  ['POST', `${A}/sessions/${session}/switch`, undefined, 200, ['status', 'message']],
  ['GET', `${A}/sessions/by-label/kept`, undefined, 200, ['session_id', 'agent_id', 'label', 'message_count']],
  ['POST', `${A}/session/compact`, undefined, 200, ['status', 'message']],
  ['POST', `${A}/session/reset`, undefined, 200, ['status', 'agent_id', 'new_session_id']],
  ['DELETE', `${A}/history`, undefined, 200, ['status']],
  ['POST', `${A}/stop`, undefined, 200, ['status', 'message']],
  ['PUT', `${A}/model`, { model: 'builtin/offline' }, 200, ['status', 'model']],
  ['GET', `${A}/tools`, undefined, 200, ['tools', 'tool_allowlist', 'tool_blocklist']],
  ['PUT', `${A}/tools`, { tools: ['kv_get'] }, 200, ['status', 'tools.0']],
  ['GET', `${A}/skills`, undefined, 200, ['assigned', 'available', 'mode']],
  ['PUT', `${A}/skills`, { skills: [] }, 200, ['status', 'skills']],
  ['GET', `${A}/mcp_servers`, undefined, 200, ['assigned', 'available', 'mode']],
  ['PUT', `${A}/mcp_servers`, { mcp_servers: [] }, 200, ['status', 'mcp_servers']],
  ['GET', `${A}/traces`, undefined, 200, ['traces']],
  ['GET', `${A}/metrics`, undefined, 200, ['agent_id', 'name', 'token_usage', 'error_count', 'avg_response_time_ms']],
  ['GET', `${A}/logs`, undefined, 200, ['agent_id', 'count', 'logs.0.timestamp', 'logs.0.action', 'logs.0.detail']],
  ['GET', `${A}/deliveries`, undefined, 200, ['agent_id', 'count', 'receipts']],
  ['PUT', `${A}/files/notes.md`, { content: 'hello' }, 200, ['status', 'name', 'size_bytes']],
  ['GET', `${A}/files`, undefined, 200, ['files.0.name', 'files.0.size_bytes']],
  ['GET', `${A}/files/notes.md`, undefined, 200, ['name', 'content', 'size_bytes']],
  ['DELETE', `${A}/files/notes.md`, undefined, 200, ['status', 'name']],
  ['GET', `${A}/memory/export`, undefined, 200, ['agent_id', 'version', 'kv']],
  ['POST', `${A}/memory/import`, { kv: { imported: 1 } }, 200, ['status', 'keys_imported']],
  // 4.3
  ['PUT', `/api/memory/agents/${agent}/kv/row`, { value: { any: ['json', 1, null] } }, 200, ['status', 'key']],
  ['GET', `/api/memory/agents/${agent}/kv`, undefined, 200, ['kv_pairs.0.key', 'kv_pairs.0.value']],
  ['GET', `/api/memory/agents/${agent}/kv/row`, undefined, 200, ['key', 'value.any']],
  ['DELETE', `/api/memory/agents/${agent}/kv/row`, undefined, 200, ['status', 'key']],
  [
    'POST',
    '/api/memory',
    { content: 'Likes tea', agent_id: agent, user_id: 'ann', tags: ['t'] },
    201,
    ['added', 'memories.0.id'],
  ],
  ['GET', '/api/memory', undefined, 200, ['memories.0.content', 'total', 'offset', 'limit', 'proactive_enabled']],
  ['GET', '/api/memory/search?q=tea', undefined, 200, ['memories.0.source.kind', 'memories.0.score', 'index']],
  ['GET', `/api/memory/agents/${agent}/search?q=tea`, undefined, 200, ['memories.0.id']],
  [
    'GET',
    '/api/memory/stats',
    undefined,
    200,
    ['total', 'user_count', 'categories', 'enabled', 'auto_memorize_enabled'],
  ],
  ['POST', '/api/memory/cleanup', undefined, 200, ['cleaned_up', 'deleted_count', 'session_ttl_hours']],
  ['POST', '/api/memory/decay', undefined, 200, ['decayed', 'decay_rate']],
  ['POST', '/api/memory/bulk-delete', { ids: ['nobody'] }, 200, ['deleted', 'failed', 'total']],
  ['PUT', `/api/memory/items/${memory}`, { content: 'Likes coffee' }, 200, ['updated', 'memory_id']],
  ['GET', `/api/memory/items/${memory}/history`, undefined, 200, ['memory_id', 'versions.1.content', 'version_count']],
  ['DELETE', `/api/memory/items/${memory}`, undefined, 200, ['status', 'memory_id']],
  ['GET', '/api/memory/user/ann', undefined, 200, ['memories.0.user_id']],
  ['GET', `/api/memory/agents/${agent}`, undefined, 200, ['memories.0.agent_id', 'total', 'offset', 'limit']],
  ['GET', `/api/memory/agents/${agent}/stats`, undefined, 200, ['total', 'agent_count']],
  ['GET', `/api/memory/agents/${agent}/count?level=user`, undefined, 200, ['agent_id', 'count', 'level']],
  ['GET', `/api/memory/agents/${agent}/duplicates`, undefined, 200, ['duplicate_groups', 'groups']],
  ['POST', `/api/memory/agents/${agent}/consolidate`, undefined, 200, ['consolidated', 'merged_count']],
  ['GET', `/api/memory/agents/${agent}/export`, undefined, 200, ['agent_id', 'count', 'memories.0.content']],
  ['POST', `/api/memory/agents/${agent}/import`, [{ content: 'Has a cat' }], 200, ['imported', 'agent_id']],
  ['DELETE', `/api/memory/agents/${agent}/level/user`, undefined, 200, ['status', 'deleted']],
  ['DELETE', `/api/memory/agents/${agent}`, undefined, 200, ['status', 'deleted']],
  // 4.10
  [
    'GET',
    '/api/sessions',
    undefined,
    200,
    [
      'sessions.0.id',
      'sessions.0.agent_id',
      'sessions.0.agent_name',
      'sessions.0.message_count',
      'sessions.0.created_at',
    ],
  ],
  [
    'GET',
    `/api/sessions/${session}`,
    undefined,
    200,
    ['session_id', 'agent_id', 'message_count', 'context_window_tokens', 'messages'],
  ],
  ['PUT', `/api/sessions/${session}/label`, { label: 'renamed' }, 200, []],
  ['POST', `/api/sessions/${session}/compact`, undefined, 200, ['status', 'message']],
  ['DELETE', `/api/sessions/${spare}`, undefined, 200, ['status', 'session_id']],
  ['POST', '/api/sessions/cleanup', undefined, 200, []],
  ['GET', '/api/sessions/search?q=hello', undefined, 200, ['results', 'complete']],
  ['POST', '/api/goals', { title: 'g', due_at: '2026-12-31T18:00:00Z' }, 201, ['id', 'title', 'status', 'due_at']],
  ['GET', '/api/goals', undefined, 200, ['items.0.id', 'total', 'offset', 'limit']],
  ['GET', `/api/goals/${goal}`, undefined, 200, ['id', 'title', 'status', 'progress', 'created_at', 'updated_at']],
  ['PUT', `/api/goals/${goal}`, { title: 'h', status: 'completed' }, 200, ['title', 'status']],
  ['GET', `/api/goals/${goal}/children`, undefined, 200, ['children', 'total']],
  ['DELETE', `/api/goals/${goal}`, undefined, 200, ['status', 'goal_id']],
  // 4.11 and the tools and turns beside them
  ['POST', '/api/comms/send', { to: `agent:${agent}`, content: 'echo hi' }, 200, ['ok', 'response', 'output_tokens']],
  ['POST', '/api/comms/task', { title: 't' }, 201, ['ok', 'task_id']],
  ['GET', '/api/comms/topology', undefined, 200, ['nodes.0.id', 'nodes.0.model', 'edges']],
  ['GET', '/api/comms/events', undefined, 200, ['0.id', '0.timestamp', '0.kind', '0.source_name', '0.detail']],
  ['GET', '/api/approvals', undefined, 200, ['approvals', 'total']],
  [
    'POST',
    '/api/approvals',
    { agent_id: agent, action: 'row', description: 'why', payload: { a: 1 } },
    201,
    ['id', 'status'],
  ],
  ['GET', '/api/tools', undefined, 200, ['tools.0', 'total']],
  ['GET', '/api/tools/kv_get', undefined, 200, ['name', 'description', 'input_schema']],
  ['GET', `${A}/turns`, undefined, 200, ['turns.0.turn_id', 'turns.0.state', 'turns.0.ahead']],
  ['GET', '/api/tasks/status', undefined, 200, ['pending', 'running', 'failed']],
  ['POST', '/api/tasks', { title: 'row', description: 'why' }, 201, ['id', 'title', 'status', 'labels']],
  ['GET', '/api/tasks', undefined, 200, ['tasks.0.id', 'total']],
  ['GET', '/api/tasks/list', undefined, 200, ['tasks.0.id', 'total']],
  ['POST', '/api/pairing/request', undefined, 200, ['pairing_code', 'expires_at']],
  [
    'POST',
    '/api/pairing/complete',
    { pairing_code: code },
    200,
    ['device_id', 'display_name', 'platform', 'paired_at', 'api_key'],
  ],
  [
    'GET',
    '/api/pairing/devices',
    undefined,
    200,
    [
      'devices.0.device_id',
      'devices.0.display_name',
      'devices.0.platform',
      'devices.0.paired_at',
      'devices.0.last_seen',
    ],
  ],
  ['DELETE', `/api/pairing/devices/${leaving}`, undefined, 200, ['ok', 'device_id']],
  // 4.12
  [
    'POST',
    '/v1/chat/completions',
    { model: 'svc:rows', messages: [{ role: 'user', content: 'echo hello' }] },
    200,
    [
      'id',
      'object',
      'created',
      'model',
      'choices.0.index',
      'choices.0.message.role',
      'choices.0.message.content',
      'choices.0.finish_reason',
      'usage.prompt_tokens',
      'usage.completion_tokens',
      'usage.total_tokens',
    ],
  ],
  ['GET', '/v1/models', undefined, 200, ['object', 'data.0.id', 'data.0.object', 'data.0.created', 'data.0.owned_by']],
]
const at = (value: unknown, path: string): unknown => path.split('.').reduce<Json>((found, key) => found?.[key], value)

describe('every row of the interface', () => {
  it.each(rows)('%s %s', async (method, path, body, status, fields) => {
    const answer = await host.json(method, path, body)
    expect([answer.status, answer.status >= 400 ? answer.body : '']).toEqual([status, ''])
    expect(fields.filter((field) => at(answer.body, field) === undefined)).toEqual([])
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  const unknown = '00000000-0000-4000-8000-000000000000'
  it.each(rows.filter(([, path]) => path.includes(agent)))(
    '%s %s of nobody is 404, of no UUID 400',
    async (method, path, body) => {
      expect((await host.json(method, path.replace(agent, unknown), body)).status).toBe(404)
      expect((await host.json(method, path.replace(agent, 'not-a-uuid'), body)).status).toBe(400)
    },
  )

  it('an upload is served as it was sent, and never as a page', async () => {
    const answer = await host.fetch(`/api/uploads/${upload.file_id}`)
    expect([
      answer.status,
      await answer.text(),
      answer.headers.get('content-disposition')?.startsWith('attachment'),
    ]).toEqual([200, 'hello', true])
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
  })

  it('a key that is not there is 404 with a flat error that names it', async () => {
    const { status, body } = await host.json('GET', `/api/memory/agents/${agent}/kv/nowhere`)
    expect(status).toBe(404)
    expect(body.error).toContain('nowhere')
  })
})

describe('the streams of 6.2', () => {
  it.each([
    ['POST', `${A}/message/stream`],
    ['GET', `${A}/stream?message=echo%20hello`],
  ])('%s %s: chunks, then done with usage', async (method, path) => {
    const answer = await host.fetch(path, {
      method,
      ...(method === 'POST'
        ? { headers: { 'content-type': 'application/json' }, body: '{"message":"echo hello"}' }
        : {}),
    })
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    const events = parseEvents(await answer.text())
    const chunks = events.filter(({ event }) => event === 'chunk')
    expect(chunks.map(({ data }) => data.content).join('')).toBe('hello')
    expect(chunks.every(({ data }) => data.done === false && data.type === 'chunk')).toBe(true)
    expect(events.at(-1)).toMatchObject({
      event: 'done',
      data: {
        type: 'done',
        done: true,
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      },
    })
  })

  it('the OpenAI stream begins with the role and ends with usage and [DONE]', async () => {
    const answer = await host.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'svc:rows', stream: true, messages: [{ role: 'user', content: 'echo hello' }] }),
    })
    const lines = (await answer.text())
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6))
    expect(lines.at(-1)).toBe('[DONE]')
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line))
    expect(chunks[0].choices[0].delta.role).toBe('assistant')
    expect(chunks.at(-1)).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ delta: {}, finish_reason: 'stop' }],
      usage: { total_tokens: expect.any(Number) },
    })
  })
})

describe('the frames of 6.1', () => {
  it('connected, thinking, text, response; pong; both forms and plain text; agents_updated without created_at', async () => {
    const socket = new WebSocket(`${host.url.replace('http', 'ws')}${A}/ws`)
    const frames: Json[] = []
    let wake = (): void => {}
    socket.addEventListener('message', ({ data }) => {
      frames.push(JSON.parse(String(data)))
      wake()
    })
    const next = async (type: string, from = 0): Promise<Json> => {
      for (;;) {
        const found = frames.slice(from).find((frame) => frame.type === type)
        if (found) return found
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
    expect(await next('connected')).toMatchObject({ agent_id: agent })
    socket.send('{"type":"ping"}')
    await next('pong')
    for (const text of [
      '{"type":"message","content":"echo one"}',
      '{"message":"echo one"}',
      '{"type":"message","content":{"text":"echo one"}}',
      'echo one',
    ]) {
      const from = frames.length
      socket.send(text)
      expect(await next('response', from)).toMatchObject({
        content: 'one',
        input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        iterations: 1,
        cost_usd: expect.anything(),
      })
      const types = frames
        .slice(from)
        .map(({ type }) => type)
        .filter((type) => type !== 'agents_updated')
      expect([types[0], types.at(-1)]).toEqual(['thinking', 'response'])
    }
    const { agents } = await next('agents_updated')
    expect(Object.keys(agents[0]).sort()).toEqual(['id', 'model_name', 'model_provider', 'name', 'state'])
    socket.close()
  })
})

it('takes requests that make something once with an Idempotency-Key', async () => {
  const bodies: Readonly<Record<string, unknown>> = {
    '/api/approvals': { agent_id: agent, tool_name: 'shell_exec', payload: { command: 'ls' } },
    '/api/bindings': { agent, match_rule: { channel: 'telegram' } },
    [`${A}/sessions`]: { label: 'monday' },
    [`${A}/session/reset`]: undefined,
    [`${A}/commands`]: { command: '/new' },
    '/api/agents/bulk': { agents: [{ manifest_toml: 'name = "bulk-once"' }, { manifest_toml: 'name = ' }] },
  }
  for (const [path, body] of Object.entries(bodies)) {
    const send = () => host.json('POST', path, body, { 'idempotency-key': 'once' })
    const [first, again] = [await send(), await send()]
    expect([path, first.status < 300, again.status, again.body]).toEqual([path, true, first.status, first.body])
  }
  const { bindings } = (await host.json('GET', '/api/bindings')).body
  expect(bindings.filter((binding: { agent: string }) => binding.agent === agent)).toHaveLength(1)
})

it('refuses an Idempotency-Key that is empty, and one of a request that is done anew each time', async () => {
  for (const [path, key, message] of [
    ['/api/tasks', '', '1 to 255 visible'],
    ['/api/tasks', '  ', '1 to 255 visible'],
    ['/api/config/reload', '', '1 to 255 visible'],
    ['/api/pairing/request', 'once', 'is done anew each time'],
  ] as const) {
    const { status, body } = await host.json('POST', path, { title: 'x' }, { 'idempotency-key': key })
    expect([path, status, body.error.message]).toEqual([path, 400, expect.stringContaining(message)])
  }
})

it('refuses NUL in texts, wherever they are in a body; what is any JSON keeps it', async () => {
  const text = 'a\u0000b'
  for (const [path, body, field] of [
    ['/api/tasks', { title: text }, 'title'],
    ['/api/webhooks', { name: text, url: 'https://example.com/', events: ['all'] }, 'name'],
    ['/api/goals', { title: 'x', description: text }, 'description'],
    [`${A}/message`, { message: text }, 'message'],
  ] as const) {
    const { status, body: answer } = await host.json('POST', path, body)
    expect([path, status, answer.error.message]).toEqual([path, 400, expect.stringContaining(field)])
  }
  expect((await host.json('PUT', `/api/memory/agents/${agent}/kv/nul`, { value: { text } })).status).toBe(200)
  expect((await host.json('GET', `/api/memory/agents/${agent}/kv/nul`)).body.value).toEqual({ text })
})
