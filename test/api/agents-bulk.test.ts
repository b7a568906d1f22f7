import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
beforeAll(async () => {
  host = await startHost({ plugins: ['audit', 'agents', 'files', 'templates'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

let count = 0
const spawn = async (): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${count++}"` })).body.agent_id
const state = async (id: string): Promise<string> => (await host.json('GET', `/api/agents/${id}`)).body.state
const agents = async (): Promise<{ name: string }[]> => (await host.json('GET', '/api/agents')).body

describe('POST /api/agents/bulk', () => {
  it('spawns each, and one that fails does not keep the others from being made', async () => {
    const { status, body } = await host.json('POST', '/api/agents/bulk', {
      agents: [
        { manifest_toml: 'name = "bulk-a"' },
        { manifest_toml: 'name = ' },
        { template: 'assistant', name: 'bulk-b' },
        { manifest_toml: 'name = "bulk-a"' },
        7,
        {},
        { template: 'none' },
        { manifest_toml: 'name = "c"', signed_manifest: {} },
      ],
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ total: 8, succeeded: 2, failed: 6 })
    expect(body.results.map(({ index, success }: { index: number; success: boolean }) => [index, success])).toEqual([
      [0, true],
      [1, false],
      [2, true],
      [3, false],
      [4, false],
      [5, false],
      [6, false],
      [7, false],
    ])
    expect(body.results[0]).toEqual({ index: 0, success: true, agent_id: expect.any(String), name: 'bulk-a' })
    expect(body.results[1].error).toContain('malformed TOML')
    expect(body.results[3].error).toContain('exists already')
    expect((await agents()).map(({ name }) => name).filter((name) => name.startsWith('bulk-'))).toEqual([
      'bulk-a',
      'bulk-b',
    ])
  })

  it('costs as much as its items would one by one, and makes none of them when that is too much', async () => {
    await using small = await startHost({
      plugins: ['audit', 'agents'],
      config: { rate_limit: { tokens_per_minute: 170 } },
    })
    const bulk = (...names: string[]) =>
      small.json('POST', '/api/agents/bulk', { agents: names.map((name) => ({ manifest_toml: `name = "${name}"` })) })
    expect((await bulk('a', 'b')).body).toMatchObject({ succeeded: 2 })
    expect(await bulk('c', 'd')).toMatchObject({
      status: 429,
      headers: expect.toSatisfy((headers: Headers) => headers.get('retry-after') === '60'),
    })
    expect((await small.json('GET', '/api/agents')).body.map(({ name }: { name: string }) => name)).not.toContain('c')
    expect((await bulk('e')).status).toBe(200)
  })

  it('takes a list alone', async () => {
    expect((await host.json('POST', '/api/agents/bulk', [{ manifest_toml: 'name = "bare-list"' }])).body).toMatchObject(
      { total: 1, succeeded: 1 },
    )
  })

  it('takes 50 and no more', async () => {
    const before = (await agents()).length
    const list = (length: number) => ({
      agents: Array.from({ length }, (_, index) => ({ manifest_toml: `name = "fifty-${index}"` })),
    })
    expect((await host.json('POST', '/api/agents/bulk', list(51))).status).toBe(400)
    expect((await agents()).length).toBe(before)
    expect((await host.json('POST', '/api/agents/bulk', list(50))).body).toMatchObject({ succeeded: 50, failed: 0 })
    const names = (await agents()).map(({ name }) => name).filter((name) => name.startsWith('fifty-'))
    expect(names).toEqual(Array.from({ length: 50 }, (_, index) => `fifty-${index}`))
  })
})

describe.each([
  ['DELETE', '/api/agents/bulk', 'agent_ids'],
  ['POST', '/api/agents/bulk/start', 'agent_ids'],
  ['POST', '/api/agents/bulk/stop', 'agent_ids'],
  ['POST', '/api/agents/bulk', 'agents'],
])('%s %s', (method, path, field) => {
  it.each([
    ['an empty list', []],
    ['an empty field', { [field]: [] }],
    ['nothing', {}],
    ['text', { [field]: 'x' }],
    ['null', { [field]: null }],
    ['a number', 7],
    ['null alone', null],
    ['an object', { [field]: {} }],
    ['__proto__', JSON.parse('{"__proto__":{"agent_ids":["x"]}}')],
  ])('%s is 400 and names the field', async (_, body) => {
    const before = await agents()
    const answer = await host.json(method, path, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(await agents()).toEqual(before)
  })
})

describe('the other bulk rows', () => {
  it('delete, with a result for each', async () => {
    const [one, two] = [await spawn(), await spawn()]
    const { status, body } = await host.json('DELETE', '/api/agents/bulk', { agent_ids: [one, nobody, 'x', two, 7] })
    expect(status).toBe(200)
    expect(body).toEqual({
      total: 5,
      succeeded: 2,
      failed: 3,
      results: [
        { agent_id: one, success: true, message: 'Deleted' },
        { agent_id: nobody, success: false, error: `No agent ${nobody}` },
        { agent_id: 'x', success: false, error: expect.stringContaining('Invalid agent ID') },
        { agent_id: two, success: true, message: 'Deleted' },
        { agent_id: '', success: false, error: expect.any(String) },
      ],
    })
    for (const id of [one, two]) expect((await host.json('GET', `/api/agents/${id}`)).status).toBe(404)
  })

  it('the same id twice is deleted once', async () => {
    const id = await spawn()
    expect((await host.json('DELETE', '/api/agents/bulk', [id, id.toUpperCase()])).body).toMatchObject({
      succeeded: 1,
      failed: 1,
    })
  })

  it('stop and start, and asking again changes nothing', async () => {
    const [one, two] = [await spawn(), await spawn()]
    expect((await host.json('POST', '/api/agents/bulk/stop', [one, two])).body).toMatchObject({
      succeeded: 2,
      results: [{ message: 'Stopped' }, { message: 'Stopped' }],
    })
    expect(await Promise.all([state(one), state(two)])).toEqual(['Stopped', 'Stopped'])
    expect((await host.json('POST', '/api/agents/bulk/stop', { agent_ids: [one] })).body).toMatchObject({
      succeeded: 1,
      results: [{ message: 'Stopped already' }],
    })
    expect((await host.json('POST', '/api/agents/bulk/start', { agent_ids: [one, two] })).body).toMatchObject({
      succeeded: 2,
    })
    expect((await host.json('POST', '/api/agents/bulk/start', { agent_ids: [one] })).body).toMatchObject({
      succeeded: 1,
      results: [{ message: 'Running already' }],
    })
    expect(await Promise.all([state(one), state(two)])).toEqual(['Running', 'Running'])
  })

  it('an illegal move fails alone', async () => {
    const [paused, stopped] = [await spawn(), await spawn()]
    await host.json('PUT', `/api/agents/${paused}/suspend`)
    await host.json('PUT', `/api/agents/${stopped}/stop`)
    const { body } = await host.json('POST', '/api/agents/bulk/start', [paused, stopped])
    expect(body).toMatchObject({ succeeded: 1, failed: 1 })
    expect(body.results[0].error).toContain('is Paused')
    expect(await Promise.all([state(paused), state(stopped)])).toEqual(['Paused', 'Running'])
  })

  it('each is in the audit log', async () => {
    const id = await spawn()
    await host.json('POST', '/api/agents/bulk/stop', [id])
    await host.json('DELETE', '/api/agents/bulk', [id])
    const { entries } = (await host.json('GET', `/api/audit/recent?agent_id=${id}`)).body
    expect(entries.map((entry: { event_type: string }) => entry.event_type)).toEqual([
      'agent_spawned',
      'agent_updated',
      'agent_killed',
    ])
    expect(entries[1].details).toContain('stop: Running to Stopped')
  })
})
