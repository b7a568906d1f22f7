import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'

const plugins = [
  'audit',
  'agents',
  'kv',
  'memory',
  'files',
  'cluster',
  'queue',
  'journal',
  'usage',
  'activity',
  'system',
  fileURLToPath(new URL('../../fixtures/tool-caller', import.meta.url)),
]
const config = { plugins: { kv: { max_keys_per_agent: 5 }, memory: { max_notes_per_agent: 2 } } }

describe('agents, keys and notes on PostgreSQL', () => {
  let database: TestDatabase
  let host: TestHost
  beforeAll(async () => {
    database = await createTestDatabase()
    host = await startHost({ plugins, config: { ...config, database_url: database.url } })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  const spawn = (name: string) => host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })

  it('a first boot makes the assistant', async () => {
    expect((await host.json('GET', '/api/agents')).body).toMatchObject([{ name: 'assistant', state: 'Running' }])
  })

  it('an agent is spawned, changed and killed', async () => {
    const { body } = await spawn('one')
    expect((await host.json('PATCH', `/api/agents/${body.id}`, { name: 'renamed', description: 'd' })).status).toBe(200)
    expect((await host.json('GET', `/api/agents/${body.id.toUpperCase()}`)).body).toMatchObject({
      name: 'renamed',
      description: 'd',
    })
    expect((await host.json('DELETE', `/api/agents/${body.id}`)).status).toBe(200)
    expect((await host.json('GET', `/api/agents/${body.id}`)).status).toBe(404)
  })

  it('identity, mode, state and where it was cloned from are kept', async () => {
    const { body } = await spawn('whole')
    const at = `/api/agents/${body.id}`
    await host.json('PATCH', `${at}/identity`, { emoji: '🦊' })
    await host.json('PUT', `${at}/mode`, { mode: 'Stable' })
    await host.json('PUT', `${at}/mode`, { mode: 'assist' })
    const clone = (await host.json('POST', `${at}/clone`)).body
    await host.json('PUT', `${at}/suspend`)
    expect((await host.json('GET', at)).body).toMatchObject({
      identity: { emoji: '🦊' },
      mode: 'Stable',
      permission: 'assist',
      state: 'Paused',
    })
    expect((await host.json('GET', `/api/agents/${clone.id}`)).body).toMatchObject({
      name: 'whole-clone',
      identity: { emoji: '🦊' },
      mode: 'Stable',
      state: 'Running',
    })
    expect((await host.json('POST', '/api/agents/bulk/stop', [body.id, clone.id])).body.succeeded).toBe(2)
  })

  it('uploads, exports and figures work', async () => {
    const { body } = await spawn('active')
    const at = `/api/agents/${body.id}`
    const sent = await host.fetch(`${at}/upload`, {
      method: 'POST',
      body: 'a,b',
      headers: { 'content-type': 'text/csv', 'x-filename': 't.csv' },
    })
    const { file_id: file } = await sent.json()
    expect(await (await host.fetch(`/api/uploads/${file}`)).text()).toBe('a,b')
    expect(
      (await host.json('POST', `${at}/memory/import`, { kv: { a: 1, b: { c: 2 } }, clear_existing: true })).body
        .keys_imported,
    ).toBe(2)
    expect((await host.json('GET', `${at}/memory/export`)).body.kv).toEqual({ a: 1, b: { c: 2 } })
    for (const row of ['traces', 'metrics', 'logs', 'logs?level=info&offset=1', 'deliveries'])
      expect([row, (await host.json('GET', `${at}/${row}`)).status]).toEqual([row, 200])
    expect((await host.json('DELETE', at)).status).toBe(200)
    expect((await host.json('GET', `/api/uploads/${file}`)).status).toBe(404)
  })

  it('a name is given once, also to many at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => spawn('wanted')))
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)])
    const { entries } = (await host.json('GET', '/api/audit/recent?limit=500')).body
    expect(entries.filter((entry: { details: string }) => entry.details.includes('"wanted"'))).toHaveLength(1)
  })

  it('what another daemon writes is seen', async () => {
    const { body } = await spawn('elsewhere')
    await database.query(
      `UPDATE agents_agent SET name = 'moved', manifest_toml = 'name = "moved"' WHERE id = '${body.id}'`,
    )
    expect((await host.json('GET', `/api/agents/${body.id}`)).body.name).toBe('moved')
    await database.query(`DELETE FROM agents_agent WHERE id = '${body.id}'`)
    expect((await host.json('GET', `/api/agents/${body.id}`)).status).toBe(404)
    expect((await host.json('GET', '/api/agents?q=moved')).body).toEqual([])
  })

  it('keys hold any JSON, within their limit', async () => {
    const { body } = await spawn('keys')
    const put = (key: string, text: string) =>
      host.fetch(`/api/memory/agents/${body.id}/kv/${encodeURIComponent(key)}`, {
        method: 'PUT',
        body: text,
        headers: { 'content-type': 'application/json' },
      })
    for (const [at, value] of ['null', '"\\u0000 🦊"', '12345678901234567890', '{"__proto__":1}', '[]'].entries()) {
      expect((await put(`k ${at}`, `{"value":${value}}`)).status).toBe(200)
      expect(await (await host.fetch(`/api/memory/agents/${body.id}/kv/k%20${at}`)).text()).toBe(
        `{"key":"k ${at}","value":${value}}`,
      )
    }
    expect((await put('one more', '{"value":1}')).status).toBe(400)
    expect((await put('k 0', '{"value":2}')).status).toBe(200)
    expect((await host.json('GET', `/api/memory/agents/${body.id}/kv`)).body.kv_pairs).toHaveLength(5)
    expect((await host.json('DELETE', `/api/memory/agents/${body.id}/kv/k%200`)).status).toBe(200)
    expect((await put('one more', '{"value":1}')).status).toBe(200)
  })

  it('notes are kept, found and limited', async () => {
    const { body } = await spawn('notes')
    const call = async (tool: string, args: unknown): Promise<{ text: string; failed: boolean }> =>
      (await host.json('POST', `/test/tools/${tool}`, { agent_id: body.id, args })).body
    expect((await call('memory_store', { key: 'a', value: 'Käse' })).failed).toBe(false)
    expect((await call('memory_store', { key: 'b', value: 'x' })).failed).toBe(false)
    expect((await call('memory_store', { key: 'c', value: 'x' })).failed).toBe(true)
    expect((await call('memory_store', { key: 'a', value: 'KÄSE' })).failed).toBe(false)
    expect(JSON.parse((await call('memory_recall', { key: 'käse' })).text)).toMatchObject([{ key: 'a', value: 'KÄSE' }])
  })
})

it('daemons that start at the same moment on an empty database make the assistant once', async () => {
  await using database = await createTestDatabase()
  const hosts = await Promise.all(
    [1, 2, 3].map(() => startHost({ plugins, config: { ...config, database_url: database.url } })),
  )
  try {
    for (const host of hosts)
      expect((await host.json('GET', '/api/agents')).body).toMatchObject([{ name: 'assistant', state: 'Running' }])
  } finally {
    for (const host of hosts) await host[Symbol.asyncDispose]()
  }
})
