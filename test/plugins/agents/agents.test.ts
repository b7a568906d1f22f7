import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'

const plugins = ['audit', 'agents', 'kv']
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-agents-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

describe('the first boot', () => {
  it('makes one agent, assistant, and nothing else', async () => {
    await using host = await startHost({ plugins, home })
    const { body } = await host.json('GET', '/api/agents')
    expect(body).toHaveLength(1)
    expect(body[0]).toMatchObject({ name: 'assistant', state: 'Running' })
    const detail = await host.json('GET', `/api/agents/${body[0].id}`)
    expect(detail.body).toMatchObject({ capabilities: { tools: ['*'] }, warnings: [] })
    expect(detail.body.system_prompt.length).toBeGreaterThan(100)
  })

  it('happens once: a deleted assistant stays away', async () => {
    {
      await using host = await startHost({ plugins, home })
      const { body } = await host.json('GET', '/api/agents')
      expect((await host.json('DELETE', `/api/agents/${body[0].id}`)).status).toBe(200)
    }
    await using host = await startHost({ plugins, home })
    expect((await host.json('GET', '/api/agents')).body).toEqual([])
  })
})

describe('a restart', () => {
  it('brings every agent back as it was, in the same order', async () => {
    let before: { id: string }[]
    let detail: unknown
    {
      await using host = await startHost({ plugins, home })
      for (const name of ['one', 'two', 'three'])
        await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\ndescription = "x"\nodd = 1` })
      before = (await host.json('GET', '/api/agents')).body
      await host.json('PUT', `/api/agents/${before[2]?.id}/model`, { provider: 'p', model: 'm' })
      before = (await host.json('GET', '/api/agents')).body
      detail = (await host.json('GET', `/api/agents/${before[2]?.id}`)).body
      expect(before).toHaveLength(4)
    }
    await using host = await startHost({ plugins, home })
    expect((await host.json('GET', '/api/agents')).body).toEqual(before)
    expect((await host.json('GET', `/api/agents/${before[2]?.id}`)).body).toEqual(detail)
  })

  it('keeps names unique', async () => {
    {
      await using host = await startHost({ plugins, home })
      await host.json('POST', '/api/agents', { manifest_toml: 'name = "one"' })
    }
    await using host = await startHost({ plugins, home })
    expect((await host.json('POST', '/api/agents', { manifest_toml: 'name = "one"' })).status).toBe(409)
  })

  it('shows an agent whose stored manifest cannot be read, without rights', async () => {
    {
      await using host = await startHost({ plugins, home })
      await host.json('POST', '/api/agents', { manifest_toml: 'name = "damaged"\n[capabilities]\ntools = ["*"]' })
    }
    const { default: Database } = await import('better-sqlite3')
    const { globSync } = await import('node:fs')
    const file = globSync(join(home, 'data', '*.db'))[0] ?? ''
    const database = new Database(file)
    expect(
      database.prepare('UPDATE agents_agent SET manifest_toml = ? WHERE name = ?').run('= broken', 'damaged').changes,
    ).toBe(1)
    database.close()
    await using host = await startHost({ plugins, home })
    const { body } = await host.json('GET', '/api/agents?q=damaged')
    const detail = await host.json('GET', `/api/agents/${body[0].id}`)
    expect(detail.body).toMatchObject({ name: 'damaged', capabilities: { tools: [] } })
    expect(detail.body.warnings[0]).toContain('cannot be read')
    expect((await host.json('DELETE', `/api/agents/${body[0].id}`)).status).toBe(200)
  })
})

describe('with the providers loaded', () => {
  it('default is shown as what it stands for', async () => {
    await using host = await startHost({
      plugins: [...plugins, 'usage', 'providers', 'providers/builtin'],
      home,
      config: { default_provider: 'builtin', default_model: 'offline' },
    })
    const [agent] = (await host.json('GET', '/api/agents')).body
    expect(agent).toMatchObject({ model_provider: 'builtin', model_name: 'offline' })
    expect((await host.json('GET', `/api/agents/${agent.id}`)).body.model).toMatchObject({
      provider: 'builtin',
      model: 'offline',
    })
    expect((await host.json('PUT', `/api/agents/${agent.id}/model`, { model: 'builtin/other' })).body).toEqual({
      status: 'updated',
      provider: 'builtin',
      model: 'other',
      warnings: [],
    })
  })
})

describe('the plugin', () => {
  it('finds its agents again after a reload', async () => {
    await using host = await startHost({ plugins, home })
    const before = (await host.json('GET', '/api/agents')).body
    await host.app.daemon.reload('agents')
    expect((await host.json('GET', '/api/agents')).body).toEqual(before)
  })
})
