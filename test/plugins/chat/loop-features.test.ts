import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import type { Json } from '../../support/json.ts'

let stage: ChatStage
let first: FakeProvider
let second: FakeProvider
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let serial = 0
/** Tools with labels and a slow gate, and an entry point through which a schedule would come. */
const EXTRA = pluginText('extra', {
  members: `requires: { chat: defineService()('chat') },`,
  setup: `
    const input = v.object({ n: v.optional(v.number()) })
    const tool = (name, more, run) =>
      ctx.tools.add(defineTool({ name, description: 'For a test', input, risk: 'read', ...more, run }))
    tool('fetch_page', { labels: ['ExternalNetwork'] }, async () => 'a page')
    tool('run_command', { refuses: ['ExternalNetwork'], risk: 'write' }, async () => 'ran')
    tool('huge', {}, async () => 'x'.repeat(40_000))
    tool('unchecked', {}, async () => 'went through')
    tool('gated', { risk: 'write' }, async () => 'went through')
    let open = Promise.withResolvers()
    ctx.hooks.on(gate('tools:call-starting'), async ({ tool, signal }) => {
      if (tool === 'unchecked') throw new Error('the checker broke')
      if (tool !== 'gated') return
      const aborted = new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      await Promise.race([open.promise, aborted])
    })
    const post = { method: 'POST', summary: 'A test', auth: 'public', effect: 'conversation', cost: 1 }
    ctx.routes.add(defineRoute({ ...post, path: '/test/open', returns: v.object({}),
      async handle() { open.resolve(); open = Promise.withResolvers(); return {} } }))
    ctx.routes.add(defineRoute({ ...post, path: '/test/enter', returns: v.any(),
      body: v.object({ agentId: v.string(), entryPoint: v.string(), text: v.string() }),
      async handle({ body }) { return { ...await (await ctx.services.chat.accept(body)).result() } } }))
    const order = []
    ctx.hooks.on(notify('chat:turn-ended'), () => void order.push('a listener'))
    ctx.routes.add(defineRoute({ ...post, path: '/test/order', returns: v.array(v.string()), body: v.object({ agentId: v.string() }),
      async handle({ body }) {
        order.splice(0)
        const turn = await ctx.services.chat.accept({ ...body, entryPoint: 'rest', text: 'go' })
        for await (const { type } of turn.events()) if (type === 'end') order.push('who asked')
        await new Promise((resolve) => setImmediate(resolve))
        return order
      } }))
    return {}`,
})
beforeAll(async () => {
  folder = await temporaryFolder()
  await writePlugin(`${folder.path}/extra`, EXTRA)
  second = await startFakeProvider()
  const fake = (first = await startFakeProvider())
  stage = await openChat({
    memory: true,
    fake,
    config: {
      providers: {
        openai: { base_url: fake.url, api_key: 'test-key' },
        groq: { base_url: second.url, api_key: 'other-key' },
      },
      plugins: {
        paths: [folder.path],
        approvals: { policy: 'never' },
        providers: { tries: 2, back_off_min_ms: 1, back_off_max_ms: 2, breaker_failures: 1000 },
        chat: { waiting_after_ms: 20 },
      },
    },
  })
  await stage.host.plugin('extra', 'loaded')
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await first[Symbol.asyncDispose]()
  await second[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const spawn = (more = '', tools: readonly string[] = ['*']) => stage.spawn(`feature-${serial++}`, tools, more)
const ask = (agent: string, message = 'go', more: object = {}) =>
  stage.host.json('POST', `/api/agents/${agent}/message`, { message, ...more })
const asked = (fake: FakeProvider = stage.fake) =>
  fake.requests.filter(({ path }) => path.endsWith('/chat/completions')).map(({ body }) => body as Record<string, Json>)

it('whoever asked has the answer before listeners are told that the turn has ended', async () => {
  const { body } = await stage.host.json('POST', '/test/order', { agentId: await spawn() })
  expect(body).toEqual(['who asked', 'a listener'])
})

describe('fallback models', () => {
  const fallback = '[[fallback_models]]\nprovider = "groq"\nmodel = "fake-2"\n'
  it('answer when the first model fails before its first word', async () => {
    const agent = await spawn(fallback)
    stage.fake.script({ status: 503 }, { status: 503 })
    second.script({ text: 'from the second' })
    expect((await ask(agent)).body).toMatchObject({ response: 'from the second', provider: 'groq', model: 'fake-2' })
  })
  it('answer when the key of the first is refused', async () => {
    const agent = await spawn(fallback)
    stage.fake.script({ status: 401 })
    second.script({ text: 'from the second' })
    expect((await ask(agent)).body.response).toBe('from the second')
  })
  it('do not answer after the first word: nothing is said twice', async () => {
    const agent = await spawn(fallback)
    const before = asked(second).length
    stage.fake.script({ text: ['Half'], fault: 'cut' })
    expect((await ask(agent)).status).toBe(503)
    expect(asked(second)).toHaveLength(before)
  })
  it('do not answer a request that is wrong by itself', async () => {
    const agent = await spawn(fallback)
    const before = asked(second).length
    stage.fake.script({ status: 400, body: '{"error":{"message":"no such field"}}' })
    expect((await ask(agent)).status).toBeGreaterThanOrEqual(400)
    expect(asked(second)).toHaveLength(before)
  })
  it('take over when the first provider is not configured at all', async () => {
    const agent = await spawn(`[model]\nprovider = "deepseek"\nmodel = "x"\n${fallback}`)
    second.script({ text: 'from the second' })
    expect((await ask(agent)).body.response).toBe('from the second')
  })
  it('that fail too leave an error, and the message in the session', async () => {
    const agent = await spawn(fallback)
    stage.fake.script({ status: 503 }, { status: 503 })
    second.script({ status: 503 }, { status: 503 })
    const { status, body } = await ask(agent)
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(/openai|groq/)])
    expect((await stage.session(agent)).messages).toHaveLength(1)
  })
})

describe('an answer in a form', () => {
  const schema = {
    type: 'object',
    properties: { n: { type: 'integer', minimum: 1 } },
    required: ['n'],
    additionalProperties: false,
  }
  const format = { type: 'json_schema', json_schema: { name: 'count', schema, strict: true } }
  it('is asked of the provider, checked, and handed out without a fence', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['```json\n', '{"n": 3}', '\n```'] })
    expect((await ask(agent, 'how many', { response_format: format })).body.response).toBe('{"n": 3}')
    expect(asked().at(-1)).toMatchObject({ response_format: format })
    expect(asked().at(-1)?.messages[0].content).toContain('"minimum":1')
  })
  it('that is wrong is asked for once more, with what is wrong', async () => {
    const agent = await spawn()
    stage.fake.script({ text: '{"n": 0}' }, { text: '{"n": 1}' })
    const { body } = await ask(agent, 'how many', { response_format: format })
    expect(body).toMatchObject({ response: '{"n": 1}', iterations: 2 })
    expect(asked().at(-1)?.messages.at(-1).content).toContain('n is below minimum 1')
    expect((await stage.session(agent)).messages.map(({ content }) => content)).toEqual(['how many', '{"n": 1}'])
  })
  it('that is wrong twice is an error that says what is wrong, and what was used is counted', async () => {
    const agent = await spawn()
    stage.fake.script({ text: 'three' }, { text: 'no' })
    const { status, body } = await ask(agent, 'how many', { response_format: { type: 'json_object' } })
    expect([status >= 500, body.error.message]).toEqual([true, expect.stringContaining('not JSON')])
    const { body: traced } = await stage.host.json('GET', `/api/agents/${agent}/traces`)
    expect(traced.traces.filter(({ kind }: { kind: string }) => kind !== 'tool')).toHaveLength(2)
  })
  it('is refused where the embedded model would have to give it, which can only write text', async () => {
    const agent = await spawn('[model]\nprovider = "builtin"\nmodel = "offline"\n')
    const { status, body } = await ask(agent, 'how many', { response_format: format })
    expect([status, body.error.code, body.error.message]).toEqual([
      400,
      'invalid_request',
      expect.stringContaining('response_format'),
    ])
    const spoken = await stage.host.json('POST', '/v1/chat/completions', {
      model: agent,
      messages: [{ role: 'user', content: 'go' }],
      response_format: format,
    })
    expect([spoken.status, spoken.body.error.type]).toEqual([400, 'invalid_request_error'])
  })
  it('comes from the manifest, and tools may be called before it', async () => {
    const agent = await spawn('response_format = "json"\n')
    stage.fake.script({ text: 'let me look', calls: [{ name: 'kv_list', args: {} }] }, { text: '{"empty": true}' })
    expect((await ask(agent)).body.response).toBe('{"empty": true}')
    expect(asked().at(-1)?.['response_format']).toEqual({ type: 'json_object' })
  })
  it('reaches a stream in one piece', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['{"n"', ': 0}'] }, { text: ['{"n"', ': 5}'] })
    const text = await (
      await stage.post(`/api/agents/${agent}/message/stream`, { message: 'go', response_format: format })
    ).text()
    expect(text).toContain('{\\"n\\": 5}')
    expect(text).not.toContain('\\"n\\": 0')
  })
  it('is spoken by /v1 as OpenAI does', async () => {
    const agent = await spawn()
    stage.fake.script({ text: '{"n": 7}' })
    const { status, body } = await stage.host.json('POST', '/v1/chat/completions', {
      model: agent,
      messages: [{ role: 'user', content: 'go' }],
      response_format: format,
    })
    expect([status, body.choices[0].message.content]).toEqual([200, '{"n": 7}'])
    expect(
      (
        await stage.host.json('POST', '/v1/chat/completions', {
          model: agent,
          messages: [{ role: 'user', content: 'go' }],
          response_format: { type: 'xml' },
        })
      ).status,
    ).toBe(400)
  })
})

