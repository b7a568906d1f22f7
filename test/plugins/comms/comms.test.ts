import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EventStreamReader } from 'svc/sdk'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { auditDetails, callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

/** Takes messages to chats as the plugin "channels" does. */
const channels = pluginText('chats', {
  before: "const Messages: any = defineService()('channel-messages')",
  members: 'provides: { messages: Messages },',
  setup: `return { messages: { async send({ id, channel, account, to, thread, text, agentId }: any) {
      if (channel !== 'telegram') throw new Refusal('channel_not_found', 'There is no channel ' + channel)
      ctx.log.info('sent ' + JSON.stringify([id, channel, to, thread, text, agentId]))
    } } }`,
})
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let test: PluginTest
let boss = ''
let scout = ''
let hermit = ''
beforeAll(async () => {
  folder = await temporaryFolder()
  test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'chats'), channels),
    builtIns: [...turnPlugins, 'builtin', 'clock', 'files', 'kv', 'system', 'delegation', 'queue', 'tasks', 'comms'],
    config: { default_provider: 'builtin', default_model: 'offline', plugins: { comms: { max_streams: 2 } } },
    database: 'file',
  })
  const manifest = (more: string) => `[capabilities]\ntools = ["*"]\n${more}`
  boss = await test.spawn('boss', manifest('agent_spawn = true\nagent_message = ["scout", "made"]'))
  scout = await test.spawn('scout', manifest(''))
  await test.spawn('maker', manifest('agent_spawn = true'))
  await test.spawn('chief', manifest('agent_spawn = true\nagent_message = ["maker"]'))
  hermit = await test.spawn('hermit', '[capabilities]\ntools = ["system_time"]\nagent_message = ["*"]')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const NOBODY = '018f0000-0000-7000-8000-000000000000'
const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  test.request<Json>(method, path, body, headers)
const send = (body: Json, headers?: Record<string, string>) => call('POST', '/api/comms/send', body, headers)
const events = async (): Promise<readonly Json[]> => (await call('GET', '/api/comms/events')).body
const edges = async (): Promise<readonly string[]> =>
  (await call('GET', '/api/comms/topology')).body.edges.map(({ from, to, kind }: Json) => {
    const names = new Map([
      [boss, 'boss'],
      [scout, 'scout'],
      [hermit, 'hermit'],
    ])
    return `${names.get(from) ?? from} ${names.get(to) ?? to} ${kind}`
  })

