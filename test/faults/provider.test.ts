import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { Answer, FakeProvider } from '../support/fake-provider.ts'
import type { Json } from '../support/json.ts'

/**
 * What a provider can do wrong, and what must come of it: one row of the reliability table each. `npm run faults
 * provider` prints them.
 */
let stage: ChatStage
/** Waits for no answer for long. What is answered would race with that on a loaded machine, so only rows about it ask here. */
let impatient: ChatStage
let fake: FakeProvider
let spare: FakeProvider
let serial = 0
const limits = {
  tries: 3,
  back_off_min_ms: 1,
  back_off_max_ms: 5,
  retry_after_max_ms: 1000,
  breaker_failures: 1000,
}
const impatience = { idle_ms: 500, first_event_ms: 1500 }
const prices = { 'fake-1': { input: 1000, output: 1000 }, 'spare-1': { input: 1000, output: 1000 } }
beforeAll(async () => {
  ;[fake, spare] = await Promise.all([startFakeProvider(), startFakeProvider({ models: ['spare-1'] })])
  const gone = await startFakeProvider()
  // Nobody listens on this address of the loopback, so that no other test gets the port meanwhile.
  const closed = gone.url.replace('127.0.0.1', '127.31.0.9')
  await gone[Symbol.asyncDispose]()
  stage = await openChat({
    fake,
    config: {
      providers: {
        openai: { base_url: fake.url, api_key: 'test-key', prices },
        groq: { base_url: spare.url, api_key: 'spare-key', prices },
        refused: { base_url: closed, api_key: 'k' },
        nowhere: { base_url: 'http://no-such-host.invalid/v1', api_key: 'k' },
        plain: { base_url: fake.url.replace('http:', 'https:'), api_key: 'k' },
        pool: { base_url: fake.url, api_keys: ['first', 'second'] },
      },
      plugins: { providers: limits },
    },
  })
  impatient = await openChat({
    fake,
    config: { plugins: { providers: { ...limits, ...impatience } } },
  })
})
afterAll(async () => {
  await Promise.all([stage[Symbol.asyncDispose](), impatient[Symbol.asyncDispose]()])
  await Promise.all([fake[Symbol.asyncDispose](), spare[Symbol.asyncDispose]()])
})

