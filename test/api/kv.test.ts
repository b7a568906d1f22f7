import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
let agent: string
let other: string
beforeAll(async () => {
  host = await startHost({
    plugins: ['audit', 'agents', 'kv', 'system'],
    config: { plugins: { kv: { max_keys_per_agent: 60, max_value_bytes: 4096, max_key_chars: 64 } } },
  })
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "kv-one"' })).body.agent_id
  other = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "kv-two"' })).body.agent_id
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

const path = (key: string, id = agent): string => `/api/memory/agents/${id}/kv/${encodeURIComponent(key)}`
const put = (key: string, text: string, id = agent): Promise<Response> =>
  host.fetch(path(key, id), { method: 'PUT', headers: { 'content-type': 'application/json' }, body: text })
const text = async (key: string): Promise<string> => (await host.fetch(path(key))).text()
const memoryEntries = async (): Promise<{ details: string }[]> =>
  (await host.json('GET', '/api/audit/recent?limit=500')).body.entries.filter(
    (entry: { event_type: string }) => entry.event_type === 'memory_access',
  )

describe('one key', () => {
  it('is created, read, overwritten and deleted', async () => {
    expect(await host.json('PUT', path('theme'), { value: 'dark' })).toMatchObject({
      status: 200,
      body: { status: 'stored', key: 'theme' },
    })
    expect(await host.json('GET', path('theme'))).toMatchObject({ status: 200, body: { key: 'theme', value: 'dark' } })
    await host.json('PUT', path('theme'), { value: { now: ['light'] } })
    expect((await host.json('GET', path('theme'))).body).toEqual({ key: 'theme', value: { now: ['light'] } })
    expect(await host.json('DELETE', path('theme'))).toMatchObject({
      status: 200,
      body: { status: 'deleted', key: 'theme' },
    })
    expect((await host.json('GET', path('theme'))).status).toBe(404)
  })

  it('that does not exist is 404 with the flat error, naming the key', async () => {
    const { status, body } = await host.json('GET', path('no such/key'))
    expect(status).toBe(404)
    expect(Object.keys(body)).toEqual(['error'])
    expect(body.error).toContain('no such/key')
  })

  it('can be deleted although it is absent', async () => {
    expect(await host.json('DELETE', path('never-there'))).toMatchObject({
      status: 200,
      body: { status: 'deleted', key: 'never-there' },
    })
  })

  it('is not written by a body without value, which is told the name it should have', async () => {
    await host.json('PUT', path('kept'), { value: 1 })
    for (const body of [
      '{"vlaue":5}',
      '{}',
      '[1,2]',
      '5',
      'null',
      '{"value":2,"vlaue":5}',
      '{"value":2,"key":"other"}',
    ]) {
      const answer = await put('kept', body)
      expect([body, answer.status]).toEqual([body, 400])
      expect((await answer.json()).error.message).toContain(body.includes('"other"') ? 'key' : 'value')
    }
    expect(await text('kept')).toBe('{"key":"kept","value":1}')
  })

  it('takes back what it shows', async () => {
    await host.json('PUT', path('again'), { value: { a: [1] } })
    const shown = await text('again')
    expect((await put('again', shown)).status).toBe(200)
    expect(await text('again')).toBe(shown)
  })

  it.each([
    'null',
    'true',
    '0',
    '-0',
    '""',
    '[]',
    '{}',
    '"\\u0000\\ud800"',
    '"🦊 名前 \\n"',
    '12345678901234567890',
    '1e400',
    '0.1000000000000000055511151231257827',
    '{"__proto__":{"polluted":true}}',
    '{"constructor":1,"toString":2,"toJSON":3}',
    '[[[[[[[[]]]]]]]]',
    '{"value":{"value":1}}',
  ])('the value %s comes back as it was sent', async (value) => {
    expect((await put('exact', `{"value":${value}}`)).status).toBe(200)
    expect(await text('exact')).toBe(`{"key":"exact","value":${value}}`)
    expect('polluted' in {}).toBe(false)
  })

  it.each([
    'a/b',
    'a b',
    '%',
    '%2F',
    'ключ',
    '🦊',
    '?q=1#x',
    '__proto__',
    'constructor',
    '"quoted"',
    '\n\t',
    '-',
    '..a',
    "';DROP TABLE kv_pair;--",
    '*',
  ])('the key %j is its own', async (key) => {
    expect((await host.json('PUT', path(key), { value: key })).body).toEqual({ status: 'stored', key })
    expect((await host.json('GET', path(key))).body).toEqual({ key, value: key })
    expect((await host.json('GET', `/api/memory/agents/${agent}/kv`)).body.kv_pairs).toContainEqual({ key, value: key })
    await host.json('DELETE', path(key))
    expect((await host.json('GET', path(key))).status).toBe(404)
  })
})

describe('the list', () => {
  it('holds every key with its value, and nothing of another agent', async () => {
    await host.json('PUT', path('mine'), { value: 1 })
    await host.json('PUT', path('theirs', other), { value: 2 })
    const list = await host.json('GET', `/api/memory/agents/${agent}/kv`)
    expect(Object.keys(list.body)).toEqual(['kv_pairs'])
    expect(list.body.kv_pairs).toContainEqual({ key: 'mine', value: 1 })
    expect(list.body.kv_pairs.map((pair: { key: string }) => pair.key)).not.toContain('theirs')
    expect((await host.json('GET', `/api/memory/agents/${other}/kv`)).body).toEqual({
      kv_pairs: [{ key: 'theirs', value: 2 }],
    })
    expect((await host.json('GET', path('theirs'))).status).toBe(404)
    await host.json('DELETE', path('theirs'))
    expect((await host.json('GET', path('theirs', other))).status).toBe(200)
  })

  it('is the same agent whether its id is in capitals or not', async () => {
    await host.json('PUT', path('capital', agent.toUpperCase()), { value: 1 })
    expect((await host.json('GET', path('capital'))).body.value).toBe(1)
  })
})

describe('bad requests', () => {
  it.each(['', '{', 'undefined', "{'value':1}", '{"value":}'])('the body %j is 400', async (body) => {
    const answer = await put('bad', body)
    expect(answer.status).toBe(400)
    expect((await host.json('GET', path('bad'))).status).toBe(404)
  })

  it('nesting beyond the limit is 400', async () => {
    expect((await put('deep', `{"value":${'['.repeat(1000)}${']'.repeat(1000)}}`)).status).toBe(400)
  })

  it('a value over the limit is 413, whether just over or far over', async () => {
    expect((await put('big', JSON.stringify({ value: 'x'.repeat(4094) }))).status).toBe(200)
    expect((await put('bigger', JSON.stringify({ value: 'x'.repeat(4095) }))).status).toBe(413)
    expect((await put('bigger', JSON.stringify({ value: 'x'.repeat(100_000) }))).status).toBe(413)
    expect((await host.json('GET', path('bigger'))).status).toBe(404)
    await host.json('DELETE', path('big'))
  })

  it.each(['k'.repeat(65), 'a\0b'])('the key %j is 400', async (key) => {
    expect((await host.json('PUT', path(key), { value: 1 })).status).toBe(400)
  })

  it('a malformed percent-encoding is 400', async () => {
    expect((await host.json('GET', `/api/memory/agents/${agent}/kv/%zz`)).status).toBe(400)
  })

  it.each([
    ['GET', ''],
    ['GET', '/x'],
    ['PUT', '/x'],
    ['DELETE', '/x'],
  ])('%s of a bad agent id is 400, of an unknown agent 404', async (method, rest) => {
    const body = method === 'PUT' ? { value: 1 } : undefined
    const bad = await host.json(method, `/api/memory/agents/nope/kv${rest}`, body)
    expect([bad.status, bad.body.error.code]).toEqual([400, 'invalid_request'])
    const unknown = await host.json(method, `/api/memory/agents/${nobody}/kv${rest}`, body)
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'agent_not_found'])
  })
})