describe('POST /api/comms/send', () => {
  it('has an agent answer a message of another one, in a conversation of the two', async () => {
    const sent = await send({ to: 'agent:scout', content: 'echo found it', from: 'boss' })
    expect(sent).toMatchObject({
      status: 200,
      body: { ok: true, response: 'found it', input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
    })
    expect(await events()).toContainEqual({
      id: sent.body.message_id,
      timestamp: expect.stringMatching(/Z$/),
      kind: 'agent_message',
      source_id: boss,
      source_name: 'boss',
      target_id: scout,
      target_name: 'scout',
      detail: 'echo found it',
    })
    const turn = (await call('GET', `/api/agents/${scout}/turns/${sent.body.message_id}`)).body
    expect(turn).toMatchObject({ state: 'done', entry_point: 'agent', session_id: sent.body.session_id })
    const [again, other] = [
      await send({ from_agent_id: boss, to_agent_id: scout, message: 'echo again' }),
      await send({ from_agent_id: boss, to_agent_id: scout, message: 'echo apart', thread_id: 't' }),
    ]
    expect(again.body).toMatchObject({ response: 'again', session_id: sent.body.session_id })
    expect(other.body.session_id).not.toBe(sent.body.session_id)
  })

  it('sends what a person writes to the conversation that agents have with people', async () => {
    const { body } = await send({ to: 'scout', content: 'echo hello' })
    const { session_id: active } = (await call('GET', `/api/agents/${scout}`)).body
    expect(body).toMatchObject({ response: 'hello', session_id: active })
    const [event] = await events()
    expect(event).toMatchObject({ id: body.message_id, source_id: '', target_id: scout, detail: 'echo hello' })
    expect(event.source_name).not.toBe('')
  })

  it('lets nobody do for an agent what that one may not do', async () => {
    const use = 'use kv_set {"key": "k", "value": "v"}'
    expect((await send({ to: 'scout', content: use })).body.response).not.toContain('who requested this')
    const { body } = await send({ to: 'scout', content: use, from: 'hermit' })
    expect(body.response).toContain('"hermit", who requested this, may not use kv_set itself')
  })

  it('marks the text as that of another agent', async () => {
    const content = 'use agent_spawn {"name": "x", "system_prompt": "x"}'
    const { body } = await send({ to: 'maker', content, from: 'chief' })
    expect(body.response).toContain('another agent')
    expect((await auditDetails(test, 'taint_violation'))[0]).toContain('UntrustedAgent')
  })

  it('sends to a chat once for each key', async () => {
    const key = { 'idempotency-key': 'chat-1' }
    const body = { to: 'channel:telegram:-100:7', content: 'Hi there', from: boss, thread_id: '9' }
    const first = await send(body, key)
    expect(first).toMatchObject({ status: 200, body: { ok: true, message_id: expect.any(String) } })
    expect((await send(body, key)).body).toEqual(first.body)
    const sent = test.log.filter((line) => line.includes('Hi there'))
    expect(sent.filter((line) => line.includes('sent ['))).toHaveLength(1)
    expect(sent.join('')).toContain(boss)
    const target = 'channel:telegram:-100:7'
    expect((await events())[0]).toMatchObject({ source_id: boss, target_id: target, detail: 'Hi there' })
    expect((await auditDetails(test, 'agent_message'))[0]).toBe(`message ${first.body.message_id} to ${target}`)
  })

  it('goes on when the daemon ends meanwhile, once for its key, and still as limited as the agent that asks', async () => {
    const slow = await test.spawn('slow', '[capabilities]\ntools = ["*"]\n[model]\nprovider = "fake"\nmodel = "fake"')
    const { model } = test
    const complete = model.complete.bind(model)
    let requests = 0
    model.complete = async function* hang(_, signal) {
      requests++
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      yield* []
    }
    const key = { 'idempotency-key': 'crash' }
    const ask = () => send({ to: 'slow', content: 'Keep it.', from: 'hermit' }, key)
    const cut = ask()
    await eventually(() => expect(requests).toBe(1))
    await test.restart(() => {
      model.complete = complete
      model.answer({ calls: [{ tool: 'kv_set', args: { key: 'k', value: 'v' } }] })
    })
    expect((await cut).status).toBe(503)
    const answer = await ask()
    expect([answer.status, answer.body.response]).toEqual([
      200,
      expect.stringContaining('"hermit", who requested this'),
    ])
    const { turns } = (await call('GET', `/api/agents/${slow}/turns`)).body
    expect(turns).toMatchObject([{ state: 'done', turn_id: answer.body.message_id }])
  })

  it.each<[name: string, body: () => Json, status: number, text: string]>([
    ['nobody', () => ({ content: 'x' }), 400, 'to: '],
    ['a file', () => ({ to: 'scout', content: 'x', attachments: [{ file_id: NOBODY }] }), 400, 'attachments: '],
    ['no text', () => ({ to: 'scout' }), 400, 'content: '],
    ['an id that is none', () => ({ to_agent_id: 'scout', message: 'x' }), 400, 'to_agent_id'],
    ['half a chat', () => ({ to: 'channel:telegram', content: 'x' }), 400, 'channel:<name>:<chat>'],
    ['an unknown channel', () => ({ to: 'channel:pigeon:1', content: 'x' }), 404, 'pigeon'],
    ['an unknown agent', () => ({ to: 'agent:scuot', content: 'x' }), 404, 'scout'],
    ['an unknown id', () => ({ to: NOBODY, content: 'x' }), 404, NOBODY],
    ['an unknown sender', () => ({ to: 'scout', from: 'bos', content: 'x' }), 404, 'boss'],
    ['whom it may not message', () => ({ to: 'hermit', from: 'boss', content: 'x' }), 403, 'agent_message'],
    ['itself', () => ({ to: boss, from: boss, content: 'x' }), 409, 'itself'],
    ['too much', () => ({ to: 'scout', content: 'x'.repeat(2_000_000) }), 413, ''],
  ])('refuses a message to %s', async (_name, body, status, text) => {
    const before = (await events()).length
    const answer = await send(body())
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, expect.stringContaining(text)])
    expect((await events()).length).toBe(before)
  })
})

