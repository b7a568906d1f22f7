import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'
import { eventually } from '../../support/eventually.ts'
import { cardOf, startRemoteAgent } from './remote-agent.ts'
import type { RemoteAgentServer } from './remote-agent.ts'

// Agents elsewhere: the official server of the SDK, at protocol 0.3 and 1.0.

let test: PluginTest
let old: RemoteAgentServer
let current: RemoteAgentServer
let configured: RemoteAgentServer

beforeAll(async () => {
  ;[old, current, configured] = await Promise.all([
    startRemoteAgent('0.3'),
    startRemoteAgent('1.0'),
    startRemoteAgent('1.0'),
  ])
  vi.stubEnv('A2A_TEST_TOKEN', 'a2a-credential-canary')
  test = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue'],
    fetch: 'network',
    database: 'file',
    config: {
      // What is discovered here is on this machine, which the file permits.
      outbound: { allow: ['127.0.0.1'] },
      a2a: {
        poll_min_ms: 10,
        poll_max_ms: 20,
        max_pending_agents: 3,
        external_agents: [{ name: 'partner', url: configured.origin, auth: { type: 'bearer', env: 'A2A_TEST_TOKEN' } }],
      },
    },
  })
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await test[Symbol.asyncDispose]()
  await Promise.all([old, current, configured].map((each) => each[Symbol.asyncDispose]()))
})

const discover = (url: string, name?: string) =>
  test.request<Json>('POST', '/api/a2a/discover', { url, ...(name !== undefined && { name }) })
const send = (body: object, key?: string) =>
  test.request<Json>('POST', '/api/a2a/send', body, key === undefined ? {} : { 'idempotency-key': key })

describe('an agent that is discovered', () => {
  it.each([
    ['0.3', () => old],
    ['1.0', () => current],
  ] as const)('speaks %s, waits for a person, and is sent to when one trusts it', async (version, find) => {
    const { origin } = find()
    const found = await discover(origin)
    expect([found.status, found.body]).toMatchObject([
      202,
      {
        url: origin,
        status: 'pending',
        agent: {
          name: `Echo ${version}`,
          skills: [{ id: 'echo', name: 'Echo' }],
          endpoints: [{ url: `${origin}/rpc`, version: expect.stringContaining(version) }],
          signature: { state: 'none' },
        },
      },
    ])
    expect(await send({ agent_id: `Echo ${version}`, message: 'x' })).toMatchObject({ status: 409 })
    const path = `/api/a2a/agents/${encodeURIComponent(origin)}`
    const { fingerprint, id } = (await test.request<Json>('GET', path)).body
    expect(await test.request('POST', `${path}/approve`, { fingerprint: 'another' })).toMatchObject({ status: 409 })
    expect(await test.request('POST', `${path}/approve`, { fingerprint })).toMatchObject({
      status: 200,
      body: { id, status: 'trusted' },
    })
    expect(await discover(`${origin}/`)).toMatchObject({ status: 200, body: { status: 'trusted' } })
    expect(await send({ agent_id: `Echo ${version}`, message: 'one' })).toMatchObject({
      status: 200,
      body: { status: 'completed', result: { role: 'agent', parts: [{ text: 'echo: one' }] }, agent_id: id },
    })
    // Interface 4.8: a message with parts; facts/api.md: the address in place of the id.
    expect(await send({ url: origin, message: { role: 'user', parts: [{ text: 'two' }] } })).toMatchObject({
      status: 200,
      body: { status: 'completed', result: { parts: [{ type: 'text', text: 'echo: two' }] } },
    })
    expect(await send({ agent_id: id, message: 'hi' })).toMatchObject({
      body: { status: 'completed', result: { parts: [{ text: 'hi yourself' }] } },
    })
    expect(await send({ agent_id: id, message: 'fail' })).toMatchObject({
      status: 200,
      body: { status: 'failed', result: { parts: [{ text: 'I cannot do that' }] } },
    })
    expect(await auditDetails(test, 'a2a_agent_changed')).toEqual(
      expect.arrayContaining([expect.stringContaining(`"Echo ${version}"`)]),
    )
  })

  it('makes one task there however often the request is repeated', async () => {
    const before = current.texts.length
    const answers = [
      await send({ agent_id: 'Echo 1.0', message: 'once' }, 'k-1'),
      await send({ agent_id: 'Echo 1.0', message: 'once' }, 'k-1'),
    ]
    expect(answers[1]?.body).toEqual(answers[0]?.body)
    expect(current.texts.slice(before)).toEqual(['once'])
  })

  it('is listed with its tasks, whose status is remembered by both ids', async () => {
    const { body: sent } = await send({ agent_id: 'Echo 0.3', message: 'remember' })
    expect(sent.task_id).not.toBe(sent.id)
    for (const id of [sent.task_id, sent.id])
      expect((await test.request<Json>('GET', `/api/a2a/tasks/${id}/status`)).body).toMatchObject({
        task_id: sent.task_id,
        status: 'completed',
      })
    const { body: tasks } = await test.request<Json>('GET', '/api/a2a/tasks?limit=1')
    expect(tasks).toMatchObject({ tasks: [{ id: sent.id }], total: expect.any(Number) })
    const { body: agents } = await test.request<Json>('GET', '/api/a2a/agents')
    expect(agents.agents.map(({ name }: Json) => name)).toEqual(
      expect.arrayContaining(['partner', 'Echo 0.3', 'Echo 1.0']),
    )
    expect(agents.total).toBe(agents.agents.length)
  })

  it('asks back, and gets its answer in the same conversation', async () => {
    const { body: asked } = await send({ agent_id: 'Echo 1.0', message: 'which' })
    expect(asked).toMatchObject({ status: 'inputRequired', result: { parts: [{ text: 'Which one?' }] } })
    const { body: answered } = await send({
      agent_id: 'Echo 1.0',
      message: 'that one',
      session_id: asked.session_id,
      task_id: asked.task_id,
    })
    expect(answered).toMatchObject({ status: 'completed', task_id: asked.task_id, session_id: asked.session_id })
  })
})

