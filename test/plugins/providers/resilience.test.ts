import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CompletionEvent, ProviderDriver } from 'svc/providers'
import { builtin } from '../../../adapters/providers/builtin/driver.ts'
import type { InferenceEvent } from '../../../plugins/providers/contract.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { collectAll, createRig, hi } from './rig.ts'
import type { RigOptions } from './rig.ts'

let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider()
})
afterAll(() => fake[Symbol.asyncDispose]())

const rig = (options: RigOptions = {}) =>
  createRig({ ...options, config: { ...options.config, providers: { openai: { base_url: fake.url, api_key: 'k' } } } })
const before = () => fake.requests.length
const since = (start: number) => fake.requests.length - start
const failing = (status: number, headers: Record<string, string> = {}) => ({ status, headers })
const model = { provider: 'openai', model: 'fake-1', price: undefined, contextWindow: 1000 }

describe('trying again', () => {
  it('a failure that may pass is tried up to three times with growing random pauses', async () => {
    await using part = await rig({ random: 0.999 })
    const start = before()
    fake.script(failing(500), failing(502), { text: 'third time' })
    expect(await part.ask()).toBe('third time')
    expect(since(start)).toBe(3)
    expect(part.pauses).toEqual([599, 1199])
  })
  it('for ever is given up after three tries, with a message that names the provider', async () => {
    await using part = await rig()
    const start = before()
    fake.script(failing(503), failing(503), failing(503))
    await expect(part.ask()).rejects.toMatchObject({
      name: 'UpstreamFailure',
      system: 'openai',
      reason: 'overloaded',
      retry: 'later',
      message: expect.stringContaining('openai answered 503'),
    })
    expect(since(start)).toBe(3)
  })
  it('a pause the provider asks for is kept, in seconds and as a date', async () => {
    await using part = await rig()
    fake.script(
      failing(429, { 'retry-after': '7' }),
      failing(429, { 'retry-after': new Date(Date.now() + 20_000).toUTCString() }),
      { text: 'ok' },
    )
    expect(await part.ask()).toBe('ok')
    expect(part.pauses[0]).toBe(7000)
    expect(part.pauses[1]).toBeGreaterThan(17_000)
    expect(part.pauses[1]).toBeLessThanOrEqual(20_000)
  })
  it('a pause of an hour is cut to a minute', async () => {
    await using part = await rig()
    fake.script(failing(429, { 'retry-after': '3600' }), { text: 'ok' })
    expect(await part.ask()).toBe('ok')
    expect(part.pauses).toEqual([60_000])
  })
  it('429 for ever names the provider and says what to do', async () => {
    await using part = await rig()
    fake.script(failing(429), failing(429), failing(429))
    await expect(part.ask()).rejects.toThrow(/openai answered 429.*\(3 tries\)\. Wait, or use another provider/)
  })
  it('a key that another address wants and nobody gave is asked for', async () => {
    await using part = await createRig({ config: { providers: { openai: { base_url: fake.url } } } })
    fake.script(failing(401))
    await expect(part.ask()).rejects.toThrow(
      'No key was sent: set OPENAI_API_KEY or POST one to /api/providers/openai/key.',
    )
  })
  for (const status of [400, 401, 403, 404]) {
    it(`${status} is not tried again`, async () => {
      await using part = await rig()
      const start = before()
      fake.script(failing(status))
      await expect(part.ask()).rejects.toMatchObject({ retry: 'never' })
      expect(since(start)).toBe(1)
    })
  }
  it('a refused connection is tried again and then says what to check', async () => {
    const { url } = await startFakeProvider().then(async (gone) => {
      await gone[Symbol.asyncDispose]()
      return gone
    })
    await using part = await createRig({ config: { providers: { openai: { base_url: url, api_key: 'k' } } } })
    await expect(part.ask()).rejects.toThrow(
      /refused the connection \(3 tries\)\. Check that http:\/\/127\.0\.0\.1:\d+ can be reached/,
    )
    expect(part.pauses).toHaveLength(2)
  })
  it('nothing is tried again after the first event, and nothing that was said is said twice', async () => {
    await using part = await rig()
    const start = before()
    fake.script({ text: ['half an '], fault: 'reset' })
    const events: InferenceEvent[] = []
    await expect(
      (async () => {
        for await (const event of part.inference.complete(model, hi, new AbortController().signal)) events.push(event)
      })(),
    ).rejects.toMatchObject({ reason: 'cut' })
    expect(events).toEqual([{ type: 'text', delta: 'half an ' }])
    expect(since(start)).toBe(1)
  })
  it('an abort during the pause ends it at once', async () => {
    await using part = await rig({ holdPauses: true })
    const controller = new AbortController()
    const reason = new Error('enough')
    fake.script(failing(500))
    const asked = part.ask(model, controller.signal)
    const ended = expect(asked).rejects.toBe(reason)
    await expect.poll(() => part.pauses.length).toBe(1)
    controller.abort(reason)
    await ended
    expect(part.clock.waiting).toBe(0)
  })
  it('a pause that ends after the deadline is not begun', async () => {
    await using part = await rig({ config: { answer_ms: 5000 } })
    fake.script(failing(429, { 'retry-after': '10' }))
    await expect(part.ask()).rejects.toMatchObject({ reason: 'rate_limit', retryAfterSecs: 10 })
    expect(part.pauses).toEqual([])
  })
})