describe('labels', () => {
  it('of a fetched page keep it from a command, and the model is told why', async () => {
    const agent = await spawn()
    stage.fake.script(
      { calls: [{ name: 'fetch_page', args: {} }] },
      { calls: [{ name: 'run_command', args: {} }] },
      { text: 'it was refused' },
    )
    await ask(agent)
    const { messages } = await stage.session(agent)
    const tools = messages.flatMap((message) => message.tools ?? [])
    expect(tools.map(({ name, is_error }) => [name, is_error])).toEqual([
      ['fetch_page', false],
      ['run_command', true],
    ])
    expect(tools[1]?.result).toContain('ExternalNetwork')
    expect(tools[1]?.result).toContain('fetch_page')
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=taint_violation')
    expect(JSON.stringify(body)).toContain('run_command refuses ExternalNetwork')
  })
  it('are let through when a person approves exactly this call, and that is written down', async () => {
    const agent = await spawn('[metadata]\napproval = "risky"\n')
    stage.fake.script(
      { calls: [{ name: 'fetch_page', args: {} }] },
      { calls: [{ name: 'run_command', args: {} }] },
      { text: 'it ran' },
    )
    const answer = ask(agent)
    const pending = async () =>
      (await stage.host.json('GET', '/api/approvals')).body.approvals.find(
        (each: { agent_id: string; status: string }) => each.agent_id === agent,
      )
    await expect
      .poll(pending)
      .toMatchObject({ description: expect.stringContaining('may come from the answer of fetch_page') })
    await stage.host.json('POST', `/api/approvals/${(await pending()).id}/approve`)
    expect((await answer).body.response).toBe('it ran')
    expect(
      (await stage.session(agent)).messages.flatMap(({ tools = [] }) => tools).map(({ result }) => result),
    ).toEqual(['a page', 'ran'])
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=capability_check')
    expect(JSON.stringify(body)).toContain('ExternalNetwork declassified for run_command')
  })
  it('last over turns and through a summary', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'fetch_page', args: {} }] }, { text: 'read it' })
    await ask(agent)
    for (let n = 0; n < 6; n++) {
      stage.fake.script({ text: `yes ${n}` })
      await ask(agent, `and ${n}`)
    }
    stage.fake.script({ text: 'They read a page.' })
    expect((await stage.host.json('POST', `/api/agents/${agent}/session/compact`)).body.status).toBe('compacted')
    stage.fake.script({ calls: [{ name: 'run_command', args: {} }] }, { text: 'refused' })
    await ask(agent, 'run it')
    expect((await stage.session(agent)).messages.at(-2)?.tools?.[0]?.is_error).toBe(true)
  })
  it('do not reach another session', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'fetch_page', args: {} }] }, { text: 'read it' })
    await ask(agent)
    await stage.host.json('POST', `/api/agents/${agent}/sessions`, {})
    stage.fake.script({ calls: [{ name: 'run_command', args: {} }] }, { text: 'ran' })
    await ask(agent, 'run it')
    expect((await stage.session(agent)).messages.at(-2)?.tools?.[0]).toMatchObject({ result: 'ran', is_error: false })
  })
})

