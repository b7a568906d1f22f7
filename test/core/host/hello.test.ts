import { cp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

const source = fileURLToPath(new URL('../../../playground/plugins/hello', import.meta.url))

describe('the plugin of a third party, outside the repository', () => {
  it('is loaded from a path of the configuration, with its section, route, table and tool', async () => {
    await using outside = await temporaryFolder()
    await cp(source, join(outside.path, 'hello'), { recursive: true })
    await using host = await startHost({
      plugins: [],
      memory: true,
      config: { plugins: { paths: [outside.path], hello: { greeting: 'Welcome' } } },
    })
    expect((await host.json('GET', '/api/hello/Ada')).body).toEqual({ text: 'Welcome, Ada!', greeted: 1 })
    expect((await host.json('GET', '/api/hello/Ada')).body).toEqual({ text: 'Welcome, Ada!', greeted: 2 })
    expect(host.app.registrations()).toEqual(
      expect.arrayContaining(['hook agents:spawned x 1', 'route GET /api/hello/:name', 'tool hello']),
    )
    expect(host.app.daemon.plugins()).toMatchObject([
      { name: 'hello', state: 'loaded', source: join(outside.path, 'hello') },
    ])
  })

  it('hears the hooks of built-in plugins, which it knows by id', async () => {
    await using outside = await temporaryFolder()
    await cp(source, join(outside.path, 'hello'), { recursive: true })
    await using host = await startHost({ config: { plugins: { paths: [join(outside.path, 'hello')] } } })
    const { status } = await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "grace"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
    })
    expect(status).toBe(201)
    expect((await host.json('GET', '/api/hello/grace')).body).toMatchObject({ greeted: 2 })
  })

  it('uses a service and a hook of a built-in plugin by its contract', async () => {
    await using outside = await temporaryFolder()
    const text = pluginText('census', {
      before: `import { Agents, AgentSpawned } from 'svc/contracts/agents'`,
      members: 'requires: { agents: Agents },',
      setup: `let spawned = 0
    ctx.hooks.on(AgentSpawned, () => { spawned++ })
    ctx.routes.add(defineRoute({
      method: 'GET', path: '/api/census', summary: 'x', auth: 'bearer', effect: 'read', cost: 1,
      returns: v.object({ listed: v.number(), spawned: v.number() }),
      handle: async () => ({ listed: (await ctx.services.agents.list()).length, spawned }) }))
    return {}`,
    })
    await writePlugin(join(outside.path, 'census'), text)
    await using host = await startHost({ memory: true, config: { plugins: { paths: [outside.path] } } })
    const { body: before } = await host.json('GET', '/api/census')
    await host.json('POST', '/api/agents', { manifest_toml: 'name = "grace"\n' })
    expect((await host.json('GET', '/api/census')).body).toEqual({
      listed: before.listed + 1,
      spawned: before.spawned + 1,
    })
  })

  it('answers with the status of a Refusal it throws, because it has the class of the host', async () => {
    await using host = await startHost({ plugins: [source], memory: true })
    expect(await host.json('GET', '/api/hello/nobody')).toMatchObject({
      status: 404,
      body: { error: { code: 'greeting_not_found', message: 'There is nobody to greet' } },
    })
  })

  it('is live after an edit, goes on after a bad one, and is gone with its folder', async () => {
    await using host = await startHost({ plugins: [], memory: true, config: { plugins: { watch: true } } })
    const folder = join(host.home, 'plugins', 'hello')
    await cp(source, folder, { recursive: true })
    await host.plugin('hello', 'loaded')
    const text = await readFile(join(folder, 'index.ts'), 'utf8')
    await writePlugin(folder, text.replace('${name}!', '${name}, edited!'))
    await host.plugin('hello', 'loaded', ({ reloads }) => reloads === 1)
    expect((await host.json('GET', '/api/hello/Ada')).body).toMatchObject({ text: 'Hello, Ada, edited!' })
    await writePlugin(folder, text.replace('setup({', 'setup(({'))
    await host.plugin('hello', 'loaded', ({ error }) => /hello\/index\.ts:\d+:\d+/.test(error ?? ''))
    expect((await host.json('GET', '/api/hello/Ada')).body).toMatchObject({ text: 'Hello, Ada, edited!', greeted: 2 })
    await rm(folder, { recursive: true })
    await host.plugin('hello', 'gone')
    expect((await host.fetch('/api/hello/Ada')).status).toBe(404)
    expect(host.app.registrations().filter((line) => line.includes('hello'))).toEqual([])
  })
})

describe('a provider of a third party, in one file', () => {
  it('is loaded from a path of the configuration and answers an agent, and its model is listed', async () => {
    await using outside = await temporaryFolder()
    await cp(
      fileURLToPath(new URL('../../../playground/plugins/parrot.ts', import.meta.url)),
      join(outside.path, 'parrot.ts'),
    )
    await using host = await startHost({ memory: true, config: { plugins: { paths: [outside.path] } } })
    const {
      body: { agent_id: id },
    } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "polly"\n[model]\nprovider = "parrot"\n' })
    expect((await host.json('POST', `/api/agents/${id}/message`, { message: 'Pieces of eight' })).body).toMatchObject({
      response: 'Pieces of eight',
      provider: 'parrot',
      model: 'grey',
      cost_usd: 0,
    })
    expect((await host.json('GET', '/api/models?provider=parrot')).body.models).toMatchObject([
      { id: 'grey', available: true, tier: 'local' },
    ])
  })
})
