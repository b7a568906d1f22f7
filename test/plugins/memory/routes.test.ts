import type { Principal } from 'svc/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readerOf } from '../../../plugins/memory/entries/reader.ts'
import { GraphStore } from '../../../plugins/memory/graph/store.ts'
import { MemoryRequests } from '../../../plugins/memory/routes/requests.ts'
import { memoryRoutes } from '../../../plugins/memory/routes/routes.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { KEY, operator, pair } from '../pairing/devices.ts'
import { memoryOf, openStage } from './open-store.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
let agent: string
let serial = 0
const memory = (content: string) => ({ content })
beforeAll(async () => {
  host = await startHost({
    memory: true,
    plugins: [
      'audit',
      'agents',
      'cluster',
      'queue',
      'usage',
      'providers',
      'providers/builtin',
      'sessions',
      'screening',
      'memory',
      'pairing',
    ],
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
    // Not when it was changed, and without `restore` not what only a backup brings back.
    const { updated_at: _updated, accessed_at: _used, id: _id, source: _source, ...kept } = exported.memories[0]
    expect(again.memories).toEqual([expect.objectContaining(kept)])
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

  it('show somebody who signed in what is kept for them, under an id that they are told, and let them forget it', async () => {
    const { opened, db } = await openStage()
    const asks = (principal: Principal) => new MemoryRequests(opened, principal)
    const ann = asks({ kind: 'user', name: 'ann@example.com', id: 'sign-in 1', subject: 's1' })
    const key = asks({ kind: 'operator' })
    const forAnn = { level: 'user', userId: 's1' } as const
    const [cat, dog] = await opened.memories.add([
      memoryOf('a', 'Ann has a cat', forAnn),
      memoryOf('b', 'Ann has a dog', forAnn),
      memoryOf('a', 'Bob has a bird', { level: 'user', userId: 's2' }),
      memoryOf('a', 'The owner has a fish'),
    ])
    await new GraphStore(db, console).commit(
      ['s1', 's2'].map((userId) =>
        new GraphStore(db, console).putEntity(
          { agentId: 'a', userId },
          { id: userId, nameKey: 'x', name: 'X', type: 'person', properties: {}, isMade: true },
          '',
          10,
          '2026-01-01T00:00:00.000Z',
        ),
      ),
    )
    await opened.memories.add([memoryOf('b', 'Ann has two dogs', { ...forAnn, supersedes: dog?.id })])
    expect(await ann.users({})).toMatchObject({ me: 's1', total: 1, users: [{ user_id: 's1', count: 2 }] })
    expect(await key.users({ limit: '1' })).toMatchObject({ me: null, total: 2, users: [{ user_id: 's1' }] })
    const exported = await ann.exportedOf('me')
    expect(exported).toMatchObject({ user_id: 's1', count: 2, memories: [{ agent_id: 'a' }, { agent_id: 'b' }] })
    expect(await key.exportedOf('s1')).toEqual(exported)
    expect(await ann.exportedOf('s2')).toMatchObject({ count: 0 })
    expect((await key.exportedOf('me')).memories).toMatchObject([{ content: 'The owner has a fish' }])
    const [bird] = (await key.exportedOf('s2')).memories
    expect(bird?.content).toBe('Bob has a bird')
    const others = (await opened.memories.list({ userId: 's2', reader: { kind: 'operator' }, limit: 1, offset: 0 }))
      .memories
    await expect(ann.forget(others[0]?.id ?? '')).rejects.toThrow('no memory')
    expect(await ann.forget(cat?.id ?? '')).toMatchObject({ status: 'deleted' })
    expect(await ann.forgetUser('me')).toEqual({ status: 'deleted', user_id: 's1', deleted: 2 })
    expect(await key.users({})).toMatchObject({ total: 1, users: [{ user_id: 's2' }] })
    for (const table of ['memory_entry', 'memory_entity'])
      expect(JSON.stringify(await db.all([`SELECT * FROM ${table}`] as unknown as TemplateStringsArray))).not.toMatch(
        /s1|dog/,
      )
    await expect(key.forgetUser('me')).rejects.toThrow('owner')
  })

  it.each([
    ['DELETE', '/api/memory/user/:user_id', { user_id: 'me' }, ['own', 'lasting', 'lasting']],
    ['DELETE', '/api/memory/user/:user_id', { user_id: 's1' }, ['own', 'lasting', 'lasting']],
    ['DELETE', '/api/memory/user/:user_id', { user_id: 's2' }, ['lasting', 'lasting', 'lasting']],
    ['DELETE', '/api/memory/items/:memory_id', { memory_id: nobody }, ['own', 'lasting', 'lasting']],
  ])('%s %s with %o takes the key of all but the person it is kept for', (method, path, params, effects) => {
    const route = memoryRoutes(
      () => Promise.reject(new Error('unused')),
      () => Promise.reject(new Error('unused')),
      { configuration: {} as never, audit: {} as never },
    ).find((one) => one.method === method && one.path === path)
    const callers: Principal[] = [
      { kind: 'user', name: 'ann', id: 'sign-in 1', subject: 's1' },
      { kind: 'device', name: 'phone', id: 'me' },
      { kind: 'operator' },
    ]
    expect(callers.map((principal) => route?.effectOf?.({ principal, params } as never) ?? route?.effect)).toEqual(
      effects,
    )
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

  it('find in a conversation what its user states, once for a key, and nothing that others say', async () => {
    const spawn = '[model]\nprovider = "builtin"\nmodel = "offline"'
    await call('POST', '/api/agents', { manifest_toml: `name = "listener"\n${spawn}` })
    const messages = [
      { role: 'system', content: 'My name is Eve.' },
      { role: 'user', content: 'My name is Ann. I live in Graz.' },
      { role: 'assistant', content: 'I live in Linz.' },
      { role: 'user', content: 'He wrote: I work at Evil.' },
    ]
    const body = { messages, agent_id: 'listener', user_id: 'ann' }
    const headers = { ...operator, 'idempotency-key': 'a-conversation' }
    const first = await call('POST', '/api/memory', body, headers)
    expect(first.status).toBe(201)
    const said = first.body.memories.map(({ content }: { content: string }) => content).join('; ')
    expect([said, first.body.added]).toEqual([expect.stringMatching(/Ann.*Graz|Graz.*Ann/), 2])
    expect(first.body.memories[0]).toMatchObject({
      user_id: 'ann',
      level: 'user',
      source: { kind: 'person', person: 'operator', labels: [] },
    })
    const ids = (answer: typeof first) => answer.body.memories.map(({ id }: { id: string }) => id).sort()
    expect(ids(await call('POST', '/api/memory', body, headers))).toEqual(ids(first))
    expect((await call('POST', '/api/memory', body)).body.added).toBe(0)
    expect(
      (await call('GET', '/api/memory/user/ann?limit=100')).body.memories
        .map(({ content }: { content: string }) => content)
        .join(),
    ).not.toMatch(/Linz|Eve|Evil/)
    for (const more of [{ content: 'x' }, { tags: ['x'] }, { messages: [] }, { messages: [{ role: 'user' }] }])
      expect((await call('POST', '/api/memory', { ...body, ...more })).status).toBe(400)
  })

  it('tell the settings', async () => {
    expect((await call('GET', '/api/memory/config')).body).toMatchObject({
      embedding_provider: 'default',
      decay_rate: 0.01,
      proactive_memory: {
        auto_memorize: false,
        session_ttl_hours: 24,
        extract_categories: expect.arrayContaining(['preference']),
      },
    })
  })

  it.each([
    ['an entry that is no object', ['x'], 400, '0: '],
    ['an entry without content', [memory('ok'), {}], 400, '1.content'],
    ['content that is no text', [{ content: 7 }], 400, '0.content'],
    ['a lone surrogate', [{ content: 'a\uD800' }], 400, 'Unicode'],
    ['a zero in a tag', [{ content: 'a', tags: ['\0'] }], 400, '0.tags.0'],
    ['a level that there is none', { memories: [{ content: 'a', level: 'world' }] }, 400, 'user, session, agent'],
    ['a confidence beyond 1', [{ content: 'a', confidence: 1e9 }], 400, '0.confidence'],
    ['a time in the future', [{ content: 'a', created_at: '2999-01-01T00:00:00Z' }], 400, 'is in the future'],
    ['a time that is none', [{ content: 'a', created_at: 'yesterday' }], 400, 'created_at'],
    ['a day that is none', [{ content: 'a', created_at: '2026-02-31T99:00:00Z' }], 400, 'created_at'],
    ['a session without its id', [{ content: 'a', level: 'session' }], 400, 'session_id'],
    ['more than max_import', Array.from({ length: 4 }, () => memory('a')), 400, 'max_import'],
    ['content that is too long', [memory('x'.repeat(16_385))], 413, 'max_value_chars'],
    ['a body that is too long', [memory('x'.repeat(11_000_000))], 413, ''],
    ['too much metadata', [{ content: 'a', metadata: { x: 'x'.repeat(5_000) } }], 400, 'max_metadata_bytes'],
    ['another object', { kv: {} }, 400, 'memories'],
  ])('import nothing of a file with %s, and say what is wrong', async (_what, body, status, said) => {
    const { agent_id: to } = (await call('POST', '/api/agents', { manifest_toml: `name = "hostile-${serial++}"` })).body
    const answer = await call('POST', `/api/memory/agents/${to}/import`, body)
    expect([answer.status, JSON.stringify(answer.body).slice(0, 1_000)]).toEqual([
      status,
      expect.stringContaining(said),
    ])
    expect((await call('GET', `/api/memory/agents/${to}/count`)).body.count).toBe(0)
  })

  it('import an entry with the id of another as a new one, and one of before with its time', async () => {
    const [theirs] = (await call('POST', '/api/memory', { content: 'Theirs', agent_id: 'a' })).body.memories
    const { agent_id: to } = (await call('POST', '/api/agents', { manifest_toml: 'name = "taker"' })).body
    const forged = { content: 'Forged', id: theirs.id, agent_id: agent, source: { kind: 'person', labels: [] } }
    await call('POST', `/api/memory/agents/${to}/import`, [{ ...forged, created_at: '2020-05-01T10:00:00+02:00' }])
    expect((await call('GET', `/api/memory/items/${theirs.id}`)).body.content).toBe('Theirs')
    const { memories } = (await call('GET', `/api/memory/agents/${to}`)).body
    expect(memories).toMatchObject([
      {
        content: 'Forged',
        created_at: '2020-05-01T08:00:00.000Z',
        source: { kind: 'import', labels: ['ExternalNetwork'] },
      },
    ])
    expect(memories[0].id).not.toBe(theirs.id)
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
