import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
beforeAll(async () => {
  host = await startHost({
    plugins: ['audit', 'agents', 'kv'],
    config: {
      plugins: {
        kv: {
          max_keys_per_agent: 20,
          max_value_bytes: 1000,
          max_key_chars: 64,
          max_value_depth: 8,
          max_import_bytes: 20_000,
        },
      },
    },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

let count = 0
const spawn = async (): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${count++}"` })).body.agent_id
const put = (id: string, key: string, value: unknown) =>
  host.json('PUT', `/api/memory/agents/${id}/kv/${encodeURIComponent(key)}`, { value })
const keys = async (id: string): Promise<string[]> =>
  (await host.json('GET', `/api/memory/agents/${id}/kv`)).body.kv_pairs.map((pair: { key: string }) => pair.key)

describe.each([['/api/agents/:id/memory/export', '/api/agents/:id/memory/import']])(
  '%s and %s',
  (exportPath, importPath) => {
    const get = (id: string) => host.json('GET', exportPath.replace(':id', id))
    const post = (id: string, body: unknown) => host.json('POST', importPath.replace(':id', id), body)
    const send = (id: string, body: string) =>
      host.fetch(importPath.replace(':id', id), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })

    it('what one agent exports, another imports as it was', async () => {
      const from = await spawn()
      const to = await spawn()
      await put(from, 'theme', 'dark')
      await put(from, 'nested', { list: [1, null, true] })
      await host.fetch(`/api/memory/agents/${from}/kv/__proto__`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: '{"value":12345678901234567890}',
      })
      const text = await (await host.fetch(exportPath.replace(':id', from))).text()
      expect(JSON.parse(text)).toMatchObject({
        agent_id: from,
        version: 1,
        kv: { theme: 'dark', nested: { list: [1, null, true] } },
      })
      const answer = await send(to, text)
      expect([answer.status, await answer.json()]).toEqual([
        200,
        { status: 'imported', agent_id: to, keys_imported: 3 },
      ])
      const copy = await (await host.fetch(exportPath.replace(':id', to))).text()
      expect(copy).toBe(text.replace(from, to))
      expect(copy).toContain('"__proto__":12345678901234567890')
    })

    it('an import leaves other keys alone, unless it is to clear them', async () => {
      const id = await spawn()
      await put(id, 'old', 1)
      expect((await post(id, { kv: { fresh: 2 } })).body.keys_imported).toBe(1)
      expect(await keys(id)).toEqual(['fresh', 'old'])
      await post(id, { kv: { only: 3 }, clear_existing: true })
      expect(await keys(id)).toEqual(['only'])
      expect((await post(id, { kv: {} })).body).toEqual({ status: 'imported', agent_id: id, keys_imported: 0 })
    })

    it('keeps what it can and names the rest', async () => {
      const id = await spawn()
      const { status, body } = await post(id, { kv: { good: 1, ['k'.repeat(65)]: 2, large: 'x'.repeat(1001), '': 3 } })
      expect(status).toBe(200)
      expect(body).toMatchObject({ status: 'partial', keys_imported: 1, failed_keys: ['k'.repeat(65), 'large', ''] })
      expect(await keys(id)).toEqual(['good'])
    })

    it('with more keys than there may be changes nothing', async () => {
      const id = await spawn()
      await put(id, 'there', 1)
      const kv = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`key-${index}`, index]))
      expect((await post(id, { kv })).status).toBe(400)
      expect(await keys(id)).toEqual(['there'])
      expect((await post(id, { kv, clear_existing: true })).status).toBe(200)
      expect(await keys(id)).toHaveLength(20)
    })

    it('goes into the agent of the path only', async () => {
      const id = await spawn()
      const other = await spawn()
      await put(other, 'theirs', 1)
      await post(id, { agent_id: other, version: 1, kv: { mine: 1 }, clear_existing: true })
      expect([await keys(id), await keys(other)]).toEqual([['mine'], ['theirs']])
      expect((await get(id)).body.kv).toEqual({ mine: 1 })
    })

    it.each([
      ['nothing', ''],
      ['no kv', '{}'],
      ['a list', '[]'],
      ['a list of memories', '[{"content":"x"}]'],
      ['kv of text', '{"kv":"x"}'],
      ['kv of null', '{"kv":null}'],
      ['kv of a list', '{"kv":[]}'],
      ['another version', '{"kv":{},"version":2}'],
      ['clear_existing of text', '{"kv":{},"clear_existing":"yes"}'],
      ['broken JSON', '{"kv":'],
      ['deep nesting', `{"kv":{"a":${'['.repeat(50)}${']'.repeat(50)}}}`],
    ])('%s is 400 and changes nothing', async (_, body) => {
      const id = await spawn()
      await put(id, 'there', 1)
      expect((await send(id, body)).status).toBe(400)
      expect(await keys(id)).toEqual(['there'])
    })

    it('over its limit is 413; an unknown agent 404; no id 400', async () => {
      const id = await spawn()
      expect((await send(id, JSON.stringify({ kv: { a: 'x'.repeat(30_000) } }))).status).toBe(413)
      for (const [target, status] of [
        [nobody, 404],
        ['x', 400],
      ] as const) {
        expect((await get(target)).status).toBe(status)
        expect((await post(target, { kv: { a: 1 } })).status).toBe(status)
      }
    })

    it('is in the audit log', async () => {
      const id = await spawn()
      await post(id, { kv: { a: 1 }, clear_existing: true })
      const { entries } = (await host.json('GET', `/api/audit/recent?agent_id=${id}&event_type=memory_access`)).body
      expect(entries.map((entry: { details: string }) => entry.details)).toEqual([
        'import of 1 keys, all others deleted',
      ])
    })
  },
)