describe('limits of an agent', () => {
  it('calls of tools in a minute', async () => {
    const agent = await spawn('[resources]\nmax_tool_calls_per_minute = 2\n')
    stage.fake.script({ calls: [1, 2, 3].map((n) => ({ name: 'kv_get', args: { key: `k${n}` } })) }, { text: 'done' })
    await ask(agent)
    const tools = (await stage.session(agent)).messages.flatMap((message) => message.tools ?? [])
    expect(tools.filter(({ result }) => result?.includes('tool calls in the last minute'))).toHaveLength(1)
  })
  it('a result takes at most its part of the window', async () => {
    const agent = await spawn('[model]\ncontext_window = 8000\nmax_tokens = 200\n', ['huge'])
    stage.fake.script({ calls: [{ name: 'huge', args: {} }] }, { text: 'done' })
    await ask(agent)
    const result = asked().at(-1)?.messages.at(-1).content as string
    expect(result.length).toBeLessThan(8000 * 0.3 * 6)
    expect(result).toContain('[cut')
    expect((await stage.session(agent)).messages[1]?.tools?.[0]?.result?.length).toBeGreaterThan(30_000)
  })
  it('a paused agent takes no message', async () => {
    const agent = await spawn()
    await stage.host.json('POST', '/api/agents/bulk/stop', { agent_ids: [agent] })
    const { status } = await ask(agent)
    expect([200, 409]).toContain(status)
  })
  it('quiet hours refuse what a clock starts, and nobody who speaks', async () => {
    const at = (minutes: number): string => {
      const date = new Date(Date.now() + minutes * 60_000)
      return `${String(date.getHours()).padStart(2, '0')}:${String(date.getMinutes()).padStart(2, '0')}`
    }
    const agent = await spawn(`[autonomous]\nquiet_hours = "${at(-60)}-${at(60)}"\n`)
    const enter = (name: string) => stage.post('/test/enter', { agentId: agent, entryPoint: name, text: 'tick' })
    const refused = await enter('schedule')
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)
    expect((await stage.session(agent)).messages).toEqual([])
    stage.fake.script({ text: 'I am here' })
    expect((await ask(agent, 'hello')).body.response).toBe('I am here')
    const awake = await spawn(`[autonomous]\nquiet_hours = "${at(60)}-${at(120)}"\n`)
    stage.fake.script({ text: 'tock' })
    expect(
      await (await stage.post('/test/enter', { agentId: awake, entryPoint: 'schedule', text: 'tick' })).json(),
    ).toMatchObject({ text: 'tock' })
  })
})

