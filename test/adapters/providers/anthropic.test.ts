import Anthropic from '@anthropic-ai/sdk'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'svc/sdk'
import type { CompletionRequest, ProviderClient, Turn } from 'svc/providers'
import { generationOf, takesTemperature, thinkingOf } from '../../../adapters/providers/anthropic/claude.ts'
import { encode } from '../../../adapters/providers/anthropic/encode.ts'
import { anthropic } from '../../../adapters/providers/anthropic/index.ts'
import { isSupportedSchema } from '../../../adapters/providers/anthropic/schema.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { collect, request } from '../../contract/provider.ts'
import { event, startFakeAnthropic } from '../../support/fake-anthropic.ts'
import type { FakeAnthropic } from '../../support/fake-anthropic.ts'
import { outboundSettings } from '../../support/provider-stage.ts'

const NEWER = 'claude-haiku-5-5'
const OLDER = 'claude-sonnet-4-5-20250929'
const config = parse(anthropic.config, {})
const never = new AbortController().signal
let fake: FakeAnthropic
let outbound: ReturnType<typeof createOutbound>
let client: ProviderClient
const connect = (more: object = {}): ProviderClient =>
  anthropic.connect({
    name: 'anthropic',
    config: parse(anthropic.config, more),
    baseUrl: fake.origin,
    fetch: outbound.forOperator(),
    apiKey: async () => 'test-key',
  })

beforeEach(async () => {
  fake = await startFakeAnthropic()
  outbound = createOutbound({ settings: () => outboundSettings })
  client = connect()
})
afterEach(async () => {
  await outbound[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})
const ask = (more: Partial<CompletionRequest> = {}) => collect(client, { ...request('hello'), model: OLDER, ...more })
const sent = () => fake.asked.at(-1) ?? {}
const user = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })

