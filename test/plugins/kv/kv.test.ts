import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const plugins = ['audit', 'agents', 'kv', fileURLToPath(new URL('../../fixtures/tool-door', import.meta.url))]
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-kv-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const spawn = async (host: TestHost, name: string, rest = ''): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n${rest}` })).body.agent_id
const call = async (
  host: TestHost,
  agent: string,
  tool: string,
  args: unknown,
): Promise<{ text: string; failed: boolean }> =>
  (await host.json('POST', `/test/tools/${tool}`, { agent_id: agent, args })).body
const keys = async (host: TestHost, agent: string): Promise<unknown> =>
  (await host.json('GET', `/api/memory/agents/${agent}/kv`)).body.kv_pairs

describe('keys', () => {
  it('survive a restart', async () => {
    let agent: string
    {
      await using host = await startHost({ plugins, home })
      agent = await spawn(host, 'a')
      await host.json('PUT', `/api/memory/agents/${agent}/kv/k`, { value: [1, null, 'x'] })
    }
    await using host = await startHost({ plugins, home })
    expect(await keys(host, agent)).toEqual([{ key: 'k', value: [1, null, 'x'] }])
  })

  it('go with their agent, and those of others stay', async () => {
    await using host = await startHost({ plugins, home })
    const [gone, stays] = [await spawn(host, 'gone'), await spawn(host, 'stays')]
    for (const agent of [gone, stays]) await host.json('PUT', `/api/memory/agents/${agent}/kv/k`, { value: 1 })
    await host.json('DELETE', `/api/agents/${gone}`)
    expect((await host.json('GET', `/api/memory/agents/${gone}/kv`)).status).toBe(404)
    expect(await keys(host, stays)).toEqual([{ key: 'k', value: 1 }])
    await host.stop()
    expect(await stored(home)).toEqual([stays])
  })

  it('of an agent that was killed just before the process died are removed at the next start', async () => {
    let agent: string
    {
      await using host = await startHost({ plugins, home })
      agent = await spawn(host, 'a')
      await host.json('PUT', `/api/memory/agents/${agent}/kv/k`, { value: 1 })
    }
    const database = await open(home)
    database.prepare('DELETE FROM agents_agent WHERE id = ?').run(agent)
    database.close()
    {
      await using _ = await startHost({ plugins, home })
    }
    expect(await stored(home)).toEqual([])
  })

  it('are not left behind when the agent dies while they are written', async () => {
    await using host = await startHost({ plugins, home })
    const agent = await spawn(host, 'a')
    const writes = Array.from({ length: 50 }, (_, n) =>
      host.json('PUT', `/api/memory/agents/${agent}/kv/k${n}`, { value: n }),
    )
    await Promise.all([...writes.slice(0, 25), host.json('DELETE', `/api/agents/${agent}`), ...writes.slice(25)])
    await host.stop()
    expect(await stored(home)).toEqual([])
  })
})

describe('the tools', () => {
  it('work on the same store as the routes', async () => {
    await using host = await startHost({ plugins, home })
    const agent = await spawn(host, 'a')
    expect(await call(host, agent, 'kv_set', { key: 'a', value: { n: 1 } })).toEqual({
      text: 'Stored "a".',
      failed: false,
    })
    expect(await keys(host, agent)).toEqual([{ key: 'a', value: { n: 1 } }])
    await host.json('PUT', `/api/memory/agents/${agent}/kv/b`, { value: 'x' })
    expect(await call(host, agent, 'kv_get', { key: 'b' })).toEqual({ text: '"x"', failed: false })
    expect(await call(host, agent, 'kv_list', {})).toEqual({ text: '["a","b"]', failed: false })
    expect(await call(host, agent, 'kv_list', { prefix: 'b' })).toEqual({ text: '["b"]', failed: false })
    expect((await call(host, agent, 'kv_delete', { key: 'a' })).text).toBe('Deleted "a".')
    expect((await call(host, agent, 'kv_delete', { key: 'a' })).text).toBe('There was no key "a".')
    expect(await keys(host, agent)).toEqual([{ key: 'b', value: 'x' }])
  })

  it('tell the model what is wrong', async () => {
    await using host = await startHost({ plugins, home })
    const agent = await spawn(host, 'a')
    expect(await call(host, agent, 'kv_get', { key: 'none' })).toEqual({
      text: expect.stringContaining('Key not found: none'),
      failed: true,
    })
    expect(await call(host, agent, 'kv_set', { key: 'a' })).toMatchObject({ failed: true })
    expect(await call(host, agent, 'kv_set', { key: '', value: 1 })).toMatchObject({ failed: true })
    expect(await call(host, agent, 'kv_set', { key: 'k'.repeat(600), value: 1 })).toMatchObject({ failed: true })
  })

  it('show an agent its own keys only', async () => {
    await using host = await startHost({ plugins, home })
    const [one, two] = [
      await spawn(host, 'one', '[capabilities]\nmemory_read = ["*"]\nmemory_write = ["*"]'),
      await spawn(host, 'two'),
    ]
    await call(host, two, 'kv_set', { key: 'secret', value: 1 })
    expect(await call(host, one, 'kv_list', {})).toEqual({ text: '[]', failed: false })
    expect((await call(host, one, 'kv_get', { key: 'secret' })).failed).toBe(true)
  })

  it('respect memory_read and memory_write, and the refusal is recorded', async () => {
    await using host = await startHost({ plugins, home })
    const agent = await spawn(host, 'a', '[capabilities]\nmemory_read = ["self.open*"]\nmemory_write = []')
    await host.json('PUT', `/api/memory/agents/${agent}/kv/open`, { value: 1 })
    await host.json('PUT', `/api/memory/agents/${agent}/kv/closed`, { value: 2 })
    expect((await call(host, agent, 'kv_get', { key: 'open' })).text).toBe('1')
    expect(await call(host, agent, 'kv_get', { key: 'closed' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_read'),
    })
    expect((await call(host, agent, 'kv_list', {})).text).toBe('["open"]')
    expect(await call(host, agent, 'kv_set', { key: 'open', value: 3 })).toMatchObject({ failed: true })
    expect(await call(host, agent, 'kv_delete', { key: 'open' })).toMatchObject({ failed: true })
    expect(await keys(host, agent)).toHaveLength(2)
    const { entries } = (await host.json('GET', '/api/audit/recent')).body
    expect(entries).toContainEqual(expect.objectContaining({ event_type: 'capability_check', agent_id: agent }))
  })
})

async function open(folder: string) {
  const { globSync } = await import('node:fs')
  const { default: Database } = await import('better-sqlite3')
  return new Database(globSync(join(folder, 'data', '*.db'))[0] ?? '')
}

/** Agents that have keys in the table. */
async function stored(folder: string): Promise<unknown[]> {
  const database = await open(folder)
  try {
    return database.prepare('SELECT DISTINCT agent_id FROM kv_pair').pluck().all()
  } finally {
    database.close()
  }
}
