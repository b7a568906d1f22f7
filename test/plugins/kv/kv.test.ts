import Database from 'better-sqlite3'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { callTool } from '../plugin-test.ts'

const start = (): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/kv/', import.meta.url),
    builtIns: ['audit', 'agents'],
    database: 'file',
  })
const put = (test: PluginTest, agent: string, key: string, value: unknown) =>
  test.request('PUT', `/api/memory/agents/${agent}/kv/${key}`, { value })
const kill = (test: PluginTest, agent: string) => test.request('DELETE', `/api/agents/${agent}`)
const keys = async (test: PluginTest, agent: string): Promise<unknown> =>
  (await test.request<Json>('GET', `/api/memory/agents/${agent}/kv`)).body.kv_pairs

describe('keys', () => {
  it('survive a restart', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await put(test, agent, 'k', [1, null, 'x'])
    await test.restart()
    expect(await keys(test, agent)).toEqual([{ key: 'k', value: [1, null, 'x'] }])
  })

  it('go with their agent, and those of others stay', async () => {
    await using test = await start()
    const [gone, stays] = [await test.spawn('gone'), await test.spawn('stays')]
    for (const agent of [gone, stays]) await put(test, agent, 'k', 1)
    await kill(test, gone)
    expect((await test.request('GET', `/api/memory/agents/${gone}/kv`)).status).toBe(404)
    expect(await keys(test, stays)).toEqual([{ key: 'k', value: 1 }])
    expect(stored(test)).toEqual([stays])
  })

  it('of an agent that was killed just before the process died are removed at the next start', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await put(test, agent, 'k', 1)
    await test.restart(() => {
      const database = open(test)
      database.prepare('DELETE FROM agents_agent WHERE id = ?').run(agent)
      database.close()
    })
    expect(stored(test)).toEqual([])
  })

  it('are not left behind when the agent dies while they are written', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    const writes = Array.from({ length: 50 }, (_, n) => put(test, agent, `k${n}`, n))
    await Promise.all([...writes.slice(0, 25), kill(test, agent), ...writes.slice(25)])
    await test.restart(() => expect(stored(test)).toEqual([]))
  })
})

describe('the tools', () => {
  it('work on the same store as the routes', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    expect(await callTool(test, agent, 'kv_set', { key: 'a', value: { n: 1 } })).toEqual({
      text: 'Stored "a".',
      failed: false,
    })
    expect(await keys(test, agent)).toEqual([{ key: 'a', value: { n: 1 } }])
    await put(test, agent, 'b', 'x')
    expect(await callTool(test, agent, 'kv_get', { key: 'b' })).toEqual({ text: '"x"', failed: false })
    expect(await callTool(test, agent, 'kv_list', {})).toEqual({ text: '["a","b"]', failed: false })
    expect(await callTool(test, agent, 'kv_list', { prefix: 'b' })).toEqual({ text: '["b"]', failed: false })
    expect((await callTool(test, agent, 'kv_delete', { key: 'a' })).text).toBe('Deleted "a".')
    expect((await callTool(test, agent, 'kv_delete', { key: 'a' })).text).toBe('There was no key "a".')
    expect(await keys(test, agent)).toEqual([{ key: 'b', value: 'x' }])
  })

  it('tell the model what is wrong', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    expect(await callTool(test, agent, 'kv_get', { key: 'none' })).toEqual({
      text: expect.stringContaining('Key not found: none'),
      failed: true,
    })
    expect(await callTool(test, agent, 'kv_set', { key: 'a' })).toMatchObject({ failed: true })
    expect(await callTool(test, agent, 'kv_set', { key: '', value: 1 })).toMatchObject({ failed: true })
    expect(await callTool(test, agent, 'kv_set', { key: 'k'.repeat(600), value: 1 })).toMatchObject({ failed: true })
  })

  it('show an agent its own keys only', async () => {
    await using test = await start()
    const [one, two] = [
      await test.spawn('one', '[capabilities]\nmemory_read = ["*"]\nmemory_write = ["*"]'),
      await test.spawn('two'),
    ]
    await callTool(test, two, 'kv_set', { key: 'secret', value: 1 })
    expect(await callTool(test, one, 'kv_list', {})).toEqual({ text: '[]', failed: false })
    expect((await callTool(test, one, 'kv_get', { key: 'secret' })).failed).toBe(true)
  })

  it('respect memory_read and memory_write, and the refusal is recorded', async () => {
    await using test = await start()
    const agent = await test.spawn('a', '[capabilities]\nmemory_read = ["self.open*"]\nmemory_write = []')
    await put(test, agent, 'open', 1)
    await put(test, agent, 'closed', 2)
    expect((await callTool(test, agent, 'kv_get', { key: 'open' })).text).toBe('1')
    expect(await callTool(test, agent, 'kv_get', { key: 'closed' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_read'),
    })
    expect((await callTool(test, agent, 'kv_list', {})).text).toBe('["open"]')
    expect(await callTool(test, agent, 'kv_set', { key: 'open', value: 3 })).toMatchObject({ failed: true })
    expect(await callTool(test, agent, 'kv_delete', { key: 'open' })).toMatchObject({ failed: true })
    expect(await keys(test, agent)).toHaveLength(2)
    const { entries } = (await test.request<Json>('GET', '/api/audit/recent')).body
    expect(entries).toContainEqual(expect.objectContaining({ event_type: 'capability_check', agent_id: agent }))
  })
})

const open = ({ home }: PluginTest) => new Database(join(home, 'data', 'svc.db'))

/** Agents that have keys in the table. */
function stored(test: PluginTest): unknown[] {
  const database = open(test)
  try {
    return database.prepare('SELECT DISTINCT agent_id FROM kv_pair').pluck().all()
  } finally {
    database.close()
  }
}