/** What the next requests are answered with; what one row leaves over is not there for the next. */
function serve(answers: readonly Answer[], whom = fake): void {
  const left = [...answers]
  whom.always(() => left.shift() ?? { text: 'nothing more was expected' })
}
interface Asked {
  readonly agent: string
  readonly status: number
  readonly body: Json
  readonly headers: Headers
  readonly tries: number
  readonly last: { readonly role: string; readonly content: string; readonly mark?: string } | undefined
}
async function ask(answers: readonly Answer[], more = '', whom = stage, tools = ['*']): Promise<Asked> {
  const agent = await whom.spawn(`row-${serial++}`, tools, more)
  const before = fake.requests.length
  serve(answers)
  const answer = await whom.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
  return { agent, ...answer, tries: fake.requests.length - before, last: (await whom.session(agent)).messages.at(-1) }
}
const say = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
const stop = (reason: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })}\n\ndata: [DONE]\n\n`
const end = stop('stop')
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))
const spentBy = async (agent: string): Promise<number> =>
  (await stage.host.json('GET', `/api/budget/agents/${agent}`)).body.total_cost_usd

describe('429', () => {
  it('with seconds: waits that long, then succeeds', async () => {
    const from = performance.now()
    expect(await ask([{ status: 429, headers: { 'retry-after': '0.4' } }, { text: 'now' }])).toMatchObject({
      status: 200,
      tries: 2,
      body: { response: 'now' },
    })
    expect(performance.now() - from).toBeGreaterThan(380)
  })
  it('with a date: waits until then', async () => {
    const from = performance.now()
    // A date has whole seconds: the second after next is between one and two away, and cut to the second that is the
    // most here.
    expect(
      await ask([
        { status: 429, headers: { 'retry-after': new Date(Date.now() + 2000).toUTCString() } },
        { text: 'now' },
      ]),
    ).toMatchObject({ status: 200, tries: 2 })
    expect(performance.now() - from).toBeGreaterThan(900)
  })
  it('for ever: an error that names the provider, after three tries', async () => {
    const { status, body, tries } = await ask(times(3, () => ({ status: 429 })))
    expect([status, tries, body.error.code]).toEqual([503, 3, 'service_unavailable'])
    expect(body.error.message).toContain('openai')
  })
  it('because nothing is left of the quota: not asked again', async () => {
    expect(
      await ask([
        { status: 429, body: '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}' },
      ]),
    ).toMatchObject({ tries: 1 })
  })
})

describe('a failure by status', () => {
  it.each([500, 502, 503, 529])('%i: asked again', async (status) => {
    expect(await ask([{ status }, { text: 'well' }])).toMatchObject({
      status: 200,
      tries: 2,
      body: { response: 'well' },
    })
  })
  it.each([401, 403])('%i: not asked again; the key is named and not shown', async (status) => {
    const { status: answered, body, tries } = await ask([{ status }])
    expect([answered, tries]).toEqual([500, 1])
    expect(body.error.message).toMatch(/openai.*key/is)
    expect(JSON.stringify(body)).not.toContain('test-key')
  })
  it.each([401, 403, 429])('%i: another key of the provider answers', async (status) => {
    const { body, tries } = await ask(
      [{ status }, { text: 'second key' }],
      '[model]\nprovider = "pool"\nmodel = "fake-1"\n',
    )
    expect([body.response, tries]).toEqual(['second key', 2])
    const [one, two] = fake.requests.slice(-2).map(({ headers }) => headers['authorization'])
    expect(one).not.toBe(two)
    // Both are fresh again for the next row.
    await stage.host.app.host.reload('providers')
  })
  it.each([401, 403, 503])('%i: the fallback of the agent answers', async (status) => {
    serve([{ text: 'spare' }], spare)
    const { body } = await ask(
      times(status === 503 ? 3 : 1, () => ({ status })),
      '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n',
    )
    expect(body).toMatchObject({ response: 'spare', provider: 'groq', model: 'spare-1' })
  })
  it('a request that is too long: summarised once, asked once more', async () => {
    const full: Answer = {
      status: 400,
      body: '{"error":{"message":"maximum context length is 10 tokens","code":"context_length_exceeded"}}',
    }
    expect(await ask([full, { text: 'it fits' }])).toMatchObject({
      status: 200,
      tries: 2,
      body: { response: 'it fits' },
    })
    expect(await ask([full, full])).toMatchObject({ tries: 2 })
  })
})

describe('no connection', () => {
  it.each([
    ['refused', /refused the connection \(3 tries\)/],
    ['nowhere', /\(3 tries\)/],
    ['plain', /\(3 tries\)/],
  ])('%s: tried three times, then unavailable, and the message is kept', async (provider, text) => {
    const { status, body, last } = await ask([], `[model]\nprovider = "${provider}"\nmodel = "fake-1"\n`)
    expect([status, body.error.code]).toEqual([503, 'service_unavailable'])
    expect(body.error.message).toMatch(text)
    expect(body.error.message).toContain(provider)
    expect(last).toMatchObject({ role: 'User', content: 'go' })
  })
  it('one that is taken and never answered: a timeout', async () => {
    const mute = createServer(() => undefined)
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { status, body } = await ask(
      [],
      `[model]\nprovider = "openai"\nmodel = "fake-1"\nbase_url = "http://127.0.0.1:${(mute.address() as AddressInfo).port}/v1"\n`,
      impatient,
    )
    expect([status, body.error.message]).toEqual([503, expect.stringContaining('did not begin to answer')])
    mute.close()
  })
})

describe('an answer that stops', () => {
  it('no headers: a timeout, tried again, then unavailable', async () => {
    expect(
      await ask(
        times(3, () => ({ fault: 'silent' as const })),
        '',
        impatient,
      ),
    ).toMatchObject({ status: 503, tries: 3 })
  })
  it('headers and then silence: the same', async () => {
    expect(await ask([{ text: [], fault: 'stall' }, { text: 'second time' }], '', impatient)).toMatchObject({
      status: 200,
      tries: 2,
      body: { response: 'second time' },
    })
  })
  it('a byte now and then: the idle timeout counts whole pieces, and what was said is kept and marked', async () => {
    const raw = [say('Half '), ...[...say('never whole')].slice(0, 12)]
    const { status, tries, last } = await ask([{ raw, gapMs: 100 }], '', impatient)
    expect([status, tries]).toEqual([503, 1])
    expect(last).toMatchObject({ role: 'Assistant', content: 'Half ', mark: 'cut' })
  })
  it.each(['cut', 'reset', 'stall'] as const)(
    '%s in the middle: an error, what was said is kept and marked, no silent success, nothing twice',
    async (fault) => {
      const whom = fault === 'stall' ? impatient : stage
      const { status, tries, last } = await ask([{ text: ['Half of', ' it'], fault }], '', whom)
      expect([status, tries]).toEqual([503, 1])
      expect(last).toMatchObject({ role: 'Assistant', content: 'Half of it', mark: 'cut' })
    },
  )
  it('the session can go on afterwards', async () => {
    const { agent } = await ask([{ text: ['Half'], fault: 'cut' }, { text: 'and on' }])
    expect((await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'again' })).body).toMatchObject({
      response: 'and on',
      stop: 'done',
    })
  })
  it('in the middle of a stream: an error event, and the stream is closed', async () => {
    const agent = await stage.spawn(`row-${serial++}`)
    serve([{ text: ['Half'], fault: 'reset' }])
    const events = parseEvents(
      await (await stage.post(`/api/agents/${agent}/message/stream`, { message: 'go' })).text(),
    )
    expect(events.map(({ event }) => event)).toEqual(['chunk', 'error'])
    expect(events[1]?.data.error.message).toContain('openai')
  })
})

describe('an answer that is malformed', () => {
  it('one bad piece: only that is lost', async () => {
    expect((await ask([{ raw: [say('a'), 'data: {"choices": [\n\n', say('b'), end] }])).body.response).toBe('ab')
  })
  it('three bad pieces: a failure', async () => {
    const broken: Answer = { raw: ['data: {"a\n\n', 'data: nonsense\n\n', 'data: [\n\n', end] }
    expect(await ask([broken, broken, broken])).toMatchObject({ status: 503, tries: 3 })
  })
  it('split inside characters, a byte at a time', async () => {
    expect((await ask([{ text: ['Grüße, ', '世界 ', '👩‍👩‍👧'], fault: 'slow-bytes' }])).body.response).toBe(
      'Grüße, 世界 👩‍👩‍👧',
    )
  })
  it.each([
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('line ends %s, comments, and data over several lines', async (_, ending) => {
    const lines =
      `: hello\n\n${say('one ')}data: {"choices":\ndata: [{"index":0,"delta":{"content":"two"}}]}\n\n: bye\n\n${end}`.replaceAll(
        '\n',
        ending,
      )
    expect((await ask([{ raw: [lines] }])).body.response).toBe('one two')
  })
  it('a line of 8 MB: taken or refused, and the daemon lives', async () => {
    const { status } = await ask(times(3, () => ({ raw: [say('x'.repeat(8_000_000)), end] })))
    expect([200, 503]).toContain(status)
    expect((await ask([{ text: 'alive' }])).body.response).toBe('alive')
  })
  it.each<[string, Answer]>([
    ['HTML with 200', { body: '<html><body>Sign in</body></html>', headers: { 'content-type': 'text/html' } }],
    ['an empty body', { body: '', headers: { 'content-type': 'text/event-stream' } }],
    ['empty choices', { raw: ['data: {"choices":[]}\n\n', 'data: [DONE]\n\n'] }],
  ])('%s: a failure, not an empty success', async (_, answer) => {
    const { status, body } = await ask([answer, answer, answer])
    expect(status).toBeGreaterThanOrEqual(500)
    expect(body.error.message).toContain('openai')
  })
  it('an unknown reason to finish: the answer counts', async () => {
    expect((await ask([{ raw: [say('fine'), stop('gone_fishing')] }])).body.response).toBe('fine')
  })
})

describe('calls of tools that are wrong', () => {
  const toolResults = async (agent: string) => (await stage.session(agent)).messages.flatMap(({ tools }) => tools ?? [])
  it('broken JSON as arguments: the model is told', async () => {
    const { agent, body } = await ask([{ calls: [{ name: 'kv_set', args: '{"key": ' }] }, { text: 'sorry' }])
    expect(body.response).toBe('sorry')
    expect((await toolResults(agent))[0]).toMatchObject({
      is_error: true,
      result: expect.stringContaining('not valid JSON'),
    })
  })
  it('an unknown tool: the model is told', async () => {
    const { agent, body } = await ask([{ calls: [{ name: 'launch_rocket', args: {} }] }, { text: 'sorry' }])
    expect(body.response).toBe('sorry')
    expect((await toolResults(agent))[0]).toMatchObject({
      is_error: true,
      result: expect.stringContaining('There is no tool "launch_rocket"'),
    })
  })
  it('the same id for two calls: both have their result', async () => {
    const { agent } = await ask([
      {
        calls: [
          { id: 'x', name: 'kv_set', args: { key: 'a', value: 1 } },
          { id: 'x', name: 'kv_get', args: { key: 'b' } },
        ],
      },
      { text: 'two' },
    ])
    expect((await toolResults(agent)).map(({ result }) => result !== null)).toEqual([true, true])
  })
  it('two hundred calls in one answer: the limit holds', async () => {
    const { agent, status, body } = await ask([
      { calls: times(200, (n) => ({ name: 'kv_get', args: { key: `k${n}` } })) },
      { text: 'done' },
    ])
    expect([status, body.stop]).toEqual([200, 'iterations'])
    expect((await toolResults(agent)).filter(({ is_error }) => !is_error).length).toBeLessThanOrEqual(30)
  })
})

describe('figures that cannot be', () => {
  it.each<[string, Exclude<Answer['usage'], undefined>]>([
    ['none', null],
    ['negative ones', { prompt_tokens: -5, completion_tokens: -1 }],
    ['absurd ones', { prompt_tokens: 1e30, completion_tokens: 1e30 }],
    ['text', { prompt_tokens: 'many', completion_tokens: {} }],
  ])('%s: counted here, and the budget stays whole', async (_, usage) => {
    const { agent, body } = await ask([{ text: 'some words', usage }], '[resources]\nmax_cost_per_day_usd = 100\n')
    expect(body.input_tokens).toBeGreaterThan(0)
    expect(body.output_tokens).toBeGreaterThan(0)
    const spent = await spentBy(agent)
    expect(spent).toBe(body.cost_usd)
    expect(spent).toBeGreaterThan(0)
    expect(spent).toBeLessThan(100)
  })
})

describe('what is never done twice', () => {
  it('a tool that ran does not run again when the next call fails and is tried again', async () => {
    const { agent, body } = await ask([
      { calls: [{ name: 'kv_set', args: { key: 'n', value: 1 } }] },
      { status: 500 },
      { status: 503 },
      { text: 'stored' },
    ])
    expect(body).toMatchObject({ response: 'stored', iterations: 2 })
    expect((await stage.session(agent)).messages.flatMap(({ tools }) => tools ?? [])).toHaveLength(1)
  })
  it('nor when a fallback goes on in the middle of a turn', async () => {
    serve([{ text: 'stored by the other' }], spare)
    const { agent, body } = await ask(
      [{ calls: [{ name: 'kv_set', args: { key: 'n', value: 1 } }] }, { status: 401 }],
      '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n',
    )
    expect(body).toMatchObject({ response: 'stored by the other', provider: 'groq' })
    expect((await stage.session(agent)).messages.flatMap(({ tools }) => tools ?? [])).toHaveLength(1)
    expect(spare.requests.at(-1)?.body.messages?.at(-1)).toMatchObject({ role: 'tool' })
    expect(await spentBy(agent)).toBe(body.cost_usd)
  })
  it('an answer that only thought before it broke off is paid for, and the fallback has the room that was set aside for it', async () => {
    serve([{ text: 'spare', usage: { prompt_tokens: 10, completion_tokens: 5 } }], spare)
    const { agent, body } = await ask(
      [{ reasoning: ['a long thought '.repeat(20)], text: [], fault: 'reset' }],
      // Room for one call at a time. Without tools, whose descriptions would be most of what it costs.
      '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n[resources]\nmax_cost_per_day_usd = 6\n',
      stage,
      [],
    )
    expect(body).toMatchObject({ response: 'spare', provider: 'groq' })
    // Three hundred characters of thought are about 75 tokens, at a thousandth of a dollar each.
    expect(body.cost_usd).toBeGreaterThan(0.015 + 0.07)
    expect((await stage.host.json('GET', `/api/budget/agents/${agent}`)).body).toMatchObject({
      total_cost_usd: body.cost_usd,
      reserved_usd: 0,
    })
  })
  it('nothing that was said is said again by a fallback', async () => {
    const before = spare.requests.length
    const { status } = await ask(
      [{ text: ['Half'], fault: 'cut' }],
      '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n',
    )
    expect([status, spare.requests.length]).toEqual([503, before])
  })
})

describe('a client that leaves', () => {
  it('the provider is left when the turn is stopped, and what was said is paid for', async () => {
    const agent = await stage.spawn(`row-${serial++}`)
    const index = fake.requests.length
    serve([
      {
        text: (async function* () {
          yield 'a few words before '
          await new Promise(() => {})
        })(),
      },
    ])
    const response = await stage.post(`/api/agents/${agent}/message/stream`, { message: 'go' })
    const reader = response.body?.getReader()
    await reader?.read()
    const request = await fake.request(index)
    const from = performance.now()
    await stage.host.json('POST', `/api/agents/${agent}/stop`)
    expect(await request.closed).toBe(false)
    expect(performance.now() - from).toBeLessThan(5000)
    await reader?.cancel()
    await expect.poll(() => spentBy(agent)).toBeGreaterThan(0)
    expect((await stage.session(agent)).messages.at(-1)).toMatchObject({ role: 'Assistant', mark: 'cancelled' })
  })
})

describe('a provider that keeps failing', () => {
  it('is left alone after five failures in half a minute, and one trial is let through after the pause', async () => {
    await using other = await openChat({
      fake,
      config: { plugins: { providers: { ...limits, tries: 1, breaker_failures: 5, breaker_pause_ms: 300 } } },
    })
    const agent = await other.spawn('patient')
    const send = () => other.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
    const before = fake.requests.length
    serve(times(5, () => ({ status: 500 })))
    for (let n = 0; n < 5; n++) expect((await send()).status).toBe(503)
    const { status, body, headers } = await send()
    expect([status, fake.requests.length - before]).toEqual([503, 5])
    expect(body.error.message).toMatch(/openai failed 5 times in a row and is not called for another 1 s/)
    expect(headers.get('retry-after')).toBe('1')
    serve([{ text: 'back' }])
    await expect.poll(async () => (await send()).status, { interval: 100 }).toBe(200)
    expect(fake.requests.length - before).toBe(6)
  })
})

describe('a turn that takes too long', () => {
  it('ends at its deadline, whatever is still said, and no fallback begins after it', async () => {
    await using other = await openChat({
      fake,
      config: {
        providers: { openai: { base_url: fake.url, api_key: 'k' }, groq: { base_url: spare.url, api_key: 'k' } },
        plugins: { providers: limits, chat: { turn_ms: 400 } },
      },
    })
    const agent = await other.spawn('slow', ['*'], '[[fallback_models]]\nprovider = "groq"\nmodel = "spare-1"\n')
    const send = () => other.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
    const before = spare.requests.length
    // Each piece comes in time, the whole does not.
    serve([{ text: times(100, (n) => `${n} `), gapMs: 30 }])
    const spoken = await send()
    expect([spoken.status, spoken.body.error.message]).toEqual([503, expect.stringContaining('openai did not finish')])
    expect((await other.session(agent)).messages.at(-1)).toMatchObject({ role: 'Assistant', mark: 'cut' })
    serve([{ fault: 'silent' }])
    const silent = await send()
    expect([silent.status, silent.body.error.message]).toEqual([
      503,
      expect.stringContaining('its models may take 0.4 s together'),
    ])
    expect(spare.requests.length).toBe(before)
    serve(times(10, (n) => ({ calls: [{ name: 'kv_set', args: { key: `k${n}`, value: n } }], delayMs: 150 })))
    const looping = await send()
    expect([looping.status, looping.body.error.message]).toEqual([503, expect.stringMatching(/did not (finish|begin)/)])
  })
})

describe('a model that cannot be had any more', () => {
  const config = { providers: { openai: { base_url: 'https://api.openai.com/v1' } } }
  it('the fallback of the daemon answers any agent, and one whose key goes away uses its own', async () => {
    await using other = await openChat({
      fake,
      config: {
        default_provider: 'groq',
        default_model: 'fake-1',
        fallback_models: [{ provider: 'general', model: 'spare-1' }],
        providers: {
          groq: { base_url: fake.url },
          general: { base_url: spare.url, api_key: 'k' },
          own: { base_url: spare.url, api_key: 'k' },
        },
        plugins: { providers: limits },
      },
    })
    await other.host.json('POST', '/api/providers/groq/key', { api_key: 'stored' })
    const plain = await other.spawn('plain')
    const fond = await other.spawn('fond', [], '[[fallback_models]]\nprovider = "own"\nmodel = "spare-1"\n')
    const send = async (agent: string) =>
      (await other.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })).body
    serve([{ text: 'first' }])
    expect(await send(plain)).toMatchObject({ response: 'first', provider: 'groq' })
    serve([{ status: 401 }, { status: 401 }])
    spare.always({ text: 'spare' })
    expect(await send(plain)).toMatchObject({ response: 'spare', provider: 'general' })
    expect(await send(fond)).toMatchObject({ response: 'spare', provider: 'own' })
    await other.host.json('PUT', '/api/providers/groq/url', { url: 'https://api.groq.com/openai/v1' })
    await other.host.json('DELETE', '/api/providers/groq/key')
    expect(await send(plain)).toMatchObject({ response: 'spare', provider: 'general' })
  })
  it('without a fallback the error says what to do', async () => {
    await using other = await openChat({ fake, config })
    const agent = await other.spawn('lost')
    const { status, body } = await other.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
    expect([status, body.error.code]).toEqual([503, 'service_unavailable'])
    expect(body.error.message).toMatch(
      /Provider openai has no key: set OPENAI_API_KEY, or \[providers\.openai\] api_key, or store one with `svc providers set-key openai/,
    )
  })
  it('a driver that is taken away while it answers: the fallback goes on with the turn', async () => {
    await using other = await openChat({
      fake,
      config: {
        plugins: { providers: { ...limits, ...impatience } },
        providers: { groq: { base_url: fake.url, api_key: 'k' } },
        default_provider: 'groq',
      },
    })
    const agent = await other.spawn(
      'surprised',
      ['*'],
      '[[fallback_models]]\nprovider = "builtin"\nmodel = "offline"\n',
    )
    let unloading: Promise<void> | undefined
    fake.always(() => {
      unloading ??= other.host.app.host.unload('openai-compatible')
      return {
        text: (async function* () {
          await new Promise(() => {})
        })(),
      }
    })
    const { status, body } = await other.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
    expect([status, body.provider]).toEqual([200, 'builtin'])
    await unloading
    expect((await other.host.json('GET', '/api/providers/groq')).status).toBe(404)
  })
})
