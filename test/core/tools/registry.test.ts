import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { ToolRegistry } from '../../../core/tools/registry.ts'
import type { ToolLimits } from '../../../core/tools/registry.ts'
import { defineTool } from '../../../core/tools/tool.ts'
import type { AnyTool, ToolCallContext } from '../../../core/tools/tool.ts'

function bench(limits: Partial<ToolLimits> = {}) {
  const defects: string[] = []
  const registry = new ToolRegistry({
    limits: () => ({ timeoutSecs: 120, outputChars: 50_000, contentChars: 1_000_000, ...limits }),
    onDefect: (_error, where) => {
      defects.push(where)
    },
  })
  const scope = new Scope('owner')
  const tools = registry.forPlugin(new Scope('chat'))
  return {
    registry,
    scope,
    tools,
    defects,
    add: (...added: readonly AnyTool[]) => registry.forPlugin(scope).add(...added),
  }
}
const call = (signal: AbortSignal = new AbortController().signal): ToolCallContext => ({
  agentId: 'a',
  agentName: 'A',
  sessionId: 's',
  turnId: 't',
  callId: 'c',
  signal,
})
const echo = (
  run: (text: string, call: ToolCallContext) => Promise<string> = async (text) => text,
  more: Partial<AnyTool> = {},
) =>
  defineTool({
    name: 'echo',
    description: 'Says it again.',
    risk: 'read',
    input: v.object({ text: v.pipe(v.string(), v.description('What to say.')) }),
    ...more,
    run: ({ text }, context) => run(text, context),
  })

const named = (name: string): AnyTool => ({
  name,
  description: name,
  risk: 'read',
  input: v.object({}),
  run: async () => name,
})

describe('a call of a tool', () => {
  it('parses the arguments and answers with the text', async () => {
    const { tools, add } = bench()
    add(echo())
    expect(await tools.call('echo', { text: 'hi' }, call())).toMatchObject({
      text: 'hi',
      failed: false,
      truncated: false,
    })
  })

  it('tells the model which field is wrong', async () => {
    const { tools, add } = bench()
    add(echo())
    const result = await tools.call('echo', { text: 1 }, call())
    expect(result.failed).toBe(true)
    expect(result.text).toBe(
      'The arguments of "echo" are not valid:\n- text: Invalid type: Expected string but received 1',
    )
  })

  it('tells the model what it can do about arguments that are no object', async () => {
    const { tools, add } = bench()
    add(echo())
    expect((await tools.call('echo', 'not json', call())).text).toContain(
      '- arguments: Invalid type: Expected Object but received "not json"',
    )
  })

  it('of an unknown name is a failed result', async () => {
    expect(await bench().tools.call('nothing', {}, call())).toMatchObject({
      failed: true,
      text: 'There is no tool "nothing".',
    })
  })

  it('tells the model a refusal and hides a defect, which is counted with the plugin', async () => {
    const { tools, add, defects } = bench()
    add(
      echo(async (text) => {
        throw text === 'refuse' ? new Refusal('forbidden', 'Not that key') : new Error('secret path /etc')
      }),
    )
    expect(await tools.call('echo', { text: 'refuse' }, call())).toMatchObject({ failed: true, text: 'Not that key' })
    expect(defects).toEqual([])
    expect(await tools.call('echo', { text: 'break' }, call())).toMatchObject({
      failed: true,
      text: 'The tool "echo" failed.',
    })
    expect(defects).toEqual(['plugin "owner", tool echo'])
  })

  it('is stopped when its time is up, and its signal with it', async () => {
    const { tools, add } = bench({ timeoutSecs: 0.01 })
    let aborted = false
    add(
      echo(
        (_text, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              aborted = true
              resolve('late')
            })
          }),
      ),
    )
    expect(await tools.call('echo', { text: 'x' }, call())).toMatchObject({
      failed: true,
      text: 'The tool "echo" was stopped after 0.01 seconds.',
    })
    expect(aborted).toBe(true)
  })

  it('rejects when the turn is stopped', async () => {
    const { tools, add } = bench()
    add(echo(() => new Promise(() => undefined)))
    const stop = new AbortController()
    const running = tools.call('echo', { text: 'x' }, call(stop.signal))
    stop.abort(new Error('stopped by the user'))
    await expect(running).rejects.toThrow('stopped by the user')
  })

  it('cuts a long answer between characters and says so', async () => {
    const { tools, add } = bench({ outputChars: 10 })
    add(echo(async () => `123456789😀 and more`))
    const { text, truncated } = await tools.call('echo', { text: 'x' }, call())
    expect(truncated).toBe(true)
    expect(text).toBe('123456789\n[cut: 11 of 20 characters are not shown]')
  })

  it('counts as running work of the plugin that owns the tool, also after the caller gave up', async () => {
    const { tools, add, scope } = bench({ timeoutSecs: 0.01 })
    const { promise, resolve } = Promise.withResolvers<string>()
    add(echo(() => promise))
    await tools.call('echo', { text: 'x' }, call())
    expect(scope.running).toBe(1)
    resolve('done')
    await promise
    await Promise.resolve()
    expect(scope.running).toBe(0)
  })

  it('ends with a failure the model can read when the plugin is unloaded', async () => {
    const { tools, add, scope } = bench()
    add(
      echo(
        (_text, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
          }),
      ),
    )
    const running = tools.call('echo', { text: 'x' }, call())
    await scope.close(1)
    expect(await running).toMatchObject({
      failed: true,
      text: 'The tool "echo" was stopped: its plugin is being reloaded.',
    })
    expect(tools.find('echo')).toBeUndefined()
  })

  it('waits while its plugin is replaced and runs on the new code', async () => {
    const { registry, tools, add, scope } = bench()
    add(echo(async () => 'old'))
    const release = registry.hold(['owner'])
    await scope.close(0)
    expect(tools.list().map(({ name }) => name)).toEqual(['echo'])
    const running = tools.call('echo', { text: 'x' }, call())
    registry.forPlugin(new Scope('owner')).add(echo(async () => 'new'))
    release()
    expect(await running).toMatchObject({ text: 'new', failed: false })
  })
})

