import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let agentId = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/triggers', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'result-delivery', 'triggers'],
    config: { plugins: { triggers: { max_triggers_per_agent: 6, max_triggers: 12 } } },
  })
  agentId = await test.spawn('watcher')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = async (pattern: unknown, more: object = {}): Promise<string> => {
  const made = await call('POST', '/api/triggers', { agent_id: agentId, pattern, ...more })
  expect([made.status, made.body.error]).toEqual([201, undefined])
  return made.body.trigger_id
}
const remove = (id: string) => call('DELETE', `/api/triggers/${id}`)
describe('a trigger', () => {
  it('is made with a default prompt, shown as the interface has it, changed, disabled and removed', async () => {
    const made = await call('POST', '/api/triggers', { agent_id: 'watcher', pattern: 'lifecycle', max_fires: 3 })
    expect(made).toMatchObject({ status: 201, body: { trigger_id: expect.any(String), agent_id: agentId } })
    const id = made.body.trigger_id
    const path = `/api/triggers/${id}`
    expect((await call('GET', path)).body).toMatchObject({
      id,
      agent_id: agentId,
      pattern: { lifecycle: {} },
      prompt_template: expect.stringContaining('{{event}}'),
      enabled: true,
      fire_count: 0,
      max_fires: 3,
      created_at: expect.any(String),
    })
    expect((await call('GET', `/api/triggers?agent_id=${agentId}`)).body).toMatchObject([{ id }])
    expect((await call('GET', `/api/triggers?agent_id=${crypto.randomUUID()}`)).body).toEqual([])
    expect((await call('PUT', path, { prompt_template: 'So: {{event}}', enabled: false })).body).toMatchObject({
      status: 'updated',
      trigger_id: id,
      enabled: false,
      reason: 'disabled by hand',
    })
    expect((await call('PATCH', path, { enabled: true, max_fires: 0 })).body).toMatchObject({
      enabled: true,
      max_fires: 0,
      prompt_template: 'So: {{event}}',
      reason: null,
    })
    expect(await remove(id)).toMatchObject({ status: 200, body: { status: 'removed', trigger_id: id } })
    for (const method of ['GET', 'DELETE']) expect((await call(method, path)).status).toBe(404)
    expect((await call('PUT', path, { enabled: true })).status).toBe(404)
    expect((await auditDetails(test, 'trigger_changed'))[0]).toContain(`trigger ${id} was removed`)
  })

  it.each([
    ['without an agent', { pattern: 'all' }, 400, 'agent_id'],
    ['without a pattern', { agent_id: 'watcher' }, 400, 'pattern'],
    ['of an unknown agent', { agent_id: 'watchr', pattern: 'all' }, 404, 'did you mean "watcher"'],
    ['for an unknown pattern', { agent_id: 'watcher', pattern: 'agent_spawn' }, 400, 'did you mean "agent_spawned"'],
    ['for two patterns', { agent_id: 'watcher', pattern: { all: {}, system: {} } }, 400, 'pattern: expected one of'],
    ['with a wrong field', { agent_id: 'watcher', pattern: { agent_spawned: { name: 'x' } } }, 400, 'name_pattern'],
    ['for no keyword', { agent_id: 'watcher', pattern: { system_keyword: {} } }, 400, 'needs keyword'],
    ['for a number', { agent_id: 'watcher', pattern: { agent_spawned: { name_pattern: 7 } } }, 400, 'expected a text'],
    ['with a negative limit', { agent_id: 'watcher', pattern: 'all', max_fires: -1 }, 400, 'max_fires'],
    [
      'that runs a workflow where there are none',
      { agent_id: 'watcher', pattern: 'all', workflow_id: 'b2b0d6a4-3c6b-4f0e-9d6f-7f0f7b6f4c11' },
      400,
      'no plugin runs workflows',
    ],
    ['to nowhere', { agent_id: 'watcher', pattern: 'all', delivery: { kind: 'pigeon' } }, 400, 'delivery'],
  ])('%s is refused', async (_, body, status, message) => {
    const answer = await call('POST', '/api/triggers', body)
    expect(answer.status).toBe(status)
    expect(JSON.stringify(answer.body)).toContain(JSON.stringify(message).slice(1, -1))
  })
})

describe('a trigger that cannot be', () => {
  it('is refused under a malformed id', async () => {
    for (const path of ['/api/triggers/7', '/api/triggers/7/history', '/api/triggers?agent_id=7'])
      expect((await call('GET', path)).status).toBe(400)
  })
  it('is refused when its agent, or the daemon, has as many as it may', async () => {
    const made = [await add('system')]
    while (made.length < 6) made.push(await add('system'))
    const over = await call('POST', '/api/triggers', { agent_id: agentId, pattern: 'all' })
    expect(over).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('max_triggers_per_agent') } },
    })
    const other = await test.spawn('crowd')
    const third = await test.spawn('crowd-too')
    while (made.length < 12) made.push(await add('system', { agent_id: other }))
    const full = await call('POST', '/api/triggers', { agent_id: third, pattern: 'all' })
    expect(full).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('plugins.triggers.max_triggers ') } },
    })
    for (const id of made) await remove(id)
  })
})
