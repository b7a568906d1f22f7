import { deepStrictEqual, match, notStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict'
import { describe, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest, MediaKind, ProviderClient, ToolCall, Usage } from 'svc/providers'
import { mediaChecks } from './provider-media.ts'
import type { MediaScenario } from './provider-media.ts'
import type { HeardMedia } from '../support/fake-media.ts'

/** What the provider behind the driver is made to do. */
export type Scenario =
  | {
      readonly kind: 'text'
      readonly deltas: readonly string[]
      readonly thinking?: readonly string[]
      readonly stop?: 'length' | 'refused'
      readonly usage?: 'missing' | 'negative' | 'absurd' | 'detailed'
    }
  | {
      readonly kind: 'calls'
      readonly calls: readonly { readonly name: string; readonly args: unknown }[]
      readonly thinking?: readonly string[]
    }
  | { readonly kind: 'embed'; readonly vectors: readonly (readonly number[])[] }
  | { readonly kind: 'held'; readonly deltas: readonly string[] }
  | {
      readonly kind: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly about?: 'context_length' | 'content_filter'
    }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly deltas: readonly string[] }
/** `overloaded`: an error that is told within the stream, after the deltas. */
export type Fault =
  | 'overloaded'
  | 'cut'
  | 'reset'
  | 'html'
  | 'empty'
  | 'malformed-one'
  | 'malformed-all'
  | 'split'
  | 'slow-bytes'
  | 'endless-line'

/**
 * What a driver can do beyond completing: `replay` when it gives out state that it wants back with the results of its
 * calls.
 */
export type Offer = 'models' | 'embed' | 'replay' | MediaKind
/** What reached the provider, in nobody's wire format. */
export interface Heard {
  readonly system: string
  readonly texts: readonly string[]
  readonly images: readonly { readonly mime: string; readonly base64: string }[]
  readonly tools: readonly string[]
  readonly calls: readonly { readonly name: string; readonly args: unknown }[]
  readonly results: readonly string[]
}

/** A driver with the provider it talks to. */
export interface ProviderStage extends AsyncDisposable {
  readonly client: ProviderClient
  /** Makes the provider ready and returns the request that brings it about. For `embed` only its model counts. */
  play(scenario: Scenario): CompletionRequest
  /** Requests that reached the provider; `undefined` when there is nothing behind the driver. */
  readonly received?: () => number
  /** The last request for an answer. */
  readonly heard?: () => Heard
  /** The same for pictures and sound. */
  playMedia?(scenario: MediaScenario): CompletionRequest
  readonly pictureModel?: string
  /** Pictures that one request brings (default 2). */
  readonly picturesAtOnce?: number
  /** The last request for media. */
  readonly heardMedia?: () => Omit<HeardMedia, 'path'> | undefined
  /** What `usage: 'detailed'` comes to, for a vendor that tells other details than these four figures. */
  readonly detailed?: Usage
  /** Settles when the last exchange is over, with whether the whole answer went out. */
  readonly lastClosed?: () => Promise<boolean>
}
export interface Check {
  readonly id: string
  readonly title: string
  /** Only drivers with a network behind them can be brought into this. */
  readonly network?: true
  readonly needs?: Offer
  run(stage: ProviderStage): Promise<void>
}

export const request = (text: string, more: Partial<CompletionRequest> = {}): CompletionRequest => ({
  model: 'fake-1',
  system: 'You are a test.',
  tools: TOOLS,
  turns: [{ role: 'user', parts: [{ type: 'text', text }] }],
  ...more,
})
const TOOLS = [
  {
    name: 'add',
    description: 'Adds two numbers.',
    input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  },
  { name: 'time', description: 'Tells the time.', input: { type: 'object' } },
]
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const never = (): AbortSignal => new AbortController().signal

export async function collect(
  client: ProviderClient,
  asked: CompletionRequest,
  signal = never(),
): Promise<CompletionEvent[]> {
  const events: CompletionEvent[] = []
  for await (const event of client.complete(asked, signal)) events.push(event)
  return events
}
export const textOf = (events: readonly CompletionEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.delta : '')).join('')
const callsOf = (events: readonly CompletionEvent[]): ToolCall[] =>
  events.flatMap((event) => (event.type === 'call' ? [event.call] : []))