describe('the list of tools', () => {
  it('describes the input as JSON Schema, sorted by name', () => {
    const { tools, add } = bench()
    add(echo(), echo(undefined, { name: 'another' }))
    expect(tools.list().map(({ name }) => name)).toEqual(['another', 'echo'])
    expect(tools.find('echo')).toMatchObject({
      description: 'Says it again.',
      risk: 'read',
      input: {
        type: 'object',
        properties: { text: { type: 'string', description: 'What to say.' } },
        required: ['text'],
      },
    })
  })

  it.each([
    ['Bad Name', 'must be snake_case'],
    ['x'.repeat(65), 'must be snake_case'],
  ])('refuses the name %s', (name, message) => {
    expect(() => bench().add(echo(undefined, { name }))).toThrow(message)
  })

  it('refuses a name that is taken and says by whom', () => {
    const { registry, add } = bench()
    add(echo())
    expect(() => registry.forPlugin(new Scope('second')).add(echo())).toThrow(
      'tool "echo" of plugin "second" is taken by plugin "owner"',
    )
  })

  describe('tools from one source', () => {
    it('replace those of that source, and leave the others', () => {
      const { registry, scope } = bench()
      const tools = registry.forPlugin(scope)
      tools.add(named('own'))
      tools.set('mcp:one', [named('mcp_one_a'), named('mcp_one_b')])
      tools.set('mcp:two', [named('mcp_two_a')])
      tools.set('mcp:one', [named('mcp_one_b'), named('mcp_one_c')])
      expect(tools.list().map(({ name, source }) => [name, source])).toEqual([
        ['mcp_one_b', 'mcp:one'],
        ['mcp_one_c', 'mcp:one'],
        ['mcp_two_a', 'mcp:two'],
        ['own', undefined],
      ])
      tools.set('mcp:one', [])
      expect(tools.list().map(({ name }) => name)).toEqual(['mcp_two_a', 'own'])
    })

    it('changes nothing when a name is in use', () => {
      const { registry, scope } = bench()
      const tools = registry.forPlugin(scope)
      tools.set('mcp:one', [named('a')])
      tools.set('mcp:two', [named('b')])
      expect(() => tools.set('mcp:one', [named('c'), named('b')])).toThrow('tool "b" of plugin "owner" is taken')
      expect(() => tools.set('mcp:one', [named('c'), named('c')])).toThrow('two tools "c"')
      expect(tools.list().map(({ name }) => name)).toEqual(['a', 'b'])
    })

    it('go with their plugin', async () => {
      const { registry, scope } = bench()
      registry.forPlugin(scope).set('mcp:one', [named('a')])
      await scope.close(0)
      expect(registry.list()).toEqual([])
    })
  })

  describe('an answer with more than text', () => {
    const picture = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const

    it('comes with its parts, and may say that the call failed', async () => {
      const { registry, scope, tools: caller } = bench()
      registry.forPlugin(scope).add({
        ...named('draw'),
        run: async () => ({ text: 'a picture', failed: true, content: [picture], structured: { width: 1 } }),
      })
      expect(await caller.call('draw', {}, call())).toMatchObject({
        text: 'a picture',
        failed: true,
        truncated: false,
        content: [picture],
        structured: { width: 1 },
      })
    })

    it('comes without parts that are too large, and says so', async () => {
      const { registry, scope, tools: caller } = bench({ contentChars: 50 })
      registry.forPlugin(scope).add({ ...named('draw'), run: async () => ({ text: 'a picture', content: [picture] }) })
      const answer = await caller.call('draw', {}, call())
      expect(answer.text).toMatch(/^a picture\n\[\d+ characters of further content are not shown\]$/)
      expect(answer).not.toHaveProperty('content')
      expect(answer.truncated).toBe(true)
    })
  })
})