describe('time limits', () => {
  it('no headers for two minutes is a timeout', async () => {
    await using part = await rig({ config: { tries: 1 } })
    const index = before()
    fake.script({ fault: 'silent' })
    const ended = expect(part.ask()).rejects.toMatchObject({
      reason: 'timeout',
      message: expect.stringContaining('did not begin to answer within 120 s'),
    })
    const request = await fake.request(index)
    part.clock.advance(119_000)
    part.clock.advance(1000)
    await ended
    expect(await request.closed).toBe(false)
  })
  it('a minute of silence in the middle is a timeout, with what was said kept', async () => {
    await using part = await rig()
    fake.script({ text: ['half'], fault: 'stall' })
    const events = part.inference.complete(model, hi, new AbortController().signal)[Symbol.asyncIterator]()
    expect(await events.next()).toMatchObject({ value: { type: 'text', delta: 'half' } })
    const ended = expect(events.next()).rejects.toMatchObject({
      reason: 'timeout',
      message: expect.stringContaining('sent nothing for 60 s'),
    })
    part.clock.advance(60_000)
    await ended
  })
  it('time the reader takes is not counted as silence', async () => {
    await using part = await rig()
    let more: (text: string) => void = () => {}
    const next = new Promise<string>((resolve) => {
      more = resolve
    })
    fake.script({
      text: (async function* () {
        yield 'one '
        yield await next
      })(),
    })
    const events = part.inference.complete(model, hi, new AbortController().signal)[Symbol.asyncIterator]()
    await events.next()
    part.clock.advance(300_000)
    const waiting = events.next()
    part.clock.advance(59_000)
    more('two')
    expect(await waiting).toMatchObject({ value: { delta: 'two' } })
    await events.return?.(undefined)
  })
  it('the whole answer has a deadline, however much is said', async () => {
    await using part = await rig({ config: { answer_ms: 100_000 }, drivers: [chatty] })
    const talk = (async () => {
      for await (const _ of part.inference.complete({ ...model, provider: 'chatty' }, hi, new AbortController().signal))
        part.clock.advance(10_000)
    })()
    await expect(talk).rejects.toMatchObject({ reason: 'timeout' })
  })
  it('a driver that ignores the signal does not hold the caller', async () => {
    await using part = await rig({ drivers: [deaf] })
    const controller = new AbortController()
    const reason = new Error('enough')
    const asked = part.ask({ ...model, provider: 'deaf' }, controller.signal)
    controller.abort(reason)
    await expect(asked).rejects.toBe(reason)
  })
})