describe('events and topology', () => {
  it('show messages by tools, agents that came and went, and tasks, the newest first', async () => {
    const made = await callToolJson(test, boss, 'agent_spawn', { name: 'made', system_prompt: 'x' })
    expect((await callTool(test, boss, 'agent_send', { agent_id: 'made', message: 'echo one' })).text).toBe('one')
    expect(await edges()).toContain(`boss ${made.agent_id} parent_child`)
    expect(await edges()).toContain(`boss ${made.agent_id} peer`)
    const posted = await call('POST', '/api/comms/task', { title: 'Look around', assigned_to: 'scout' })
    expect(posted).toMatchObject({ status: 201, body: { ok: true, task_id: expect.any(String) } })
    await callToolJson(test, scout, 'task_claim')
    await callTool(test, scout, 'task_complete', { task_id: posted.body.task_id, result: 'Done.' })
    await callTool(test, boss, 'agent_kill', { agent_id: 'made' })
    const found = (await events()).slice(0, 6)
    expect(found.map(({ kind, source_name: source, target_name: target }) => [kind, source, target])).toEqual([
      ['agent_terminated', 'made', ''],
      ['task_completed', 'scout', ''],
      ['task_claimed', 'scout', ''],
      ['task_posted', expect.any(String), 'scout'],
      // What it wrote is gone with the agent.
      ['agent_message', 'boss', 'made'],
      ['agent_spawned', 'made', ''],
    ])
    expect(found[4]?.['detail']).toBe('')
    // Whose task it is say source and target.
    expect(found.slice(1, 4).map(({ detail }) => detail)).toEqual(Array(3).fill('"Look around"'))
    const fromAudit = found.filter(({ kind }) => kind !== 'agent_message')
    expect(fromAudit.every(({ id }) => /^audit-\d+$/.test(id))).toBe(true)
    expect((await edges()).join()).not.toContain(made.agent_id)
    expect((await call('GET', '/api/comms/events?limit=2')).body).toEqual(found.slice(0, 2))
    for (const [body, status] of [
      [{}, 400],
      [{ title: ' ' }, 400],
      [{ title: 'x', assigned_to: 'nobody' }, 404],
    ] as const)
      expect((await call('POST', '/api/comms/task', body)).status).toBe(status)
  })

  it('join two agents that wrote to each other by one edge', async () => {
    const nodes = (await call('GET', '/api/comms/topology')).body.nodes
    expect(nodes).toContainEqual({ id: boss, name: 'boss', state: 'Running', model: 'builtin/offline' })
    const peers = (await edges()).filter((edge) => edge.includes('boss') && edge.endsWith('peer'))
    expect(peers).toEqual(['boss scout peer'])
  })

  it('cut texts at 200 characters and hide what looks like a key', async () => {
    await send({ to: 'scout', from: 'boss', content: `echo token=abcdefgh1234 ${'😀'.repeat(200)}` })
    const { detail } = (await events())[0] ?? {}
    expect(detail.length).toBeLessThanOrEqual(200)
    expect(detail).toMatch(/^echo token=\*\*\* 😀+…$/u)
  })

  it('are there after a restart, once each', async () => {
    const before = await events()
    await test.restart()
    const after = await events()
    expect(after.slice(0, before.length)).toEqual(before)
    expect(new Set(after.map(({ id }) => id)).size).toBe(after.length)
  })
})

describe('GET /api/comms/events/stream', () => {
  it('sends new events only, without names, as they come', async () => {
    const leaving = new AbortController()
    const response = await test.fetch('/api/comms/events/stream', { signal: leaving.signal })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const found: Json[] = []
    const reader = new EventStreamReader(
      ({ event, data }) => void found.push({ event, ...JSON.parse(data) }),
      () => new Error('too long'),
    )
    const reading = (async () => {
      for await (const chunk of response.body ?? []) reader.feed(chunk)
    })().catch(() => undefined)
    await send({ to: 'scout', from: 'boss', content: 'echo live' })
    const passing = await test.spawn('passing')
    await eventually(() => expect(found).toHaveLength(2))
    expect(found).toMatchObject([
      { kind: 'agent_message', source_name: 'boss', target_name: 'scout', detail: 'echo live' },
      { kind: 'agent_spawned', source_id: passing, source_name: 'passing' },
    ])
    leaving.abort()
    await reading
  })

  it('refuses more readers than plugins.comms.max_streams', async () => {
    const leaving = new AbortController()
    const open = () => test.fetch('/api/comms/events/stream', { signal: leaving.signal })
    // The reader before may not be gone yet.
    await eventually(async () => {
      const answers = [await open(), await open(), await open()]
      const statuses = answers.map(({ status }) => status)
      if (statuses[1] !== 200) await Promise.all(answers.map(({ body }) => body?.cancel()))
      expect(statuses).toEqual([200, 200, 429])
    })
    leaving.abort()
  })
})
