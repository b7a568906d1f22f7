import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

/** Agents talk to the embedded model: those that are asked by others must do what they are told. */
const start = (plugins: NonNullable<PluginTestOptions['config']>['plugins'] = {}): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/delegation/', import.meta.url),
    builtIns: [...turnPlugins, 'builtin', 'clock', 'files'],
    config: { default_provider: 'builtin', default_model: 'offline', plugins },
  })
let test: PluginTest
beforeAll(async () => {
  test = await start()
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
})

const use = (tool: string, args: unknown): string => `use ${tool} ${JSON.stringify(args)}`
const spawn = (name: string, capabilities = '', more = '', host = test): Promise<string> =>
  host.spawn(name, `${more}\n[capabilities]\ntools = ["*"]\n${capabilities}`)
const count = async (): Promise<number> => (await test.request<Json>('GET', '/api/agents')).body.length
const spawner = 'agent_spawn = true\nagent_message = ["*"]'

describe('agent_spawn', () => {
  it('makes an agent that works, through a whole turn', async () => {
    const parent = await spawn('maker', spawner)
    const answer = await test.say(
      parent,
      use('agent_spawn', { name: 'made', system_prompt: 'You say "hi".\nBriefly.', tools: ['system_time'] }),
    )
    const { agent_id: id } = JSON.parse(answer.slice(answer.indexOf('{')))
    expect((await test.request<Json>('GET', `/api/agents/${id}`)).body).toMatchObject({
      name: 'made',
      state: 'Running',
      capabilities: { tools: ['system_time'], network: [] },
      system_prompt: 'You say "hi".\nBriefly.',
    })
    expect(await test.say(id, 'echo hello')).toBe('hello')
    expect(await test.say(id, use('agent_list', {}))).toContain('There is no tool')
  })

  it.each<[string, unknown, string]>([
    ['a command', { name: 'bad', system_prompt: 'x', shell: ['rm *'] }, 'capabilities.shell: "rm *"'],
    ['a host', { name: 'bad', system_prompt: 'x', network: ['*'] }, 'capabilities.network: "*"'],
    ['a limit', { manifest_toml: 'name = "bad"\n[model]\nmax_tokens = 100000' }, 'model.max_tokens: 100000'],
    ['a key', { manifest_toml: 'name = "bad"\n[model]\napi_key_env = "HOME"' }, 'api_key_env'],
  ])(
    'refuses a child with more than its parent: %s. Nothing is made, and it is in the audit log',
    async (what, args, right) => {
      const parent = await spawn(`strict-${what.replaceAll(' ', '-')}`, spawner)
      const before = await count()
      expect(await callTool(test, parent, 'agent_spawn', args)).toMatchObject({
        failed: true,
        text: expect.stringContaining(right),
      })
      expect(await count()).toBe(before)
      expect((await auditDetails(test, 'capability_check'))[0]).toContain(right)
    },
  )

  it('is refused to an agent that may not spawn', async () => {
    const parent = await spawn('barren')
    expect(await callTool(test, parent, 'agent_spawn', { name: 'no', system_prompt: 'x' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('capabilities.agent_spawn'),
    })
  })

  it('tells what is wrong with a manifest, and that a name is taken', async () => {
    const parent = await spawn('clumsy', spawner)
    expect((await callTool(test, parent, 'agent_spawn', { manifest_toml: 'name = ' })).text).toContain('line 1')
    expect((await callTool(test, parent, 'agent_spawn', { name: 'clumsy', system_prompt: 'x' })).text).toContain(
      'exists already',
    )
    expect((await callTool(test, parent, 'agent_spawn', {})).text).toContain('Give manifest_toml')
  })

  it('leaves limits that a child does not mention where the parent has them', async () => {
    const parent = await spawn(
      'thrifty',
      spawner,
      [
        'tool_blocklist = ["system_time"]',
        '[model]',
        'max_tokens = 100',
        '[resources]',
        'max_cost_per_day_usd = 2.5',
        '[exec_policy]',
        'mode = "deny"',
      ].join('\n'),
    )
    const { agent_id: id } = await callToolJson(test, parent, 'agent_spawn', {
      manifest_toml: 'name = "thrifty-child"\n[capabilities]\ntools = ["*"]',
    })
    const { manifest_toml: toml } = (await test.request<Json>('GET', `/api/agents/${id}`)).body
    expect(toml).toMatch(/max_tokens = 100/)
    expect(toml).toMatch(/max_cost_per_day_usd = 2.5/)
    expect(toml).toMatch(/mode = "deny"/)
    expect(toml).toMatch(/tool_blocklist = \[ "system_time" \]/)
  })

  it('goes five generations deep', async () => {
    let parent = await spawn('gen-0', spawner)
    for (let depth = 1; depth <= 6; depth++) {
      const answer = await callTool(test, parent, 'agent_spawn', {
        manifest_toml: `name = "gen-${depth}"\n[capabilities]\ntools = ["*"]\n${spawner}`,
      })
      if (depth <= 5) parent = JSON.parse(answer.text).agent_id
      else expect(answer).toMatchObject({ failed: true, text: expect.stringContaining('6 generations') })
    }
  })

  it('fills a family of fifty, also when all are asked for at once', async () => {
    const parent = await spawn('crowd', spawner)
    const answers = await Promise.all(
      Array.from({ length: 55 }, (_, n) =>
        callTool(test, parent, 'agent_spawn', { name: `crowd-${n}`, system_prompt: 'x' }),
      ),
    )
    expect(answers.filter(({ failed }) => !failed)).toHaveLength(50)
    expect(answers.find(({ failed }) => failed)?.text).toContain('at most 50')
  })

  it('a child is stopped when its parent loses a right that it has', async () => {
    const parent = await spawn('shrinking', `${spawner}\nnetwork = ["*.example.com"]`)
    const { agent_id: id } = await callToolJson(test, parent, 'agent_spawn', {
      name: 'reaching',
      system_prompt: 'x',
      network: true,
    })
    expect(
      (
        await test.request<Json>('PATCH', `/api/agents/${parent}`, {
          manifest_toml: `name = "shrinking"\n[capabilities]\ntools = ["*"]\n${spawner}`,
        })
      ).status,
    ).toBe(200)
    expect((await test.request<Json>('GET', `/api/agents/${id}`)).body.state).toBe('Stopped')
    expect((await auditDetails(test, 'capability_check'))[0]).toContain('capabilities.network')
  })
})

it('a child may use no more kinds of tools than its parent, nor what came of the child', async () => {
  const parent = await spawn('watched', spawner)
  const { agent_id: child } = await callToolJson(test, parent, 'agent_spawn', {
    manifest_toml: `name = "watched-child"\n[capabilities]\ntools = ["*"]\n${spawner}`,
  })
  const { agent_id: grandchild } = await callToolJson(test, child, 'agent_spawn', {
    name: 'watched-grandchild',
    system_prompt: 'x',
  })
  await test.request<Json>('PUT', `/api/agents/${parent}/mode`, { mode: 'assist' })
  for (const id of [child, grandchild])
    expect((await test.request<Json>('GET', `/api/agents/${id}`)).body.permission).toBe('assist')
})

describe('agent_kill', () => {
  it('ends agents that came of the caller, and no others', async () => {
    const parent = await spawn('reaper', spawner)
    const other = await spawn('bystander', spawner)
    const { agent_id: child } = await callToolJson(test, parent, 'agent_spawn', {
      manifest_toml: `name = "reaper-child"\n[capabilities]\ntools = ["*"]\n${spawner}`,
    })
    await callToolJson(test, child, 'agent_spawn', { name: 'reaper-grandchild', system_prompt: 'x' })
    expect(await callTool(test, other, 'agent_kill', { agent_id: child })).toMatchObject({
      failed: true,
      text: expect.stringContaining('was not created by this one'),
    })
    expect(await callTool(test, child, 'agent_kill', { agent_id: 'reaper' })).toMatchObject({ failed: true })
    expect(await callTool(test, parent, 'agent_kill', { agent_id: parent })).toMatchObject({ failed: true })
    expect(await callTool(test, parent, 'agent_kill', { agent_id: 'reaper-grandchild' })).toMatchObject({
      failed: false,
    })
    expect(await callTool(test, parent, 'agent_kill', { agent_id: child })).toMatchObject({ failed: false })
    expect(await callTool(test, parent, 'agent_kill', { agent_id: child })).toMatchObject({
      failed: true,
      text: expect.stringContaining('There is no agent'),
    })
  })
})

describe('agent_list and agent_find', () => {
  it('show who there is', async () => {
    const self = await spawn('seeker', '', 'description = "Looks for needles"\ntags = ["search"]')
    expect(
      (await callToolJson(test, self, 'agent_list')).agents.find((each: { id: string }) => each.id === self),
    ).toMatchObject({ name: 'seeker', you: true, state: 'Running' })
    expect(
      (await callToolJson(test, self, 'agent_find', { query: 'NEEDLES search' })).agents.map(
        ({ name }: { name: string }) => name,
      ),
    ).toEqual(['seeker'])
    expect(await callToolJson(test, self, 'agent_find', { query: '.*' })).toMatchObject({ total: 0 })
  })
})

describe('agent_send', () => {
  it('brings the answer of another agent, by name or id', async () => {
    const asking = await spawn('asking', spawner)
    const id = await spawn('answering')
    expect(await test.say(asking, use('agent_send', { agent_id: 'answering', message: 'echo from afar' }))).toBe(
      'agent_send: from afar',
    )
    expect((await callTool(test, asking, 'agent_send', { agent_id: id, message: 'what did I say?' })).text).toBe(
      'You said: echo from afar',
    )
    expect(
      (
        await callTool(test, asking, 'agent_send', {
          agent_id: id,
          message: 'what did I say?',
          conversation_key: 'other',
        })
      ).text,
    ).toContain('first thing')
    expect((await test.request<Json>('GET', `/api/agents/${id}/session`)).body.message_count).toBe(0)
  })

  it('is refused to itself, to nobody, to one it may not send to, and to one that is stopped', async () => {
    const agent = await spawn('narrow', 'agent_message = ["team-*", "narrow"]')
    await spawn('team-a')
    await spawn('outsider')
    const text = async (to: string): Promise<string> =>
      (await callTool(test, agent, 'agent_send', { agent_id: to, message: 'echo x' })).text
    expect(await text('team-a')).toBe('x')
    expect(await text('narrow')).toContain('cannot send to itself')
    expect(await text('nobody')).toContain('There is no agent')
    expect(await text('outsider')).toContain('capabilities.agent_message')
    expect((await auditDetails(test, 'capability_check'))[0]).toContain('outsider')
    const { body } = await test.request<Json>('GET', '/api/agents')
    const id = body.find((each: { name: string }) => each.name === 'team-a').id
    await test.request<Json>('POST', `/api/agents/bulk/stop`, { agent_ids: [id] })
    expect(await text('team-a')).toContain('accepts no messages')
  })

  it('goes five deep, and never back to one that waits', async () => {
    const names = Array.from({ length: 7 }, (_, n) => `deep-${n}`)
    const ids = await Promise.all(names.map((name) => spawn(name, spawner)))
    const through = (path: readonly string[]): string =>
      path.reduceRight((message, to) => use('agent_send', { agent_id: to, message }), 'echo bottom')
    expect(await test.say(ids[0] ?? '', through(names.slice(1, 6)))).toContain('bottom')
    expect(await test.say(ids[0] ?? '', through(names.slice(1, 7)))).toContain('5 deep already')
    expect(await test.say(ids[0] ?? '', through(['deep-1', 'deep-0']))).toContain('is waiting for this answer')
  })

  it('gives nobody a tool that they have not: a mightier agent does not use its own for a lesser one', async () => {
    const { body } = await test.request<Json>('POST', '/api/agents', {
      manifest_toml: 'name = "lesser"\n[capabilities]\ntools = ["agent_send"]\nagent_message = ["*"]',
    })
    await spawn('mighty')
    expect(
      await test.say(body.agent_id, use('agent_send', { agent_id: 'mighty', message: 'use system_time {}' })),
    ).toContain('"lesser", who requested this, may not use system_time itself')
  })

  it('two agents that ask each other at the same time both get an answer', async () => {
    const a = await spawn('mutual-a', spawner)
    const b = await spawn('mutual-b', spawner)
    const [fromA, fromB] = await Promise.all([
      test.say(a, use('agent_send', { agent_id: 'mutual-b', message: 'echo to b' })),
      test.say(b, use('agent_send', { agent_id: 'mutual-a', message: 'echo to a' })),
    ])
    expect([fromA, fromB]).toEqual(['agent_send: to b', 'agent_send: to a'])
  })

  it('shares the limit of calls with the agents it asks', async () => {
    const {
      body: { agent_id: asked },
    } = await test.request<Json>('POST', '/api/agents', {
      manifest_toml: 'name = "eager"\n[capabilities]\ntools = ["*"]',
    })
    const asking = await spawn('impatient', spawner)
    const limited = await start({ chat: { tool_calls_per_turn: 2 } })
    try {
      const first = await spawn('first', spawner, '', limited)
      await spawn('second', spawner, '', limited)
      await spawn('third', '', '', limited)
      const through = use('agent_send', {
        agent_id: 'second',
        message: use('agent_send', { agent_id: 'third', message: 'use system_time {}' }),
      })
      // Two calls are used up on the way, so the third agent may make none.
      expect(await limited.say(first, through)).toContain(
        'The run was stopped: more than 2 tool calls in one turn, those of agents it asked included.',
      )
      expect(await limited.say(first, use('agent_send', { agent_id: 'third', message: 'use system_time {}' }))).toMatch(
        /\d{4}-\d\d-\d\d/,
      )
    } finally {
      await limited[Symbol.asyncDispose]()
    }
    expect(await test.say(asking, use('agent_send', { agent_id: asked, message: 'use system_time {}' }))).toMatch(
      /\d{4}-\d\d-\d\d/,
    )
  })
})