describe('a task', () => {
  it('is followed while it runs, and over a restart of the daemon', async () => {
    const asking = send({ agent_id: 'Echo 1.0', message: 'slow' }, 'k-slow')
    await eventually(() => expect(current.texts).toContain('slow'))
    const { body } = await test.request<Json>('GET', '/api/a2a/tasks?limit=1')
    await eventually(async () =>
      expect((await test.request<Json>('GET', `/api/a2a/tasks/${body.tasks[0].id}/status`)).body.status).toBe(
        'working',
      ),
    )
    const cut = asking.catch(() => undefined)
    await test.restart()
    await cut
    current.finishAll()
    await eventually(async () =>
      expect((await test.request<Json>('GET', `/api/a2a/tasks/${body.tasks[0].id}/status`)).body).toMatchObject({
        status: 'completed',
        result: { parts: [{ text: 'echo: slow' }] },
      }),
    )
    expect(current.texts.filter((text) => text === 'slow')).toHaveLength(1)
  })

  it('is cancelled there', async () => {
    const asking = send({ agent_id: 'Echo 1.0', message: 'slow' })
    await eventually(async () =>
      expect((await test.request<Json>('GET', '/api/a2a/tasks?limit=1')).body.tasks[0]).toMatchObject({
        status: 'working',
      }),
    )
    const { body } = await test.request<Json>('GET', '/api/a2a/tasks?limit=1')
    expect(await test.request('POST', `/api/a2a/tasks/${body.tasks[0].task_id}/cancel`)).toMatchObject({
      status: 200,
      body: { status: 'cancelled' },
    })
    expect((await asking).body.status).toBe('cancelled')
    expect(await test.request('POST', `/api/a2a/tasks/${body.tasks[0].id}/cancel`)).toMatchObject({ status: 409 })
  })
})

describe('an agent that changed', () => {
  it('waits for a person again when its card has other skills, and says what changed', async () => {
    old.card = cardOf('0.3', old.origin, { skills: [{ id: 'pay', name: 'Pay', description: 'Pays.', tags: [] }] })
    expect(await discover(old.origin)).toMatchObject({
      status: 202,
      body: { status: 'pending', agent: { difference: [{ field: 'skills' }] } },
    })
    expect(await send({ agent_id: 'Echo 0.3', message: 'x' })).toMatchObject({ status: 409 })
    expect(await test.request('DELETE', '/api/a2a/agents/Echo%200.3')).toMatchObject({ status: 200 })
    expect(await test.request('GET', '/api/a2a/agents/Echo%200.3')).toMatchObject({ status: 404 })
  })
})

describe('an agent of the configuration', () => {
  it('is trusted, is on this machine, and gets its secret, which nothing shows', async () => {
    expect(await send({ agent_id: 'partner', message: 'one' })).toMatchObject({
      status: 200,
      body: { status: 'completed', url: configured.origin },
    })
    expect(configured.calls.find(({ url }) => url.pathname === '/rpc')?.headers['authorization']).toBe(
      'Bearer a2a-credential-canary',
    )
    const shown = JSON.stringify([
      (await test.request('GET', '/api/a2a/agents')).body,
      (await test.request('GET', '/api/audit/recent?limit=200')).body,
      test.log,
    ])
    expect(shown).not.toContain('a2a-credential-canary')
    expect(await test.request('DELETE', '/api/a2a/agents/partner')).toMatchObject({ status: 409 })
  })
})
