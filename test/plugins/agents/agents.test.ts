import Database from 'better-sqlite3'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'

const start = (more: Partial<PluginTestOptions> = {}): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/agents/', import.meta.url),
    builtIns: ['audit', 'kv'],
    database: 'file',
    ...more,
  })
const agents = async (test: PluginTest, query = ''): Promise<Json> =>
  (await test.request<Json>('GET', `/api/agents${query}`)).body
const detail = async (test: PluginTest, id: string): Promise<Json> =>
  (await test.request<Json>('GET', `/api/agents/${id}`)).body
const kill = async (test: PluginTest, id: string): Promise<number> =>
  (await test.request('DELETE', `/api/agents/${id}`)).status

describe('the first boot', () => {
  it('makes one agent, assistant, and nothing else', async () => {
    await using test = await start()
    const [assistant, ...others] = await agents(test)
    expect(others).toEqual([])
    expect(assistant).toMatchObject({ name: 'assistant', state: 'Running' })
    const { capabilities, warnings, system_prompt: prompt } = await detail(test, assistant.id)
    expect([capabilities, warnings]).toMatchObject([{ tools: ['*'] }, []])
    expect(prompt.length).toBeGreaterThan(100)
  })

  it('happens once: a deleted assistant stays away', async () => {
    await using test = await start()
    const [assistant] = await agents(test)
    expect(await kill(test, assistant.id)).toBe(200)
    await test.restart()
    expect(await agents(test)).toEqual([])
  })
})

describe('a restart', () => {
  it('brings every agent back as it was, in the same order', async () => {
    await using test = await start()
    for (const name of ['one', 'two', 'three']) await test.spawn(name, 'description = "x"\nodd = 1')
    const { id } = (await agents(test))[2]
    await test.request('PUT', `/api/agents/${id}/model`, { provider: 'p', model: 'm' })
    const before = await agents(test)
    const detailBefore = await detail(test, id)
    expect(before).toHaveLength(4)
    await test.restart()
    expect(await agents(test)).toEqual(before)
    expect(await detail(test, id)).toEqual(detailBefore)
  })

  it('keeps names unique', async () => {
    await using test = await start()
    await test.spawn('one')
    await test.restart()
    expect((await test.request('POST', '/api/agents', { manifest_toml: 'name = "one"' })).status).toBe(409)
  })

  it('shows an agent whose stored manifest cannot be read, without rights', async () => {
    await using test = await start()
    const id = await test.spawn('damaged')
    await test.restart(() => {
      const database = new Database(join(test.home, 'data', 'svc.db'))
      const update = database.prepare('UPDATE agents_agent SET manifest_toml = ? WHERE name = ?')
      expect(update.run('= broken', 'damaged').changes).toBe(1)
      database.close()
    })
    expect(await agents(test, '?q=damaged')).toMatchObject([{ id }])
    const shown = await detail(test, id)
    expect(shown).toMatchObject({ name: 'damaged', capabilities: { tools: [] } })
    expect(shown.warnings[0]).toContain('cannot be read')
    expect(await kill(test, id)).toBe(200)
  })
})

describe('with the providers loaded', () => {
  it('default is shown as what it stands for', async () => {
    await using test = await start({
      builtIns: ['audit', 'kv', 'usage', 'providers', 'builtin'],
      config: { default_provider: 'builtin', default_model: 'offline' },
    })
    const [agent] = await agents(test)
    expect(agent).toMatchObject({ model_provider: 'builtin', model_name: 'offline' })
    expect((await detail(test, agent.id)).model).toMatchObject({ provider: 'builtin', model: 'offline' })
    expect((await test.request('PUT', `/api/agents/${agent.id}/model`, { model: 'builtin/other' })).body).toEqual({
      status: 'updated',
      provider: 'builtin',
      model: 'other',
      warnings: [],
    })
  })
})

describe('the plugin', () => {
  it('finds its agents again after a reload', async () => {
    await using test = await start()
    const before = await agents(test)
    await test.reload()
    expect(await agents(test)).toEqual(before)
  })
})