describe('limits and traces', () => {
  it('the number of keys is limited, also under parallel writes, and overwriting goes on', async () => {
    const id = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "kv-many"' })).body.agent_id
    const answers = await Promise.all(Array.from({ length: 80 }, (_, n) => put(`k${n}`, '{"value":1}', id)))
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(60)
    expect(answers.filter((answer) => answer.status === 400)).toHaveLength(20)
    const { kv_pairs: pairs } = (await host.json('GET', `/api/memory/agents/${id}/kv`)).body
    expect(pairs).toHaveLength(60)
    expect((await put(pairs[0].key, '{"value":2}', id)).status).toBe(200)
    expect((await memoryEntries()).filter((entry) => /set key "k\d+"/.test(entry.details))).toHaveLength(61)
  })

  it('a write is in the audit log, its value is not', async () => {
    await host.json('PUT', path('diary'), { value: 'very private' })
    const entries = await memoryEntries()
    expect(entries.some((entry) => entry.details.includes('"diary"'))).toBe(true)
    expect(JSON.stringify(entries)).not.toContain('very private')
  })

  it('parallel writes of one key leave one of the values', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, n) => host.json('PUT', path('race'), { value: n })))
    const { value } = (await host.json('GET', path('race'))).body
    expect(value).toBeGreaterThanOrEqual(0)
    expect(value).toBeLessThan(20)
  })

  it('the document of the interface says that the body is JSON', async () => {
    const { paths } = (await host.json('GET', '/api/openapi.json')).body
    expect(Object.keys(paths['/api/memory/agents/{id}/kv/{key}'].put.requestBody.content)).toEqual(['application/json'])
  })

  it('clients may label an empty body as JSON', async () => {
    const headers = { 'content-type': 'application/json' }
    await host.json('PUT', path('labelled'), { value: 1 })
    expect((await host.fetch(path('labelled'), { headers })).status).toBe(200)
    expect((await host.fetch(path('labelled'), { method: 'DELETE', headers })).status).toBe(200)
  })
})
