import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { readRetryAfter } from 'svc/sdk'
import type { CompletionEvent } from 'svc/providers'
import { Decoder } from '../../../adapters/providers/openai-compatible/decode.ts'
import { openAiCompatible, VendorConfig } from '../../../adapters/providers/openai-compatible/driver.ts'
import { encode } from '../../../adapters/providers/openai-compatible/encode.ts'
import { vendors } from '../../../adapters/providers/openai-compatible/vendors.ts'
import { openCompatible } from '../../support/provider-stage.ts'
import { collect, request, textOf } from '../../contract/provider.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
/** Everything that comes of a stream that arrives in these pieces. */
function decode(...pieces: readonly (string | Uint8Array)[]): CompletionEvent[] {
  const decoder = new Decoder('test', request('hi'))
  return [
    ...pieces.flatMap((piece) => [...decoder.feed(typeof piece === 'string' ? bytes(piece) : piece)]),
    ...decoder.finish(),
  ]
}
const delta = (value: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: value, finish_reason: finish }] })}\n\n`
const said = (content: string): string => delta({ content })
const END = `${delta({}, 'stop')}data: [DONE]\n\n`
const calls = (events: readonly CompletionEvent[]) =>
  events.flatMap((event) => (event.type === 'call' ? [event.call] : []))
const call = (value: object): string => delta({ tool_calls: [value] })

describe('decoding', () => {
  it('joins the text that arrived together', () => {
    expect(decode(said('a') + said('b'), said('c') + END)).toMatchObject([
      { type: 'text', delta: 'ab' },
      { type: 'text', delta: 'c' },
      { type: 'end' },
    ])
  })
  const stream = `: comment\n\nevent: message\nid: 5\n${said('Grüße ')}\n${said('😀日本')}retry: 10\n\n: ping\n\n${END}`
  for (const [name, ending] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const) {
    it(`reads lines that end in ${name}, cut anywhere`, () => {
      const whole = bytes(stream.replaceAll('\n', ending))
      for (const size of [1, 2, 3, 5, 7, 64, whole.length]) {
        const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
          whole.subarray(index * size, (index + 1) * size),
        )
        expect(textOf(decode(...pieces)), `${size}`).toBe('Grüße 😀日本')
      }
    })
  }
  it('gives an event as soon as it is whole, also with CR alone', () => {
    const decoder = new Decoder('test', request('hi'))
    expect(decoder.feed(bytes(said('now').replaceAll('\n', '\r')))).toEqual([{ type: 'text', delta: 'now' }])
  })
  it('reads data over several lines, without a space, and a byte order mark', () => {
    expect(textOf(decode('\uFEFFdata:{"choices":[{"delta":\ndata: {"content":"x"}}]}\n\n', END))).toBe('x')
  })
  it('reads a last event without its empty line', () => {
    expect(textOf(decode(said('x'), END.trimEnd()))).toBe('x')
  })
  it('takes a reason to finish for an end where [DONE] is left out', () => {
    expect(decode(said('x') + delta({}, 'stop')).at(-1)).toMatchObject({ type: 'end', stop: 'done' })
  })
  it('ignores what comes after [DONE], other choices, empty choices and unknown reasons', () => {
    const other = `data: ${JSON.stringify({ choices: [{ index: 1, delta: { content: 'no' } }] })}\n\n`
    expect(
      decode(said('a'), other, 'data: {"choices":[]}\n\n', delta({}, 'eos'), 'data: [DONE]\n\n', said('late')),
    ).toMatchObject([{ delta: 'a' }, { type: 'end', stop: 'done' }])
  })
  it('joins calls by their number', () => {
    const events = decode(
      call({ index: 0, id: 'a', function: { name: 'add', arguments: '' } }),
      call({ index: 1, id: 'b', function: { name: 'time', arguments: '{}' } }),
      call({ index: 0, function: { arguments: '{"a"' } }),
      call({ index: 0, function: { arguments: ':1}' } }),
      END,
    )
    expect(calls(events)).toEqual([
      { id: 'a', name: 'add', args: { a: 1 } },
      { id: 'b', name: 'time', args: {} },
    ])
    expect(events.at(-1)).toMatchObject({ stop: 'calls' })
  })
  it('tells calls apart by id where numbers are missing or all 0', () => {
    for (const index of [undefined, 0]) {
      const events = decode(
        call({ index, id: 'a', function: { name: 'add', arguments: '{"a":1}' } }),
        call({ index, id: 'b', function: { name: 'add', arguments: '{"a":2}' } }),
        END,
      )
      expect(calls(events).map(({ id, args }) => [id, args])).toEqual([
        ['a', { a: 1 }],
        ['b', { a: 2 }],
      ])
    }
  })
  it('does not double a name that is repeated with every piece', () => {
    const piece = (text: string): string => call({ index: 0, id: 'a', function: { name: 'add', arguments: text } })
    expect(calls(decode(piece('{"a":'), piece('1}'), END))).toEqual([{ id: 'a', name: 'add', args: { a: 1 } }])
  })
  it('makes ids unique and fills in missing ones', () => {
    const events = decode(
      call({ index: 0, function: { name: 'a' } }),
      call({ index: 1, id: 'same', function: { name: 'b' } }),
      call({ index: 2, id: 'same', function: { name: 'c' } }),
      END,
    )
    expect(calls(events).map(({ id }) => id)).toEqual(['call_0', 'same', 'same_2'])
  })
  it('keeps arguments that are not JSON as text, takes objects and nothing at all', () => {
    expect(calls(decode(call({ index: 0, id: 'a', function: { name: 'x', arguments: '{"a":' } }), END))[0]?.args).toBe(
      '{"a":',
    )
    expect(
      calls(decode(call({ index: 0, id: 'a', function: { name: 'x', arguments: { a: 1 } } }), END))[0]?.args,
    ).toEqual({ a: 1 })
    expect(calls(decode(call({ index: 0, id: 'a', function: { name: 'x' } }), END))[0]?.args).toEqual({})
  })
  it('refuses more calls at once than anyone makes', () => {
    expect(() =>
      decode(...Array.from({ length: 300 }, (_, index) => call({ index, id: `${index}`, function: { name: 'x' } }))),
    ).toThrow('more than 256 tool calls')
  })
  it('skips two broken chunks and fails on the third', () => {
    expect(textOf(decode('data: {\n\n', said('a'), 'data: [1]\n\n', said('b'), END))).toBe('ab')
    expect(() => decode('data: {\n\n', 'data: x\n\n', said('a'), 'data: 5\n\n')).toThrow(
      expect.objectContaining({ reason: 'malformed' }),
    )
  })
  it('keeps an answer whose usage is malformed, and estimates what it used', () => {
    const last = { choices: [{ index: 0, delta: {}, finish_reason: 'length' }], usage: { prompt_tokens: '12' } }
    const events = decode(said('some words'), `data: ${JSON.stringify(last)}\n\n`)
    expect(textOf(events)).toBe('some words')
    expect(events.at(-1)).toMatchObject({ type: 'end', stop: 'length', usage: { estimated: true, output: 3 } })
  })
  it('fails on an error within the stream', () => {
    const error = (value: unknown) => () => decode(said('a'), `data: ${JSON.stringify({ error: value })}\n\n`)
    expect(error({ message: 'Overloaded', type: 'overloaded_error' })).toThrow(
      expect.objectContaining({ reason: 'overloaded', retry: 'later' }),
    )
    expect(error({ message: 'No credits', code: 402 })).toThrow(expect.objectContaining({ reason: 'rate_limit' }))
    expect(error('boom')).toThrow(
      expect.objectContaining({ reason: 'server_error', message: expect.stringContaining('boom') }),
    )
  })
  it('takes a refusal for text, and parts for their text', () => {
    expect(textOf(decode(delta({ refusal: 'I will not.' }), END))).toBe('I will not.')
    expect(
      textOf(
        decode(
          delta({ content: [{ type: 'text', text: 'a' }, { type: 'thinking' }, { type: 'text', text: 'b' }] }),
          END,
        ),
      ),
    ).toBe('ab')
  })
  it('reads cached tokens by both names and leaves out details that cannot be', () => {
    const usage = (value: object) => {
      const end = decode(
        said('a'),
        delta({}, 'stop'),
        `data: ${JSON.stringify({ choices: [], usage: value })}\n\n`,
        'data: [DONE]\n\n',
      ).at(-1)
      return end?.type === 'end' ? end.usage : undefined
    }
    expect(usage({ prompt_tokens: 10, completion_tokens: 2, prompt_cache_hit_tokens: 4 })).toEqual({
      input: 10,
      output: 2,
      cachedInput: 4,
    })
    expect(
      usage({
        prompt_tokens: 10,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 40 },
        completion_tokens_details: { reasoning_tokens: -1 },
      }),
    ).toEqual({ input: 10, output: 2 })
    expect(usage({ prompt_tokens: 10.5, completion_tokens: 2 })).toMatchObject({ estimated: true })
  })
})

describe('what is sent', () => {
  const body = (name: string, more = {}) =>
    JSON.parse(
      encode(
        { ...request('hi'), maxTokens: 100, temperature: 0.5, ...more },
        vendors.find((vendor) => vendor.name === name)!,
      ),
    )
  it('is a stream with usage', () => {
    expect(body('groq')).toMatchObject({
      model: 'fake-1',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 100,
      temperature: 0.5,
    })
  })
  it('keeps to what a vendor takes', () => {
    expect(body('mistral').stream_options).toBeUndefined()
    expect(body('openai')).toMatchObject({ max_completion_tokens: 100 })
    expect(body('openai').max_tokens).toBeUndefined()
    expect(body('openai', { model: 'gpt-5-mini' }).temperature).toBeUndefined()
    expect(body('openai', { model: 'gpt-4.1' }).temperature).toBe(0.5)
  })
  it('leaves out what is empty', () => {
    const sent = body('groq', { system: '', tools: [] })
    expect(sent.messages).toEqual([{ role: 'user', content: 'hi' }])
    expect('tools' in sent).toBe(false)
  })
  it('sends each list of tools as it is, and the same list again', () => {
    const tool = (name: string) => ({ name, description: 'Looks.', input: { type: 'object', properties: {} } })
    const names = (sent: { tools: { function: { name: string } }[] }) => sent.tools.map((each) => each.function.name)
    const one = [tool('one')]
    const two = [...one, tool('two')]
    expect([one, two, one].map((tools) => names(body('groq', { tools })))).toEqual([['one'], ['one', 'two'], ['one']])
    expect(names(body('mistral', { tools: two }))).toEqual(['one', 'two'])
  })
  it('writes images as data URLs', () => {
    expect(
      body('groq', {
        turns: [
          {
            role: 'user',
            parts: [
              { type: 'text', text: 'see' },
              { type: 'image', mime: 'image/png', base64: 'AAAA' },
            ],
          },
        ],
      }).messages[1].content,
    ).toEqual([
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ])
  })
})

describe('vendors', () => {
  it('are named once, with https unless they are local', () => {
    expect(new Set(vendors.map(({ name }) => name)).size).toBe(vendors.length)
    for (const { baseUrl, envVar } of vendors)
      if (baseUrl) expect(baseUrl.startsWith(envVar ? 'https://' : 'http://127.0.0.1:')).toBe(true)
  })
})

describe('the driver', () => {
  it('takes an answer that is no stream', async () => {
    const whole = JSON.stringify(
      {
        choices: [
          { index: 0, message: { role: 'assistant', content: 'whole', tool_calls: null }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 1 },
      },
      null,
      2,
    )
    const fetched = openAiCompatible(vendors[1]!).connect({
      name: 'groq',
      config: v.parse(VendorConfig, {}),
      baseUrl: 'http://x/v1/',
      apiKey: async () => undefined,
      fetch: async (url) => ({
        status: 200,
        ok: true,
        url: String(url),
        header: () => 'application/json',
        chunks: async function* () {
          yield bytes(whole)
        },
        text: async () => whole,
        json: async () => JSON.parse(whole),
        bytes: async () => bytes(whole),
        toResponse: () => new Response(whole),
      }),
    })
    expect(await collect(fetched, request('hi'))).toEqual([
      { type: 'text', delta: 'whole' },
      { type: 'end', stop: 'done', usage: { input: 3, output: 1 } },
    ])
  })
  it('uses one connection for many answers', async () => {
    await using stage = await openCompatible()
    for (let turn = 0; turn < 3; turn++) await collect(stage.client, stage.play({ kind: 'text', deltas: ['ok'] }))
    expect(stage.received?.()).toBe(3)
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  it.each([
    ['7', undefined, 7],
    ['0', undefined, 0],
    ['1.5', undefined, 1.5],
    ['Thu, 01 Jan 2026 00:00:30 GMT', undefined, 30],
    ['Thu, 01 Jan 2025 00:00:30 GMT', undefined, 0],
    ['soon', undefined, undefined],
    [undefined, '250', 0.25],
    [undefined, undefined, undefined],
    ['-5', undefined, undefined],
  ])('%s and %s ms are %s s', (header, ms, expected) => {
    expect(readRetryAfter(header, ms, now)).toBe(expected)
  })
})