function endOf(events: readonly CompletionEvent[]) {
  const end = events.at(-1)
  ok(end?.type === 'end', 'the last event is no end')
  return end
}

async function fails(
  stage: ProviderStage,
  scenario: Scenario,
  expected: { reason: string; retry?: 'never' | 'later'; retryAfterSecs?: number },
): Promise<void> {
  await rejects(collect(stage.client, stage.play(scenario)), (error) => {
    ok(error instanceof UpstreamFailure, `not an UpstreamFailure: ${String(error)}`)
    strictEqual(error.reason, expected.reason)
    if (expected.retry) strictEqual(error.retry, expected.retry)
    if (expected.retryAfterSecs !== undefined)
      ok(Math.abs((error.retryAfterSecs ?? NaN) - expected.retryAfterSecs) <= 2, `retry after ${error.retryAfterSecs}`)
    ok(error.system.length > 0 && error.message.includes(error.system), 'the message does not name the provider')
    return true
  })
  strictEqual(stage.received?.(), 1, 'the driver tried again by itself')
}
const status = (
  id: string,
  code: number,
  reason: string,
  retry: 'never' | 'later',
  headers?: Record<string, string>,
  retryAfterSecs?: number,
): Check => ({
  id: `status-${id}`,
  network: true,
  title: `${id} is ${reason}${retryAfterSecs === undefined ? '' : ' with the pause that was asked for'}`,
  run: (stage) =>
    fails(
      stage,
      { kind: 'status', status: code, ...(headers && { headers }) },
      { reason, retry, ...(retryAfterSecs !== undefined && { retryAfterSecs }) },
    ),
})
const DELTAS = ['Grüße, ', '日本語 ', '😀 ', 'done.']

