import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readerOf } from '../../../plugins/memory/entries/access.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { KEY, operator, pair } from '../pairing/devices.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost({
    memory: true,
    plugins: ['audit', 'agents', 'cluster', 'queue', 'usage', 'providers', 'providers/builtin', 'memory', 'pairing'],
    config: { api_key: KEY, pairing: { enabled: true }, plugins: { memory: { max_import: 3 } } },
  })
  agent = (await call('POST', '/api/agents', { manifest_toml: 'name = "a"' })).body.agent_id
})
afterAll(() => host[Symbol.asyncDispose]())
const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = operator) =>
  host.json(method, path, body, headers)

describe('the rows of memory', () => {
  it('add, change, find and forget, with where it is known from, and a history', async () => {
    const { status, body } = await call('POST', '/api/memory', {
      content: 'The bicycle is red',
      agent_id: 'a',
      tags: ['bike'],
      category: 'personal_detail',
    })
    const [{ id }] = body.memories
    expect([status, body]).toMatchObject([
      201,
      {
        added: 1,
        memories: [{ content: 'The bicycle is red', level: 'agent', source: { kind: 'person', labels: [] } }],
      },
    ])
    expect((await call('PUT', `/api/memory/items/${id}`, { content: 'The bicycle is blue' })).body).toEqual({
      updated: true,
      memory_id: id,
    })
    const found = (await call('GET', '/api/memory/search?q=bicycle&agent_id=a')).body
    expect(found.memories).toMatchObject([{ id, content: 'The bicycle is blue', tags: ['bike'] }])
    expect((await call('GET', '/api/memory/search?q=submarine')).body.memories).toEqual([])
    expect((await call('GET', '/api/memory?category=personal_detail')).body).toMatchObject({ total: 1, limit: 10 })
    expect((await call('GET', `/api/memory/items/${id}/history`)).body.versions).toMatchObject([
      { version: 1, content: 'The bicycle is red', replaced_by: 'operator' },
      { version: 2, content: 'The bicycle is blue', replaced_at: null },
    ])
    expect((await call('DELETE', `/api/memory/items/${id}`)).body).toEqual({ status: 'deleted', memory_id: id })
    expect((await call('GET', `/api/memory/items/${id}/history`)).body).toMatchObject({
      versions: [],
      deleted_by: 'operator',
    })
    expect((await call('DELETE', `/api/memory/items/${id}`)).status).toBe(404)
    const { entries } = (await call('GET', '/api/audit/recent?event_type=memory_access')).body
    expect(JSON.stringify(entries)).toContain(`memory ${id} deleted by operator`)
    expect(JSON.stringify(entries)).not.toContain('bicycle')
  })

  it('import what they export, into another agent', async () => {
    await call('POST', '/api/memory', { content: 'Has a cat', agent_id: 'a', user_id: 'ann', tags: ['pet'] })
    const other = (await call('POST', '/api/agents', { manifest_toml: 'name = "b"' })).body.agent_id
    const exported = (await call('GET', `/api/memory/agents/${agent}/export`)).body
    expect((await call('POST', `/api/memory/agents/${other}/import`, exported)).body).toEqual({
      imported: 1,
      agent_id: other,
    })
    // Again it adds nothing.
    await call('POST', `/api/memory/agents/${other}/import`, exported)
    const again = (await call('GET', `/api/memory/agents/${other}/export`)).body
    const bare = ({ created_at: _created, updated_at: _updated, ...rest }: Record<string, unknown>) => rest
    expect(again.memories.map(bare)).toEqual(exported.memories.map(bare))
    expect((await call('GET', `/api/memory/agents/${other}`)).body.memories[0].source).toMatchObject({ kind: 'import' })
    expect((await call('GET', `/api/memory/agents/${other}/count?level=user`)).body).toMatchObject({ count: 1 })
    expect((await call('DELETE', `/api/memory/agents/${other}/level/user`)).body).toMatchObject({ deleted: 1 })
    expect((await call('GET', `/api/memory/agents/${other}/stats`)).body).toMatchObject({ total: 0, enabled: true })
  })

  it('make nothing that was imported the word of an agent or of who changed it', async () => {
    const { agent_id: to } = (await call('POST', '/api/agents', { manifest_toml: 'name = "c"' })).body
    await call('POST', `/api/memory/agents/${to}/import`, [{ key: 'bank', content: 'DE99' }])
    const [{ id, source }] = (await call('GET', `/api/memory/agents/${to}`)).body.memories
    expect(source).toEqual({ kind: 'import', person: 'operator', labels: ['ExternalNetwork'] })
    await call('PUT', `/api/memory/items/${id}`, { content: 'DE11' })
    const own = { kind: 'person', person: 'operator', labels: [] }
    expect((await call('GET', `/api/memory/items/${id}`)).body.source).toEqual(own)
    expect((await call('GET', `/api/memory/items/${id}/history`)).body.versions).toMatchObject([
      { source },
      { source: own },
    ])
  })

  it('keep no answer with the content of what was deleted since', async () => {
    const headers = { ...operator, 'idempotency-key': 'the-same-memory' }
    const post = () => call('POST', '/api/memory', { content: 'The pin is 777123', agent_id: 'a' }, headers)
    const first = await post()
    expect((await post()).body).toEqual(first.body)
    await call('DELETE', `/api/memory/items/${first.body.memories[0].id}`)
    const again = await post()
    expect(again.status).toBe(409)
    expect(JSON.stringify(again.body)).not.toContain('777123')
  })

  it('show somebody who signed in what is kept for their subject, whatever they are called', () => {
    const signedIn = { kind: 'user', name: 'ann@example.com', id: 'sign-in 1' }
    expect(readerOf({ ...signedIn, subject: 's1' })).toEqual({ kind: 'person', userId: 's1' })
    expect(readerOf(signedIn)).toEqual({ kind: 'person', userId: 'user:sign-in 1' })
  })

  it('refuse bad input, and imports beyond max_import', async () => {
    const memory = { content: 'x' }
    for (const [method, path, body, status, said] of [
      ['POST', '/api/memory', {}, 400, 'content'],
      ['POST', '/api/memory', { content: '  ' }, 400, 'content'],
      ['POST', '/api/memory', { content: 'a\0' }, 400, 'content'],
      ['POST', '/api/memory', { ...memory, level: 'world' }, 400, 'user, session, agent'],
      ['POST', '/api/memory', { ...memory, level: 'session' }, 400, 'session_id'],
      ['POST', '/api/memory', { ...memory, agent_id: 'nobody' }, 404, 'nobody'],
      ['POST', '/api/memory', { ...memory, agent_id: 'a', supersedes: nobody }, 404, 'supersedes'],
      ['POST', '/api/memory', { ...memory, confidence: 2 }, 400, 'confidence'],
      ['POST', '/api/memory', { content: 'x'.repeat(16_385), agent_id: 'a' }, 413, 'max_value_chars'],
      ['GET', '/api/memory?limit=-1', undefined, 400, 'limit'],
      ['GET', '/api/memory?level=world', undefined, 400, 'level'],
      ['GET', '/api/memory/search', undefined, 400, 'q'],
      ['GET', '/api/memory/search?q=x&agent_id=nobody', undefined, 404, 'nobody'],
      ['POST', '/api/memory/bulk-delete', {}, 400, 'ids'],
      ['PUT', '/api/memory/items/x', { content: 'x' }, 400, 'Invalid memory ID'],
      ['PUT', `/api/memory/items/${nobody}`, { content: 'x' }, 404, nobody],
      ['PUT', `/api/memory/items/${nobody}`, { content: '' }, 400, 'content'],
      ['GET', `/api/memory/items/${nobody}/history`, undefined, 404, nobody],
      ['GET', `/api/memory/agents/${nobody}`, undefined, 404, nobody],
      ['GET', `/api/memory/agents/${nobody}/export`, undefined, 404, nobody],
      ['DELETE', `/api/memory/agents/${agent}/level/world`, undefined, 400, 'user, session, agent'],
      ['POST', `/api/memory/agents/${nobody}/consolidate`, undefined, 404, nobody],
      ['POST', `/api/memory/agents/${agent}/import`, { kv: {} }, 400, 'array'],
      ['POST', `/api/memory/agents/${agent}/import`, [memory, memory, memory, memory], 400, 'max_import'],
    ] as const) {
      const answer = await call(method, path, body)
      expect([method, path, answer.status, JSON.stringify(answer.body)]).toEqual([
        method,
        path,
        status,
        expect.stringContaining(said),
      ])
    }
  })

  it('show a paired device what is kept for the owner, and let it change nothing', async () => {
    await call('POST', '/api/memory', { content: 'Ann owns a yacht', agent_id: 'a', user_id: 'ann' })
    await call('POST', '/api/memory', { content: 'The owner has a yacht', agent_id: 'a' })
    const { bearer } = await pair(host)
    const seen = (await call('GET', '/api/memory/search?q=yacht', undefined, bearer)).body.memories
    expect(seen.map(({ content }: { content: string }) => content)).toEqual(['The owner has a yacht'])
    expect((await call('GET', '/api/memory/user/ann', undefined, bearer)).body.memories).toEqual([])
    for (const [method, path, body] of [
      ['POST', '/api/memory', { content: 'x' }],
      ['DELETE', `/api/memory/items/${seen[0].id}`, undefined],
      ['POST', '/api/memory/bulk-delete', { ids: [seen[0].id] }],
      ['DELETE', `/api/memory/agents/${agent}`, undefined],
    ] as const)
      expect([path, (await call(method, path, body, bearer)).status]).toEqual([path, 403])
    expect((await call('GET', '/api/memory', undefined, {})).status).toBe(401)
  })
})