describe('the fake speaks as Anthropic does', () => {
  const sdk = () => new Anthropic({ baseURL: fake.origin, apiKey: 'test-key', maxRetries: 0 })

  it("the vendor's own client puts its stream together", async () => {
    fake.script({
      thinking: ['let me ', 'see'],
      redacted: 'r',
      text: ['Grüße ', '😀'],
      calls: [{ name: 'add', args: { a: [1, 'ü'] } }, { name: 'time' }],
    })
    const message = await sdk()
      .messages.stream({
        model: NEWER,
        max_tokens: 4000,
        thinking: { type: 'adaptive' },
        messages: [{ role: 'user', content: 'go' }],
        tools: [
          { name: 'add', input_schema: { type: 'object' } },
          { name: 'time', input_schema: { type: 'object' } },
        ],
      })
      .finalMessage()
    expect(message.content.map(({ type }) => type)).toEqual([
      'redacted_thinking',
      'thinking',
      'text',
      'thinking',
      'tool_use',
      'tool_use',
    ])
    expect(message.content).toMatchObject([
      { data: 'redacted:r' },
      { thinking: 'let me see' },
      { text: 'Grüße 😀' },
      {},
      { name: 'add', input: { a: [1, 'ü'] } },
      { name: 'time', input: {} },
    ])
    expect(message.stop_reason).toBe('tool_use')
    // And what it put together may be sent back.
    fake.script({ text: ['done'] })
    const answered = await sdk().messages.create({
      model: NEWER,
      max_tokens: 4000,
      thinking: { type: 'adaptive' },
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: message.content },
        {
          role: 'user',
          content: message.content.flatMap((block) =>
            block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: '1' }] : [],
          ),
        },
      ],
    })
    expect(answered.content).toMatchObject([{ type: 'text', text: 'done' }])
  })

  it("the vendor's own client takes its errors and its list", async () => {
    fake.script({ status: 529 })
    const messages = [{ role: 'user' as const, content: 'go' }]
    await expect(sdk().messages.create({ model: NEWER, max_tokens: 10, messages })).rejects.toMatchObject({
      status: 529,
      error: { error: { type: 'overloaded_error' } },
    })
    await expect(sdk().messages.create({ model: 'claude-none', max_tokens: 10, messages })).rejects.toBeInstanceOf(
      Anthropic.NotFoundError,
    )
    await expect(
      new Anthropic({ baseURL: fake.origin, apiKey: 'wrong', maxRetries: 0 }).messages.create({
        model: NEWER,
        max_tokens: 10,
        messages,
      }),
    ).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
    fake.script({
      raw: [event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as { type: string })],
    })
    await expect(sdk().messages.stream({ model: NEWER, max_tokens: 10, messages }).finalMessage()).rejects.toThrow(
      /Overloaded/,
    )
    const ids: string[] = []
    for await (const model of sdk().models.list()) ids.push(model.id)
    expect(ids).toContain(OLDER)
  })

  for (const [why, body] of [
    ['no limit of the answer', { max_tokens: undefined }],
    [
      'roles that do not take turns',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'user', content: 'b' },
        ],
      },
    ],
    ['a result without a call', { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x' }] }] }],
    [
      'a call without a result',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'x', name: 'add', input: {} }] },
          { role: 'user', content: 'b' },
        ],
      },
    ],
    ['text that says nothing', { messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }] }] }],
    [
      'thinking it did not think',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'thinking', thinking: 'made up', signature: 'made up' }] },
          { role: 'user', content: 'b' },
        ],
      },
    ],
    ['a field it does not know', { frequency_penalty: 1 }],
    [
      'five marks',
      {
        messages: [
          {
            role: 'user',
            content: Array.from({ length: 5 }, () => ({
              type: 'text',
              text: 'a',
              cache_control: { type: 'ephemeral' },
            })),
          },
        ],
      },
    ],
    [
      'a budget for a model that wants none',
      { model: 'claude-opus-5-5', thinking: { type: 'enabled', budget_tokens: 1024 } },
    ],
    ['no thinking of a model that always thinks', { model: 'claude-opus-5-5', thinking: { type: 'disabled' } }],
    ['a temperature of a newer model', { model: 'claude-haiku-5-5', temperature: 0.5 }],
  ] as const) {
    it(`refuses ${why}`, async () => {
      const answer = await fetch(`${fake.origin}/v1/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': 'test-key', 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({ model: OLDER, max_tokens: 2000, messages: [{ role: 'user', content: 'go' }], ...body }),
      })
      expect(answer.status).toBe(400)
    })
  }
  it('refuses a request without its version', async () => {
    expect(
      (await fetch(`${fake.origin}/v1/messages`, { method: 'POST', headers: { 'x-api-key': 'test-key' }, body: '{}' }))
        .status,
    ).toBe(400)
  })
})

describe('models', () => {
  it('their generation is read from their ids, and a date is none', () => {
    const generations = {
      'claude-3-7-sonnet-latest': 3.7,
      'claude-3-5-haiku-20241022': 3.5,
      'claude-3-opus-20240229': 3,
      'claude-opus-4-20250514': 4,
      'claude-sonnet-4-5-20250929': 4.5,
      'claude-opus-4.6': 4.6,
      'claude-haiku-5-5': 5.5,
      'us.anthropic.claude-opus-4-7-v1:0': 4.7,
      'claude-mythos-preview': undefined,
      'kimi-k2': undefined,
    }
    for (const [model, generation] of Object.entries(generations))
      expect([model, generationOf(model)]).toEqual([model, generation])
  })
  it('each thinks, and is kept from it, in its own way', () => {
    expect(thinkingOf('claude-3-5-haiku-20241022')).toEqual({})
    expect(thinkingOf(OLDER)).toEqual({ on: 'budget' })
    expect(thinkingOf('claude-opus-4-8')).toEqual({ on: 'adaptive' })
    expect(thinkingOf('claude-opus-5')).toEqual({ on: 'adaptive', off: 'disabled' })
    expect(thinkingOf('claude-sonnet-5-5')).toEqual({ on: 'adaptive', off: 'between_tools' })
    for (const model of ['claude-opus-5-5', 'claude-fable-5', 'claude-mythos-preview'])
      expect(thinkingOf(model)).toEqual({ on: 'adaptive', off: 'low_effort' })
    expect(thinkingOf('MiniMax-M2')).toEqual({ on: 'budget' })
    expect(['claude-opus-4-6', 'claude-opus-4-7', 'claude-sonnet-5', 'kimi-k2'].map(takesTemperature)).toEqual([
      true,
      false,
      false,
      true,
    ])
  })
  it('every page of the list is read', async () => {
    expect(await client.models?.(never)).toHaveLength(5)
    expect((await client.probe(never)).model).toBe('claude-sonnet-5-5')
  })
})

describe('what is sent', () => {
  for (const model of [OLDER, 'claude-opus-4-6', 'claude-haiku-5-5', 'claude-sonnet-5-5', 'claude-opus-5-5']) {
    it(`${model} takes a request with and without thinking, a temperature and a limit`, async () => {
      for (const thinking of [true, false, undefined]) {
        await ask({ model, temperature: 2, ...(thinking !== undefined && { thinking }) })
        expect(sent()['max_tokens']).toBeGreaterThan(1000)
      }
      expect(fake.calls).toHaveLength(3)
      expect(fake.calls[0]?.headers['anthropic-version']).toBe(takesTemperature(model) ? '2023-06-01' : '2026-10-21')
    })
  }
  it("thinking has its budget within the answer's limit, and none where it does not fit", async () => {
    await ask({ thinking: true, maxTokens: 4000, temperature: 0.3 })
    expect(sent()).toMatchObject({ max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 3000 } })
    expect(sent()).not.toHaveProperty('temperature')
    await ask({ thinking: true, maxTokens: 1000, temperature: 0.3 })
    expect(sent()).toMatchObject({ max_tokens: 1000, temperature: 0.3 })
    expect(sent()).not.toHaveProperty('thinking')
    client = connect({ thinking_budget_tokens: 1024 })
    await ask({ thinking: true, maxTokens: 9000 })
    expect(sent()['thinking']).toEqual({ type: 'enabled', budget_tokens: 1024 })
  })
  it('a model that always thinks is held to little when it is to think less', async () => {
    await ask({ model: 'claude-opus-5-5', thinking: false, extra: { output_config: { effort: 'max' } } })
    expect(sent()).toMatchObject({ output_config: { effort: 'low' } })
    await ask({ model: 'claude-opus-5-5', thinking: true, extra: { output_config: { effort: 'max' } } })
    expect(sent()).toMatchObject({
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'max' },
    })
  })
  it('tools, system prompt and the last two messages are marked for the cache, unless it is off', async () => {
    const turns = [
      user('one'),
      { role: 'assistant', text: 'two', calls: [] },
      user('three'),
      { role: 'assistant', text: 'four', calls: [{ id: 'c1', name: 'add', args: {} }] },
      { role: 'tool', callId: 'c1', tool: 'add', text: '5', failed: false },
    ] satisfies Turn[]
    await ask({ turns })
    const mark = { cache_control: { type: 'ephemeral' } }
    expect(sent()['tools']).toMatchObject([{ name: 'add' }, { name: 'time', ...mark }])
    expect(sent()['system']).toEqual([{ type: 'text', text: 'You are a test.', ...mark }])
    expect(
      sent()['messages'].map(({ content }: { content: object[] }) => content.some((block) => 'cache_control' in block)),
    ).toEqual([false, false, true, false, true])
    // The same texts once more, where they are not the last ones: a mark does not stay.
    await ask({ turns: [...turns, { role: 'assistant', text: 'six', calls: [] }, user('seven')] })
    expect(
      sent()['messages'].map(({ content }: { content: object[] }) => content.some((block) => 'cache_control' in block)),
    ).toEqual([false, false, false, false, true, false, true])
    client = connect({ prompt_caching: false })
    await ask({ turns })
    expect(JSON.stringify(sent())).not.toContain('cache_control')
  })
  it('neighbours of one role become one message, results before what is said', async () => {
    await ask({
      turns: [
        user('a'),
        user('b'),
        {
          role: 'assistant',
          text: ' ',
          calls: [
            { id: 'functions.add:0', name: 'add', args: 'no json' },
            { id: 'c2', name: 'time', args: null },
          ],
        },
        { role: 'tool', callId: 'functions.add:0', tool: 'add', text: '', failed: true },
        { role: 'tool', callId: 'c2', tool: 'time', text: 'x', failed: false },
        user('and?'),
      ],
    })
    expect(sent()['messages']).toMatchObject([
      { role: 'user', content: [{ text: 'a' }, { text: 'b' }] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'functions_add_0', input: { input: 'no json' } },
          { type: 'tool_use', id: 'c2', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions_add_0', is_error: true },
          { tool_use_id: 'c2' },
          { type: 'text', text: 'and?' },
        ],
      },
    ])
  })
  it('half a character is replaced and a text that looks like one is left alone', () => {
    const body = encode({ ...request('a\ud800b \\ud800 \u{1f600}'), system: '\udc00', model: OLDER }, config)
    expect(body).toContain('a\ufffdb \\\\ud800 \u{1f600}')
    expect(JSON.parse(body)).toMatchObject({ system: [{ text: '\ufffd' }] })
  })
  it('an answer is held to a schema the vendor can hold it to, and to no other', async () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', format: 'date' } },
      required: ['a'],
      additionalProperties: false,
    }
    await ask({ responseFormat: { type: 'json_schema', name: 'x', schema } })
    expect(sent()['output_config']).toEqual({ format: { type: 'json_schema', schema } })
    await ask({
      responseFormat: {
        type: 'json_schema',
        name: 'x',
        schema: { ...schema, properties: { a: { type: 'string', pattern: 'x' } } },
      },
    })
    expect(sent()).not.toHaveProperty('output_config')
    await ask({ responseFormat: { type: 'json' } })
    expect(sent()).not.toHaveProperty('output_config')
    expect(isSupportedSchema({ type: 'array', items: { type: 'object', properties: {} } })).toBe(false)
    expect(isSupportedSchema({ anyOf: [schema, { type: 'null' }] })).toBe(true)
  })
  it('further fields pass and replace nothing, betas are a header, and /v1 may stand in the address', async () => {
    client = anthropic.connect({
      name: 'mine',
      config: parse(anthropic.config, { betas: ['a-1', 'b-2'] }),
      baseUrl: `${fake.origin}/v1/`,
      fetch: outbound.forOperator(),
      apiKey: async () => 'test-key',
    })
    await ask({ extra: { top_p: 0.5, model: 'other', stream: false, messages: [], max_tokens: 1 } })
    expect(sent()).toMatchObject({ model: OLDER, stream: true, top_p: 0.5, max_tokens: 32_000 })
    expect(sent()['messages']).toHaveLength(1)
    expect(fake.calls[0]?.headers['anthropic-beta']).toBe('a-1,b-2')
  })
})

describe('what comes back', () => {
  it('ends as the vendor says', async () => {
    for (const [stop, expected] of [
      ['end_turn', 'done'],
      ['stop_sequence', 'done'],
      ['max_tokens', 'length'],
      ['model_context_window_exceeded', 'length'],
      ['pause_turn', 'length'],
      ['refusal', 'refused'],
      ['something new', 'done'],
    ] as const) {
      fake.script({ text: ['x'], stop })
      expect((await ask()).at(-1)).toMatchObject({ type: 'end', stop: expected })
    }
  })
  it('what was thought is given out in its order, with calls of this answer only', async () => {
    fake.script({ thinking: ['hm'], text: ['I look.'], calls: [{ name: 'add' }] })
    const events = await ask({ thinking: true })
    const end = events.at(-1)
    if (end?.type !== 'end' || end.replay === undefined) throw new Error('no replay')
    expect(JSON.parse(end.replay)).toMatchObject([
      { type: 'thinking', thinking: 'hm' },
      { text: 7 },
      { type: 'thinking', thinking: 'and then' },
      { call: 0 },
    ])
    const calls = events.flatMap((one) => (one.type === 'call' ? [one.call] : []))
    const answered = (text: string): Turn[] => [
      user('hello'),
      { role: 'assistant', text, calls, replay: end.replay ?? '' },
      { role: 'tool', callId: calls[0]?.id ?? '', tool: 'add', text: '1', failed: false },
    ]
    await ask({ thinking: true, turns: answered('I look.') })
    expect(sent()['messages'][1].content.map(({ type }: { type: string }) => type)).toEqual([
      'thinking',
      'text',
      'thinking',
      'tool_use',
    ])
    await ask({ thinking: true, turns: answered('Changed.') })
    expect(sent()['messages'][1].content.map(({ type }: { type: string }) => type)).toEqual(['text', 'tool_use'])
    fake.script({ thinking: ['hm'], text: ['I know.'] })
    expect((await ask({ thinking: true })).at(-1)).not.toHaveProperty('replay')
  })
  it('an answer that comes whole is read as well', async () => {
    fake.script({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        type: 'message',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'text', text: 'hi' },
          { type: 'tool_use', id: 't', name: 'add', input: { a: 1 } },
        ],
        stop_reason: 'tool_use',
        usage: { input_tokens: 3, output_tokens: 4 },
      }),
      status: 200,
    })
    expect(await ask()).toMatchObject([
      { type: 'thinking', delta: 'hm' },
      { type: 'text', delta: 'hi' },
      { type: 'call', call: { id: 't', args: { a: 1 } } },
      { type: 'end', stop: 'calls', usage: { input: 3, output: 4 } },
    ])
  })
  it('a limit without a pause is waited for as long as its headers say', async () => {
    const reset = new Date(Date.now() + 20_000).toISOString()
    fake.script({
      status: 429,
      headers: {
        'anthropic-ratelimit-requests-remaining': '5',
        'anthropic-ratelimit-requests-reset': new Date(Date.now() + 90_000).toISOString(),
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': reset,
      },
    })
    await expect(ask()).rejects.toSatisfy(
      (error: { retryAfterSecs: number }) => error.retryAfterSecs > 15 && error.retryAfterSecs <= 20,
    )
  })
  for (const [message, status, type, reason, retry] of [
    [
      'Your credit balance is too low to access the Anthropic API.',
      400,
      'invalid_request_error',
      'rate_limit',
      'never',
    ],
    ['pay', 402, 'billing_error', 'rate_limit', 'never'],
    ['Request exceeds the maximum size', 413, 'request_too_large', 'context_length', 'never'],
    [
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
      400,
      'invalid_request_error',
      'context_length',
      'never',
    ],
    ['The request timed out', 504, 'timeout_error', 'timeout', 'later'],
    ['Your API key does not have permission to use the specified resource', 403, 'permission_error', 'auth', 'never'],
  ] as const) {
    it(`${type} with ${status} is ${reason}: ${message}`, async () => {
      fake.script({ status, body: JSON.stringify({ type: 'error', error: { type, message } }) })
      await expect(ask()).rejects.toMatchObject({ reason, retry })
    })
  }
})