/** What every driver does, whoever it talks to. The ids never change, so that runs can be compared. */
export const checks: readonly Check[] = [
  {
    id: 'one-end',
    title: 'text arrives in order and exactly one end comes last',
    async run(stage) {
      const events = await collect(stage.client, stage.play({ kind: 'text', deltas: DELTAS }))
      strictEqual(textOf(events), DELTAS.join(''))
      strictEqual(events.filter(({ type }) => type === 'end').length, 1)
      strictEqual(endOf(events).stop, 'done')
    },
  },
  {
    id: 'no-empty',
    title: 'no delta is empty and no event is used twice',
    async run(stage) {
      const events = await collect(stage.client, stage.play({ kind: 'text', deltas: ['a', '', 'b', 'c '.repeat(50)] }))
      for (const event of events) if (event.type === 'text') notStrictEqual(event.delta, '')
      strictEqual(new Set(events).size, events.length)
    },
  },
  {
    id: 'usage',
    title: 'usage is whole and not negative',
    async run(stage) {
      const { usage } = endOf(await collect(stage.client, stage.play({ kind: 'text', deltas: DELTAS })))
      for (const count of [usage.input, usage.output, usage.cachedInput ?? 0, usage.thinking ?? 0])
        ok(Number.isInteger(count) && count >= 0, `${count}`)
      ok(usage.input > 0 && usage.output > 0)
    },
  },
  {
    id: 'call',
    title: 'a tool call arrives whole with parsed arguments',
    async run(stage) {
      const events = await collect(
        stage.client,
        stage.play({ kind: 'calls', calls: [{ name: 'add', args: { a: 1, b: [2, { c: 'ü😀"\n' }] } }] }),
      )
      deepStrictEqual(
        callsOf(events).map(({ name, args }) => ({ name, args })),
        [{ name: 'add', args: { a: 1, b: [2, { c: 'ü😀"\n' }] } }],
      )
      strictEqual(endOf(events).stop, 'calls')
    },
  },
  {
    id: 'parallel-calls',
    title: 'parallel calls keep their order and have different ids',
    async run(stage) {
      const wanted = Array.from({ length: 5 }, (_, a) => ({ name: a % 2 === 0 ? 'add' : 'time', args: { a } }))
      const calls = callsOf(await collect(stage.client, stage.play({ kind: 'calls', calls: wanted })))
      deepStrictEqual(
        calls.map(({ name, args }) => ({ name, args })),
        wanted,
      )
      strictEqual(new Set(calls.map(({ id }) => id)).size, wanted.length)
      for (const { id } of calls) notStrictEqual(id, '')
    },
  },
  {
    id: 'length',
    title: 'an answer that reached its limit says so',
    async run(stage) {
      const asked = stage.play({
        kind: 'text',
        deltas: ['one two three four ', 'five six seven eight ', 'nine ten'],
        stop: 'length',
      })
      strictEqual(endOf(await collect(stage.client, { ...asked, maxTokens: 4 })).stop, 'length')
    },
  },
  {
    id: 'conversation',
    title: 'a whole conversation with calls, results, images and odd text is accepted',
    async run(stage) {
      const asked = stage.play({ kind: 'text', deltas: ['fine'] })
      const odd = 'a\u0000b \ud83d\ude00 \u202e \ud800 \r\n\u2028 "\\'
      const turns: CompletionRequest['turns'] = [
        {
          role: 'user',
          parts: [
            { type: 'text', text: odd },
            { type: 'image', mime: 'image/png', base64: PNG },
          ],
        },
        {
          role: 'assistant',
          text: '',
          calls: [
            { id: 'c1', name: 'add', args: { a: 1 } },
            { id: 'c2', name: 'time', args: 'not json' },
          ],
        },
        { role: 'tool', callId: 'c1', tool: 'add', text: odd, failed: false },
        { role: 'tool', callId: 'c2', tool: 'time', text: 'no such clock', failed: true },
        { role: 'assistant', text: odd, calls: [] },
        ...asked.turns,
      ]
      strictEqual(textOf(await collect(stage.client, { ...asked, turns, system: '', temperature: 0.5 })), 'fine')
      const heard = stage.heard?.()
      if (!heard) return
      deepStrictEqual(heard.images, [{ mime: 'image/png', base64: PNG }])
      deepStrictEqual(
        heard.tools,
        TOOLS.map(({ name }) => name),
      )
      deepStrictEqual(
        heard.calls.map(({ name }) => name),
        ['add', 'time'],
      )
      deepStrictEqual(heard.calls[0]?.args, { a: 1 })
      // Half of a character outside the basic plane is no text; JSON may carry it or what stands for it.
      const whole = (text: string) => text.toWellFormed()
      deepStrictEqual(heard.results.map(whole), [odd, 'no such clock'].map(whole))
      ok(heard.texts.map(whole).includes(whole(odd)))
    },
  },
  {
    id: 'no-tools',
    title: 'a request without tools is accepted',
    async run(stage) {
      strictEqual(
        textOf(await collect(stage.client, { ...stage.play({ kind: 'text', deltas: ['fine'] }), tools: [] })),
        'fine',
      )
    },
  },
  {
    id: 'abort-before',
    title: 'a signal that is aborted already rejects with its reason and sends nothing',
    async run(stage) {
      const reason = new Error('stopped before')
      const asked = stage.play({ kind: 'text', deltas: DELTAS })
      await rejects(collect(stage.client, asked, AbortSignal.abort(reason)), (error) => error === reason)
      if (stage.received) strictEqual(stage.received(), 0)
    },
  },
  {
    id: 'abort-during',
    title: 'an abort in the middle rejects with its reason and ends the exchange',
    async run(stage) {
      const reason = new Error('stopped during')
      const controller = new AbortController()
      const events: CompletionEvent[] = []
      await rejects(
        async () => {
          for await (const event of stage.client.complete(
            stage.play({ kind: 'held', deltas: ['one two three four five six ', 'seven eight'] }),
            controller.signal,
          )) {
            events.push(event)
            controller.abort(reason)
          }
        },
        (error) => error === reason,
      )
      ok(events.length > 0 && events.every(({ type }) => type !== 'end'))
      if (stage.lastClosed) strictEqual(await stage.lastClosed(), false)
    },
  },
  {
    id: 'leave',
    title: 'leaving in the middle ends the exchange',
    async run(stage) {
      const controller = new AbortController()
      for await (const event of stage.client.complete(
        stage.play({ kind: 'held', deltas: ['one two three four five six ', 'seven'] }),
        controller.signal,
      )) {
        strictEqual(event.type, 'text')
        break
      }
      if (stage.lastClosed) strictEqual(await stage.lastClosed(), false)
    },
  },
  {
    id: 'side-by-side',
    title: 'answers at the same time do not mix',
    async run(stage) {
      const asked = ['first', 'second', 'third'].map((word) => stage.play({ kind: 'text', deltas: [`${word} `, word] }))
      const texts = await Promise.all(asked.map(async (one) => textOf(await collect(stage.client, one))))
      deepStrictEqual(texts.toSorted(), ['first first', 'second second', 'third third'])
    },
  },
  {
    id: 'probe',
    title: 'a probe names a model and obeys its signal',
    async run(stage) {
      ok((await stage.client.probe(never())).model.length > 0)
      const reason = new Error('no probe')
      await rejects(stage.client.probe(AbortSignal.abort(reason)), (error) => error === reason)
    },
  },
  {
    id: 'thinking',
    network: true,
    title: 'thinking comes apart from the text and before it',
    async run(stage) {
      const events = await collect(stage.client, {
        ...stage.play({ kind: 'text', deltas: ['answer'], thinking: ['let me ', 'see'] }),
        thinking: true,
      })
      strictEqual(events.map((event) => (event.type === 'thinking' ? event.delta : '')).join(''), 'let me see')
      strictEqual(textOf(events), 'answer')
      ok(events.findLastIndex(({ type }) => type === 'thinking') < events.findIndex(({ type }) => type === 'text'))
    },
  },
  {
    id: 'thinking-calls',
    network: true,
    title: 'thinking that leads to calls is told as thinking, in order and not as text',
    async run(stage) {
      const thinking = ['hm ', '日本😀']
      const events = await collect(stage.client, {
        ...stage.play({ kind: 'calls', calls: [{ name: 'add', args: { a: 1 } }], thinking }),
        thinking: true,
      })
      const thought = events.map((event) => (event.type === 'thinking' ? event.delta : '')).join('')
      ok(thought.startsWith(thinking.join('')), `thought ${JSON.stringify(thought)}`)
      ok(!textOf(events).includes('hm '), 'thinking came as text')
      ok(events.findIndex(({ type }) => type === 'thinking') < events.findIndex(({ type }) => type === 'call'))
    },
  },
  {
    id: 'thinking-stays',
    network: true,
    title: 'what it thought is not sent with a later turn',
    async run(stage) {
      const asked = stage.play({ kind: 'text', deltas: ['answer'], thinking: ['let me ', 'see'] })
      const events = await collect(stage.client, { ...asked, thinking: true })
      ok(events.some(({ type }) => type === 'thinking'))
      await collect(stage.client, {
        ...stage.play({ kind: 'text', deltas: ['fine'] }),
        thinking: true,
        turns: [...asked.turns, { role: 'assistant', text: textOf(events), calls: [] }, ...asked.turns],
      })
      const heard = stage.heard?.()
      if (heard) ok(!/let me|see/.test(JSON.stringify(heard)), `it was sent: ${JSON.stringify(heard)}`)
    },
  },
  {
    id: 'refused',
    network: true,
    title: 'an answer the vendor held back says so',
    async run(stage) {
      strictEqual(
        endOf(await collect(stage.client, stage.play({ kind: 'text', deltas: ['I can'], stop: 'refused' }))).stop,
        'refused',
      )
    },
  },
  {
    id: 'usage-detailed',
    network: true,
    title: 'cached and thinking tokens are told',
    async run(stage) {
      const { usage } = endOf(
        await collect(stage.client, stage.play({ kind: 'text', deltas: DELTAS, usage: 'detailed' })),
      )
      deepStrictEqual(usage, stage.detailed ?? { input: 100, output: 50, cachedInput: 80, thinking: 20 })
    },
  },
  ...(['missing', 'negative', 'absurd'] as const).map((usage): Check => ({
    id: `usage-${usage}`,
    network: true,
    title: `usage that is ${usage} is estimated and flagged`,
    async run(stage) {
      const end = endOf(await collect(stage.client, stage.play({ kind: 'text', deltas: ['word '.repeat(100)], usage })))
      strictEqual(end.usage.estimated, true)
      ok(end.usage.input > 0 && end.usage.input < 1000 && end.usage.output >= 100 && end.usage.output < 1000)
    },
  })),
  status('401', 401, 'auth', 'never'),
  status('403', 403, 'auth', 'never'),
  status('404', 404, 'not_found', 'never'),
  status('400', 400, 'invalid_request', 'never'),
  status('429', 429, 'rate_limit', 'later'),
  status('429-seconds', 429, 'rate_limit', 'later', { 'retry-after': '7' }, 7),
  {
    id: 'status-429-date',
    network: true,
    title: '429-date is rate_limit with the pause that was asked for',
    run: (stage) =>
      fails(
        stage,
        { kind: 'status', status: 429, headers: { 'retry-after': new Date(Date.now() + 30_000).toUTCString() } },
        { reason: 'rate_limit', retry: 'later', retryAfterSecs: 30 },
      ),
  },
  status('500', 500, 'server_error', 'later'),
  status('502', 502, 'server_error', 'later'),
  status('503', 503, 'overloaded', 'later'),
  status('529', 529, 'overloaded', 'later'),
  {
    id: 'overloaded',
    network: true,
    title: 'an error within the answer is told apart',
    run: (stage) =>
      fails(
        stage,
        { kind: 'fault', fault: 'overloaded', deltas: ['half an '] },
        { reason: 'overloaded', retry: 'later' },
      ),
  },
  {
    id: 'context-length',
    network: true,
    title: 'a conversation that is too long is told apart',
    run: (stage) =>
      fails(
        stage,
        { kind: 'status', status: 400, about: 'context_length' },
        { reason: 'context_length', retry: 'never' },
      ),
  },
  {
    id: 'content-filter',
    network: true,
    title: 'a refused prompt is told apart',
    run: (stage) =>
      fails(
        stage,
        { kind: 'status', status: 400, about: 'content_filter' },
        { reason: 'content_filter', retry: 'never' },
      ),
  },
  ...(['cut', 'reset'] as const).map((fault): Check => ({
    id: fault,
    network: true,
    title: `an answer that ends by ${fault} is never a silent success`,
    async run(stage) {
      const events: CompletionEvent[] = []
      await rejects(
        async () => {
          for await (const event of stage.client.complete(
            stage.play({ kind: 'fault', fault, deltas: ['half an '] }),
            never(),
          ))
            events.push(event)
        },
        (error) => error instanceof UpstreamFailure && error.reason === 'cut',
      )
      strictEqual(textOf(events), 'half an ')
    },
  })),
  ...(['html', 'empty', 'malformed-all', 'endless-line'] as const).map((fault): Check => ({
    id: fault,
    network: true,
    title: `${fault} is malformed`,
    run: (stage) => fails(stage, { kind: 'fault', fault, deltas: [] }, { reason: 'malformed' }),
  })),
  ...(['malformed-one', 'split', 'slow-bytes'] as const).map((fault): Check => ({
    id: fault,
    network: true,
    title: `${fault} loses nothing`,
    async run(stage) {
      strictEqual(
        textOf(await collect(stage.client, stage.play({ kind: 'fault', fault, deltas: DELTAS }))),
        DELTAS.join(''),
      )
    },
  })),
  {
    id: 'models',
    needs: 'models',
    title: 'its models are told by their ids',
    async run(stage) {
      const ids = (await stage.client.models?.(never())) ?? []
      ok(ids.length > 0 && ids.every((id) => typeof id === 'string' && id !== ''))
      strictEqual(new Set(ids).size, ids.length)
    },
  },
  {
    id: 'replay',
    network: true,
    needs: 'replay',
    title: 'what it wants back is given out with its calls and accepted with their results',
    async run(stage) {
      const calls = [
        { name: 'add', args: { a: 1 } },
        { name: 'time', args: {} },
      ]
      const asked = { ...stage.play({ kind: 'calls', calls, thinking: ['hm ', '日本😀'] }), thinking: true }
      const events = await collect(stage.client, asked)
      const { replay } = endOf(events)
      ok(typeof replay === 'string' && replay !== '')
      const made = callsOf(events)
      const answered = (kept: { replay?: string }): CompletionRequest['turns'] => [
        ...asked.turns,
        { role: 'assistant', text: textOf(events), calls: made, ...kept },
        ...made.map(({ id, name }) => ({ role: 'tool' as const, callId: id, tool: name, text: '3', failed: false })),
      ]
      strictEqual(
        textOf(
          await collect(stage.client, {
            ...asked,
            ...stage.play({ kind: 'text', deltas: ['three'] }),
            thinking: true,
            turns: answered({ replay }),
          }),
        ),
        'three',
      )
      // Another model answered before, or it was lost: the turn goes on without.
      strictEqual(
        textOf(
          await collect(stage.client, {
            ...asked,
            ...stage.play({ kind: 'text', deltas: ['three'] }),
            thinking: true,
            turns: answered({}),
          }),
        ),
        'three',
      )
      strictEqual(
        textOf(
          await collect(stage.client, {
            ...asked,
            ...stage.play({ kind: 'text', deltas: ['three'] }),
            thinking: true,
            turns: answered({ replay: 'not from here' }),
          }),
        ),
        'three',
      )
    },
  },
  {
    id: 'embed',
    network: true,
    needs: 'embed',
    title: 'each text gets its vector, in order',
    async run(stage) {
      const vectors = [
        [0.5, -0.25, 0],
        [0, 0.125, 1],
        [1, 2, -3],
      ]
      const { model } = stage.play({ kind: 'embed', vectors })
      const embedded = await stage.client.embed?.({ model, texts: ['one', 'zwei ü😀', ''] }, never())
      deepStrictEqual(
        embedded?.vectors.map((vector) => [...vector]),
        vectors,
      )
      ok(embedded.vectors.every((vector) => vector instanceof Float32Array))
      ok(Number.isInteger(embedded.usage.input) && embedded.usage.input >= 0)
      const reason = new Error('no vectors')
      await rejects(
        async () => stage.client.embed?.({ model, texts: ['one'] }, AbortSignal.abort(reason)),
        (error) => error === reason,
      )
    },
  },
  {
    id: 'embed-401',
    network: true,
    needs: 'embed',
    title: 'vectors that are refused are told as an answer is',
    async run(stage) {
      const { model } = stage.play({ kind: 'status', status: 401 })
      await rejects(
        async () => stage.client.embed?.({ model, texts: ['one'] }, never()),
        (error) => error instanceof UpstreamFailure && error.reason === 'auth' && error.retry === 'never',
      )
    },
  },
  ...mediaChecks,
]

/**
 * Registers every check as a test; those of a network, or of something not every driver can, only for drivers that
 * have it.
 */
export function testProvider(
  name: string,
  open: () => Promise<ProviderStage>,
  {
    network,
    offers = [],
    lacks = [],
    concurrent = false,
  }: {
    readonly network: boolean
    readonly offers?: readonly Offer[]
    readonly lacks?: readonly string[]
    readonly concurrent?: boolean
  },
): void {
  describe(`provider contract: ${name}`, () => {
    for (const check of checks) {
      if ((check.network && !network) || (check.needs && !offers.includes(check.needs)) || lacks.includes(check.id))
        continue
      // A stage that is mostly waited for does not hold up the others.
      const register = concurrent ? it.concurrent : it
      register(`${check.id}: ${check.title}`, async () => {
        await using stage = await open()
        await check.run(stage)
      })
    }
    it('has a check for every id once', () => {
      strictEqual(new Set(checks.map(({ id }) => id)).size, checks.length)
      match(checks[0]?.id ?? '', /^[a-z-]+$/)
    })
  })
}