describe('the breaker', () => {
  it('stops calling after five failures, tries once after the pause, and closes when that succeeds', async () => {
    await using part = await rig({ config: { tries: 1 } })
    fake.script(...Array.from({ length: 5 }, () => failing(500)))
    for (let call = 0; call < 5; call++) await expect(part.ask()).rejects.toMatchObject({ reason: 'server_error' })
    const start = before()
    await expect(part.ask()).rejects.toMatchObject({
      reason: 'overloaded',
      retry: 'later',
      retryAfterSecs: 1,
      message: expect.stringContaining('not called for another 1 s'),
    })
    expect(since(start)).toBe(0)
    part.clock.advance(30_000)
    let answer: () => void = () => {}
    fake.script(async () => {
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      return { text: 'back' }
    })
    const trial = part.ask()
    await fake.request(start)
    await expect(part.ask()).rejects.toMatchObject({ reason: 'overloaded' })
    expect(since(start)).toBe(1)
    answer()
    expect(await trial).toBe('back')
    fake.script({ text: 'fine' })
    expect(await part.ask()).toBe('fine')
  })
  it('opens again when the trial fails, and a trial that is left makes room for another', async () => {
    await using part = await rig({ config: { tries: 1 } })
    fake.script(...Array.from({ length: 6 }, () => failing(500)))
    for (let call = 0; call < 5; call++) await expect(part.ask()).rejects.toThrow()
    part.clock.advance(30_000)
    await expect(part.ask()).rejects.toMatchObject({ reason: 'server_error' })
    await expect(part.ask()).rejects.toMatchObject({ reason: 'overloaded' })
    part.clock.advance(30_000)
    await expect(part.ask(model, AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
    fake.script({ text: 'back' })
    expect(await part.ask()).toBe('back')
  })
  it('tries again after a second, then ever later up to the longest pause, and anew when it was back', async () => {
    await using part = await rig({ config: { tries: 1, breaker_pause_ms: 5000 } })
    const failures = async (count: number): Promise<void> => {
      fake.script(...Array.from({ length: count }, () => failing(500)))
      for (let call = 0; call < count; call++)
        await expect(part.ask()).rejects.toMatchObject({ reason: 'server_error' })
    }
    await failures(5)
    for (const ms of [1000, 2000, 4000, 5000, 5000]) {
      part.clock.advance(ms - 1)
      await expect(part.ask()).rejects.toMatchObject({ reason: 'overloaded' })
      part.clock.advance(1)
      await failures(1)
    }
    part.clock.advance(5000)
    fake.script({ text: 'back' })
    expect(await part.ask()).toBe('back')
    await failures(5)
    part.clock.advance(1000)
    fake.script({ text: 'back' })
    expect(await part.ask()).toBe('back')
  })
  it('makes a call with tries left wait for a trial that is near', async () => {
    await using part = await rig({ config: { tries: 3, breaker_failures: 1 } })
    fake.script(failing(500), { text: 'back' })
    const events = await collectAll(part.inference.complete(model, hi, new AbortController().signal))
    expect(events.map((event) => (event.type === 'phase' ? `${event.phase} ${event.attempt}` : event.type))).toEqual([
      'retrying 2',
      'waiting_for_model 2',
      'circuit_open 2',
      'waiting_for_model 2',
      'text',
      'end',
    ])
  })
  it('is a problem of the default model until a call succeeds', async () => {
    await using part = await rig({ config: { tries: 1, breaker_failures: 1 }, wanted: { provider: 'openai' } })
    fake.script(failing(500), { text: 'back' })
    expect(await part.inference.defaultProblem()).toBeUndefined()
    await expect(part.ask()).rejects.toMatchObject({ reason: 'server_error' })
    part.clock.advance(60_000)
    expect(await part.inference.defaultProblem()).toContain('calls of "openai" have failed')
    expect(await part.ask()).toBe('back')
    expect(await part.inference.defaultProblem()).toBeUndefined()
  })
  it('uses up no try with the wait for a trial', async () => {
    await using part = await rig({ config: { tries: 2, breaker_failures: 1 } })
    fake.script(failing(500))
    await expect(part.ask()).rejects.toMatchObject({ reason: 'overloaded' })
    fake.script(failing(429), { text: 'back' })
    expect(await part.ask()).toBe('back')
  })
  it('forgets failures that are long ago, and does not count refusals of the request', async () => {
    await using part = await rig({ config: { tries: 1 } })
    fake.script(...[500, 500, 500, 500, 400, 429, 401, 404].map((status) => failing(status)))
    for (let call = 0; call < 8; call++) await expect(part.ask()).rejects.toThrow()
    part.clock.advance(31_000)
    fake.script(failing(500), { text: 'ok' })
    await expect(part.ask()).rejects.toMatchObject({ reason: 'server_error' })
    expect(await part.ask()).toBe('ok')
  })
  it('is one for each key', async () => {
    await using part = await createRig({
      config: { tries: 1, providers: { openai: { base_url: fake.url, api_key: 'bad' } } },
    })
    fake.script(...Array.from({ length: 5 }, () => failing(500)))
    for (let call = 0; call < 5; call++) await expect(part.ask()).rejects.toThrow()
    await part.keys.store('openai', 'another', fake.url)
    fake.script({ text: 'ok' })
    expect(await part.ask()).toBe('ok')
  })
})

describe('what drivers give', () => {
  const saying = (...events: CompletionEvent[]): ProviderDriver => ({
    ...builtin,
    name: 'odd',
    connect: () => ({
      async *complete() {
        yield* events
      },
      probe: async () => ({ model: 'x' }),
    }),
  })
  it('an answer without an end is cut, not a success', async () => {
    await using part = await rig({ drivers: [saying({ type: 'text', delta: 'a' })] })
    await expect(part.ask({ ...model, provider: 'odd' })).rejects.toMatchObject({ reason: 'cut' })
  })
  it('nothing comes after the end', async () => {
    const end: CompletionEvent = { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
    await using part = await rig({ drivers: [saying(end, { type: 'text', delta: 'late' }, end)] })
    expect(
      await collectAll(part.inference.complete({ ...model, provider: 'odd' }, hi, new AbortController().signal)),
    ).toEqual([end])
  })
  for (const usage of [
    { input: -1, output: 1 },
    { input: 1e30, output: 1 },
    { input: Number.NaN, output: 1 },
    { input: 1, output: 1.5 },
    { input: 1, output: 1, cachedInput: 2 },
  ]) {
    it(`usage ${JSON.stringify(usage)} is estimated`, async () => {
      await using part = await rig({
        drivers: [saying({ type: 'text', delta: 'word '.repeat(20) }, { type: 'end', stop: 'done', usage })],
      })
      const events = await collectAll(
        part.inference.complete({ ...model, provider: 'odd' }, hi, new AbortController().signal),
      )
      expect(events.at(-1)).toMatchObject({ usage: { estimated: true, output: 25 } })
    })
  }
  it.each([
    ['usage.input', '"12"', { type: 'end', stop: 'done', usage: { input: '12', output: 1 } }],
    ['usage.input', 'undefined', { type: 'end', stop: 'done', usage: { prompt_tokens: 12, completion_tokens: 1 } }],
    ['usage.output', 'null', { type: 'end', stop: 'done', usage: { input: 1, output: null } }],
    ['usage.thinking', '"2"', { type: 'end', stop: 'done', usage: { input: 1, output: 3, thinking: '2' } }],
    ['usage', 'undefined', { type: 'end', stop: 'done' }],
    ['stop', '"stop"', { type: 'end', stop: 'stop', usage: { input: 1, output: 1 } }],
    ['delta', 'undefined', { type: 'text', text: 'a' }],
    ['call.name', 'undefined', { type: 'call', call: { id: 'a', args: {} } }],
    ['call', 'undefined', { type: 'call', id: 'a', name: 'b' }],
    ['type', '"done"', { type: 'done' }],
    ['event', 'null', null],
  ])('a driver whose %s is %s is told of by name and field, once', async (field, value, event) => {
    await using part = await rig({ drivers: [saying(event as CompletionEvent)] })
    const failure: unknown = await part.ask({ ...model, provider: 'odd' }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ reason: 'malformed', retry: 'never' })
    expect(String(failure)).toMatch(`The driver of provider odd is defective: `)
    expect(String(failure)).toMatch(field)
    expect(String(failure)).toMatch(value)
    expect(part.pauses).toEqual([])
  })
})

const chatty: ProviderDriver = {
  ...builtin,
  name: 'chatty',
  connect: () => ({
    async *complete(_, signal) {
      for (;;) {
        signal.throwIfAborted()
        yield { type: 'text', delta: 'x' }
      }
    },
    probe: async () => ({ model: 'x' }),
  }),
}
const deaf: ProviderDriver = {
  ...builtin,
  name: 'deaf',
  connect: () => ({
    async *complete() {
      await new Promise(() => {})
      yield { type: 'text', delta: 'never' }
    },
    probe: async () => ({ model: 'x' }),
  }),
}