describe('a model that thinks', () => {
  it("is told to, or not to, in its vendor's words; the manifest says what holds otherwise", async () => {
    const manifest = '[model]\nmodel = "o3-fake"\n'
    const [agent, thinker] = [await spawn(manifest), await spawn(`${manifest}[thinking]\nbudget_tokens = 1000\n`)]
    for (const [id, more, effort] of [
      [agent, {}, undefined],
      [agent, { thinking: true }, 'high'],
      [agent, { thinking: false }, 'low'],
      [thinker, {}, 'high'],
    ] as const) {
      stage.fake.script({ text: 'hm' })
      await ask(id, 'think', more)
      expect(asked().at(-1)?.['reasoning_effort']).toBe(effort)
    }
  })
})

describe('further parameters of a manifest', () => {
  it('reach the provider as they are, and replace nothing', async () => {
    const agent = await spawn(
      [
        '[model]',
        'temperature = 0.25',
        'extra_params = { top_p = 0.5, temperature = 9, model = "another", stream = false }',
        '',
      ].join('\n'),
    )
    stage.fake.script({ text: 'ok' })
    expect((await ask(agent)).body.response).toBe('ok')
    expect(asked().at(-1)).toMatchObject({ top_p: 0.5, temperature: 0.25, model: 'fake-1', stream: true })
  })
})

describe('a turn that waits for its gate', () => {
  it('is a waiting one until it goes on', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'gated', args: {} }] }, { text: 'through' })
    const answer = ask(agent)
    const state = async () => (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body?.turns?.[0]?.state
    await expect.poll(state).toBe('waiting')
    await stage.post('/test/open')
    expect((await answer).body.response).toBe('through')
    expect(await state()).toBe('done')
  })
  it('is cancelled like any other, and the call is not made', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'gated', args: {} }] })
    const answer = ask(agent)
    await expect
      .poll(async () => (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body?.turns?.[0]?.state)
      .toBe('waiting')
    expect((await stage.host.json('POST', `/api/agents/${agent}/stop`)).body.message).toBe('Agent run cancelled')
    expect((await answer).body.stop).toBe('cancelled')
    expect(
      (await stage.session(agent)).messages
        .flatMap(({ tools = [] }) => tools)
        .every(({ result }) => result?.startsWith('not run')),
    ).toBe(true)
  })
})

describe('a check of a call that breaks', () => {
  it('refuses the call, and the log says why', async () => {
    const agent = await spawn('', ['unchecked'])
    stage.fake.script({ calls: [{ name: 'unchecked', args: {} }] }, ({ body }) => ({
      text: String(body.messages?.at(-1)?.content),
    }))
    expect((await ask(agent)).body.response).toBe('refused: the check of this call failed')
    expect(stage.host.log.join('\n')).toMatch(
      /a call of unchecked in turn \S+ was refused, because its check failed[^]*the checker broke/,
    )
  })
})

describe('traces', () => {
  it('tell each call of a model and of a tool, with its time and tokens, also when it failed', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'kv_get', args: { key: 'a' } }] }, { status: 503 }, { text: 'there is none' })
    await ask(agent)
    const { body } = await stage.host.json('GET', `/api/agents/${agent}/traces`)
    expect(body.traces.length).toBeGreaterThanOrEqual(3)
    expect(JSON.stringify(body)).toContain('kv_get')
    expect(JSON.stringify(body)).toContain('openai/fake-1')
  })
})
