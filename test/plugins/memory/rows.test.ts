import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const nobody = '0f6a1b3c-0000-4000-8000-000000000000'
let host: TestHost
/** What `:agent`, `:memory` and `:gone` stand for in a path. */
const ids: Record<string, string> = {}
beforeAll(async () => {
  host = await startHost({ memory: true })
  const made = await host.json('POST', '/api/agents', { manifest_toml: 'name = "rows"' })
  ids['agent'] = made.body.agent_id
  for (const [name, content] of Object.entries({ memory: 'Prefers trains', gone: 'Drinks tea' })) {
    const added = await host.json('POST', '/api/memory', { content, agent_id: 'rows', user_id: 'ann', tags: ['x'] })
    ids[name] = added.body.memories[0].id
  }
})
afterAll(() => host[Symbol.asyncDispose]())
const entry = expect.objectContaining({
  id: expect.any(String),
  content: expect.any(String),
  level: expect.stringMatching(/^(user|session|agent)$/),
  confidence: expect.any(Number),
  created_at: expect.any(String),
  metadata: expect.any(Object),
})
const memories = expect.toSatisfy((list: unknown[]) => list.every((one) => entry.asymmetricMatch(one)))
const number = expect.any(Number)
const page = { memories, total: number, offset: 0, limit: 10 }
const stats = { total: number, user_count: number, session_count: number, agent_count: number, categories: {} }
const triple = { subject: 'Ann', relation: 'works_at', object: 'Acme' }

describe('the rows of memory answer what their clients read:', () => {
  it.each<readonly [method: string, path: string, body: unknown, status: number, answer: object]>([
    ['GET', '/api/memory', undefined, 200, { ...page, proactive_enabled: true }],
    ['GET', '/api/memory?limit=500&offset=1&level=user', undefined, 200, { limit: 100, offset: 1 }],
    ['GET', '/api/memory?level=world', undefined, 400, {}],
    ['POST', '/api/memory', { content: 'Has a cat', agent_id: 'rows' }, 201, { added: 1, memories: [entry] }],
    ['POST', '/api/memory', { content: ' ' }, 400, {}],
    ['POST', '/api/memory', { content: 'x', agent_id: nobody }, 404, {}],
    ['GET', '/api/memory/search?q=trains', undefined, 200, { memories: [entry] }],
    ['GET', '/api/memory/search?q=trains&agent_id=:agent&limit=1', undefined, 200, { memories: [entry] }],
    ['GET', '/api/memory/search', undefined, 400, {}],
    ['GET', '/api/memory/agents/:agent/search?q=trains&level=user', undefined, 200, { memories: [entry] }],
    ['GET', `/api/memory/agents/${nobody}/search?q=trains`, undefined, 404, {}],
    ['GET', '/api/memory/stats', undefined, 200, stats],
    ['POST', '/api/memory/cleanup', {}, 200, { cleaned_up: true, deleted_count: 0, session_ttl_hours: 24 }],
    ['POST', '/api/memory/decay', {}, 200, { decayed: true, decay_rate: 0.01 }],
    ['PUT', '/api/memory/items/:memory', { content: 'Likes trains' }, 200, { updated: true, memory_id: ':memory' }],
    ['PUT', '/api/memory/items/:memory', { content: '' }, 400, {}],
    ['PUT', `/api/memory/items/${nobody}`, { content: 'x' }, 404, {}],
    ['GET', '/api/memory/items/:memory/history', undefined, 200, { memory_id: ':memory', version_count: 2 }],
    ['GET', `/api/memory/items/${nobody}/history`, undefined, 404, {}],
    ['GET', '/api/memory/user/ann', undefined, 200, { memories: [entry, entry] }],
    ['GET', '/api/memory/agents/:agent', undefined, 200, page],
    ['GET', '/api/memory/agents/:agent/stats', undefined, 200, stats],
    [
      'GET',
      '/api/memory/agents/:agent/count?level=user',
      undefined,
      200,
      { agent_id: ':agent', count: 2, level: 'user' },
    ],
    ['GET', '/api/memory/agents/:agent/count?level=world', undefined, 400, {}],
    ['GET', '/api/memory/agents/:agent/duplicates', undefined, 200, { duplicate_groups: 0, groups: [] }],
    ['POST', '/api/memory/agents/:agent/consolidate', {}, 200, { consolidated: true, merged_count: 0 }],
    ['POST', '/api/memory/agents/:agent/relations', [triple], 200, { agent_id: ':agent', triples_processed: 1 }],
    [
      'GET',
      '/api/memory/agents/:agent/relations?source=Ann&relation=works_at&target=Acme',
      undefined,
      200,
      {
        matches: [
          {
            source: { id: expect.any(String), name: 'Ann', entity_type: 'concept' },
            relation: { type: 'works_at', confidence: 1 },
            target: { name: 'Acme' },
          },
        ],
        count: 1,
      },
    ],
    ['POST', '/api/memory/agents/:agent/import', [{ content: 'Swims' }], 200, { imported: 1, agent_id: ':agent' }],
    ['GET', '/api/memory/agents/:agent/export', undefined, 200, { agent_id: ':agent', count: 4 }],
    ['DELETE', '/api/memory/items/:gone', undefined, 200, { status: 'deleted', memory_id: ':gone' }],
    ['DELETE', '/api/memory/items/:gone', undefined, 404, {}],
    ['POST', '/api/memory/bulk-delete', { ids: [nobody] }, 200, { deleted: 0, failed: 1, total: 1 }],
    ['POST', '/api/memory/bulk-delete', {}, 400, {}],
    ['DELETE', '/api/memory/agents/:agent/level/world', undefined, 400, {}],
    ['DELETE', '/api/memory/agents/:agent/level/user', undefined, 200, { status: 'deleted', agent_id: ':agent' }],
    ['DELETE', '/api/memory/agents/:agent', undefined, 200, { status: 'deleted', agent_id: ':agent' }],
    ['DELETE', `/api/memory/agents/${nobody}`, undefined, 404, {}],
    ['PUT', '/api/memory/agents/:agent/kv/k', { value: { a: 1 } }, 200, { status: 'stored', key: 'k' }],
    ['GET', '/api/memory/agents/:agent/kv/k', undefined, 200, { key: 'k', value: { a: 1 } }],
    ['GET', '/api/memory/agents/:agent/kv', undefined, 200, { kv_pairs: [{ key: 'k', value: { a: 1 } }] }],
    ['DELETE', '/api/memory/agents/:agent/kv/k', undefined, 200, { status: 'deleted', key: 'k' }],
    ['DELETE', '/api/memory/agents/:agent/kv/k', undefined, 200, { status: 'deleted', key: 'k' }],
    ['GET', '/api/memory/agents/:agent/kv/k', undefined, 404, { error: expect.stringContaining('k') }],
  ])('%s %s with %j gives %i', async (method, path, body, status, answer) => {
    const named = (text: string): string =>
      text.replaceAll(/:(agent|memory|gone)\b/g, (_, name: string) => ids[name] ?? '')
    const got = await host.json(method, named(path), body)
    const wanted = Object.fromEntries(
      Object.entries(answer).map(([name, value]) => [name, typeof value === 'string' ? named(value) : value]),
    )
    expect([got.status, got.body]).toMatchObject([status, wanted])
  })
})
