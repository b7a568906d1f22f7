import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTestOptions } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

/** What a turn of an agent needs. */
const builtIns = ['audit', 'agents', 'sessions', 'cluster', 'journal', 'usage', 'providers', 'screening', 'chat']
const kv = new URL('../../plugins/kv/', import.meta.url)

describe('a test of a plugin', () => {
  it('loads no built-in plugins but those it names, and the one of the test', async () => {
    await using test = await startPlugin({ plugin: kv, builtIns: ['audit', 'agents', 'plugin-admin', 'providers'] })
    const { body } = await test.request<{ plugins: { name: string }[] }>('GET', '/api/plugins')
    const names = body.plugins.map(({ name }) => name).toSorted()
    expect(names).toEqual(['agents', 'audit', 'kv', 'plugin-admin', 'provider-fake', 'providers'])
  })

  it('is told which built-in plugins there are when it names another', async () => {
    const starts = startPlugin({ plugin: kv, builtIns: ['agent'] })
    await expect(starts).rejects.toThrow(/no built-in plugin "agent".*there are .*agents, .*audit/)
  })

  it('talks to an agent whose model answers what the test says', async () => {
    await using test = await startPlugin({ plugin: kv, builtIns })
    const agent = await test.spawn('grace')
    expect(await test.say(agent, 'Hello', 'Good day.')).toBe('Good day.')
    const stored = await test.say(
      agent,
      'Keep it',
      { calls: [{ tool: 'kv_set', args: { key: 'a', value: 1 } }] },
      'Kept.',
    )
    expect(stored).toBe('Kept.')
    expect(await test.callTool('kv_get', { key: 'a' }, { agentId: agent })).toMatchObject({ text: '1' })
  })

  it('is told why an agent cannot be made or does not answer', async () => {
    await using test = await startPlugin({ plugin: kv, builtIns })
    const agent = await test.spawn('grace')
    await expect(test.spawn('grace')).rejects.toThrow(/POST \/api\/agents answered 409/)
    await expect(test.say(agent, 'Hello', { fails: new Error('planned') })).rejects.toThrow(/\/message answered 5\d\d/)
    expect(test.defects.splice(0)).toEqual([expect.objectContaining({ message: expect.stringContaining('planned') })])
  })

  it('starts the daemon again on the data of a file, and may change files before', async () => {
    await using test = await startPlugin({ plugin: kv, builtIns: ['audit', 'agents'], database: 'file' })
    const agent = await test.spawn('keeper')
    await test.callTool('kv_set', { key: 'a', value: 1 }, { agentId: agent })
    const note = join(test.home, 'note')
    await test.restart(() => writeFile(note, 'stopped'))
    expect(await test.callTool('kv_get', { key: 'a' }, { agentId: agent })).toMatchObject({ text: '1', failed: false })
    expect(await readFile(note, 'utf8')).toBe('stopped')
  })
})

describe('requests that a plugin sends in a test', () => {
  const server = createServer((_request, response) => void response.end('from the server'))
  let url = ''
  beforeAll(async () => {
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => void server.close())

  async function fetched(more: Partial<PluginTestOptions>): Promise<string> {
    await using folder = await temporaryFolder()
    const text = pluginText('fetcher', {
      setup: `ctx.tools.add({ name: 'get', description: 'Gets it', input: v.object({}), risk: 'read',
        run: async () => (await ctx.fetch('${url}')).text() }); return {}`,
    })
    const plugin = await writePlugin(join(folder.path, 'fetcher'), text)
    await using test = await startPlugin({ plugin, builtIns: [], ...more })
    return (await test.callTool('get', {})).text
  }

  it('fail by default', async () => {
    await expect(fetched({})).rejects.toThrow('this test has no network')
  })
  it('are answered by the function of the test', async () => {
    expect(await fetched({ fetch: async () => new Response('from the test') })).toBe('from the test')
  })
  it('reach a server of the test through the network, where the configuration permits it', async () => {
    expect(await fetched({ fetch: 'network', config: { outbound: { allow: ['127.0.0.1'] } } })).toBe('from the server')
    expect(await fetched({ fetch: 'network' })).toContain('127.0.0.1')
  })
})
