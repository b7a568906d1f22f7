import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { server, startMcp, untilState, viewOf } from './servers.ts'

const KEY = 'a-key-that-nobody-else-has'
let test: PluginTest
beforeAll(async () => {
  test = await startMcp(
    [
      server('files', [], { tool_timeout_secs: { hang: 1 }, timeout_secs: 20, env: ['LANGUAGE_OF_TEST'] }),
      server('many', ['--names=one', '--tools=1000'], { tools: ['one', 'tool-*'] }),
      // The tools of these two have the same names.
      server('a', ['--names=b_c,Get,get,other'], { tools: ['b_c', '*et'] }),
      server('a-b', [`--names=c,${'long'.repeat(50)}`]),
      server('rated', [], { trust_annotations: true, tool_risk: { echo: 'write' } }),
      server('least', [], { trust_annotations: true, risk: 'write' }),
    ],
    { max_output_bytes: 100_000 },
    { providers: { openai: { api_key: KEY } } },
  )
  for (const name of ['files', 'many', 'a', 'a-b', 'rated', 'least']) await untilState(test, name, 'connected')
})
afterAll(() => test[Symbol.asyncDispose]())
process.env['LANGUAGE_OF_TEST'] = 'tlhIngan'

const call = (tool: string, args: object = {}, more: object = {}) => test.callTool(tool, args, more)
const textOf = async (tool: string, args?: object): Promise<string> => (await call(tool, args)).text

describe('a tool of a server', () => {
  it('answers with the parts, and a text for the model', async () => {
    expect(await call('mcp_files_echo', { text: 'hi' })).toMatchObject({
      text: 'hi',
      failed: false,
      content: [{ type: 'text', text: 'hi' }],
    })
    const image = await call('mcp_files_image')
    expect(image.text).toBe('Look:\n[image: image/png, 3 KB]')
    expect(image.content?.[1]).toMatchObject({ type: 'image', mimeType: 'image/png' })
    expect(await call('mcp_files_fails')).toMatchObject({ failed: true, text: 'it did not work' })
  })

  it('has its structured output checked', async () => {
    expect(await call('mcp_files_right')).toMatchObject({ failed: false, structured: { n: 1 }, text: '{"n":1}' })
    expect(await call('mcp_files_wrong')).toMatchObject({
      failed: true,
      text: expect.stringContaining("does not match the tool's output schema"),
    })
  })

  it('gets an environment of named variables only', async () => {
    const env = JSON.parse(await textOf('mcp_files_env')) as Record<string, string>
    expect(env['LANGUAGE_OF_TEST']).toBe('tlhIngan')
    expect(Object.keys(env)).not.toContain('NODE_ENV')
    expect(env['HOME']).toMatch(/\/mcp\/files$/)
  })

  it('tells how far it is', async () => {
    const told: unknown[] = []
    await call('mcp_files_progress', {}, { progress: (each: unknown) => told.push(each) })
    expect(told).toEqual([{ progress: 1, total: 2, message: 'half of it' }])
  })

  it('is called once with a key of its call, and told when the call is cancelled or takes too long', async () => {
    const stop = new AbortController()
    const running = call('mcp_files_hang', {}, { signal: stop.signal })
    await eventually(async () => expect(await textOf('mcp_files_calls')).toContain('"hang"'))
    stop.abort(new Error('stopped by a person'))
    await expect(running).rejects.toThrow('stopped by a person')
    expect(await call('mcp_files_hang')).toMatchObject({ failed: true, text: expect.stringContaining('within 1 s') })
    const calls = JSON.parse(await textOf('mcp_files_calls')) as Json[]
    expect(calls.filter(({ name }) => name === 'cancelled')).toHaveLength(2)
    const keys = calls.filter(({ name }) => name === 'hang').map(({ key }) => key)
    expect(new Set(keys).size).toBe(2)
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('may not answer more than the operator allows', async () => {
    expect(await call('mcp_files_big', { bytes: 200_000 })).toMatchObject({
      failed: true,
      text: expect.stringContaining('plugins.mcp.max_output_bytes (100000)'),
    })
  })

  it('is sent no secret of the daemon', async () => {
    expect(await call('mcp_files_echo', { text: `Bearer ${KEY}` })).toMatchObject({ failed: true, refused: 'Secret' })
  })

  it('that a server adds is there at once', async () => {
    expect(test.registered().tools).not.toContain('mcp_files_grown')
    await call('mcp_files_grow')
    await eventually(() => expect(test.registered().tools).toContain('mcp_files_grown'))
    expect(await textOf('mcp_files_grown')).toBe('called grown')
  })
})

describe('names', () => {
  it('that clash or are too long end in a hash, and reach the right tool', async () => {
    const { tools } = (await test.request<Json>('GET', '/api/mcp/tools')).body
    const named = (server: string, tool: string): string =>
      tools.find((each: Json) => each.server === server && each.tool === tool).name
    // What begins as the tools of a-b do is of a-b, whatever a lists.
    expect(named('a-b', 'c')).toBe('mcp_a_b_c')
    expect(named('a', 'b_c')).toMatch(/^mcp_a_[0-9a-f]{8}_b_c$/)
    expect(await textOf(named('a', 'b_c'))).toBe('called b_c')
    expect([named('a', 'get'), named('a', 'Get')]).toEqual(['mcp_a_get', expect.stringMatching(/_[0-9a-f]{8}$/)])
    const long = named('a-b', 'long'.repeat(50))
    expect(long).toMatch(/^mcp_a_b_(?:long)+_[0-9a-f]{8}$|^[a-z0-9_]{64}$/)
    expect(await textOf(named('a-b', 'c'))).toBe('called c')
    expect(await textOf(named('a', 'get'))).toBe('called get')
    expect(await textOf(long)).toBe(`called ${'long'.repeat(50)}`)
  })

  it('of a thousand tools in pages are all there, and those that the file does not name are not offered', async () => {
    const many = await viewOf(test, 'many')
    expect(many.tools).toHaveLength(1001)
    expect(await textOf('mcp_many_tool_999')).toBe('called tool-999')
    const a: Json = await viewOf(test, 'a')
    expect(a.tools.find(({ tool }: Json) => tool === 'other')).toMatchObject({ usable: false })
    expect(test.registered().tools).not.toContain('mcp_a_other')
  })
})

it('the risk is that of the operator; annotations lower it only where they are trusted', async () => {
  const risks = async (name: string): Promise<Record<string, string>> =>
    Object.fromEntries((await viewOf(test, name)).tools.map(({ tool, risk }: Json) => [tool, risk]))
  expect(await risks('files')).toMatchObject({ echo: 'execute', image: 'execute' })
  expect(await risks('rated')).toMatchObject({ echo: 'write', image: 'read', env: 'execute' })
  expect(await risks('least')).toMatchObject({ echo: 'write', image: 'write' })
})

it('agents use the tools of the servers that their manifest names', async () => {
  const id = await test.spawn('reader', 'mcp_servers = ["files"]\n[capabilities]\ntools = ["*"]\n')
  await test.say(id, 'say hi', { calls: [{ tool: 'mcp_files_echo', args: { text: 'hi' } }] }, 'done')
  const request = test.model.requests.at(-2)
  const offered = request?.tools?.map(({ name }) => name) ?? []
  expect(offered).toContain('mcp_files_echo')
  expect(offered.filter((name) => /^mcp_(?!files_)/.test(name))).toEqual([])
  expect(JSON.stringify(test.model.requests.at(-1))).toContain('hi')
  expect((await test.request<Json>('PUT', `/api/agents/${id}/mcp_servers`, { mcp_servers: ['many'] })).status).toBe(200)
})
