import { expect } from 'vitest'
import { refused } from './limit.ts'
import type { LimitGroup, LimitStage } from './limit.ts'

const say = ({ post }: LimitStage, agent: string, message: string, more: object = {}) =>
  post(`/api/agents/${agent}/message`, { message, ...more })
/** What the model was told came of the tool it called last. */
const results = ({ fake }: LimitStage): string =>
  (fake.requests.at(-1)?.body.messages ?? [])
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content))
    .at(-1) ?? ''
const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), Buffer.alloc(92)])
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${dot}` } }

export const turns: LimitGroup = {
  name: 'messages and turns',
  config: () => ({
    tools: { output_chars: 200 },
    plugins: {
      approvals: { policy: 'never' },
      chat: {
        message_bytes: 3000,
        message_chars: 2000,
        images_per_message: 1,
        attachment_chars: 50,
        queue_length: 2,
        max_iterations: 3,
        tool_calls_per_turn: 5,
      },
      delegation: { max_depth: 1, send_timeout_secs: 1 },
      vision: { max_image_bytes: 80 },
    },
  }),
  limits: {
    async 'plugins.chat.message_chars'(stage) {
      const agent = await stage.agent()
      expect((await say(stage, agent, 'x'.repeat(2000))).status).toBe(200)
      refused(await say(stage, agent, 'x'.repeat(2001)), {
        status: 413,
        code: 'payload_too_large',
        says: /longer than 2000 characters.*plugins\.chat\.message_chars/,
      })
    },
    async 'plugins.chat.message_bytes'(stage) {
      const agent = await stage.agent()
      expect((await say(stage, agent, 'ü'.repeat(1500))).status).toBe(200)
      refused(await say(stage, agent, 'ü'.repeat(1501)), {
        status: 413,
        code: 'payload_too_large',
        says: /larger than 3000 bytes.*plugins\.chat\.message_bytes/,
      })
    },
    async 'plugins.chat.images_per_message'(stage) {
      await stage.agent('')
      const ask = (images: number) =>
        stage.post('/v1/chat/completions', {
          model: 'svc:agent-1',
          messages: [
            { role: 'user', content: [{ type: 'text', text: 'look' }, ...Array.from({ length: images }, () => image)] },
          ],
        })
      expect((await ask(1)).status).toBe(200)
      const { status, body } = await ask(2)
      expect([status, body.error.message]).toEqual([
        413,
        expect.stringMatching(/more than 1 images.*plugins\.chat\.images_per_message/),
      ])
    },
    async 'plugins.chat.attachment_chars'(stage) {
      const agent = await stage.agent()
      const ask = async (chars: number): Promise<string> => {
        const response = await stage.host.fetch(`/api/agents/${agent}/upload`, {
          method: 'POST',
          headers: { 'content-type': 'text/plain', 'x-filename': 'notes.txt' },
          body: 'y'.repeat(chars),
        })
        const { file_id } = await response.json()
        await say(stage, agent, 'read this', { attachments: [{ file_id }] })
        return String(stage.fake.requests.at(-1)?.body.messages?.at(-1)?.content)
      }
      expect(await ask(50)).toMatch(/y{50}(?!y)/)
      expect(await ask(51)).toMatch(/y{50}\n\[cut: the rest is in the file\]/)
    },
    async 'plugins.chat.queue_length'(stage) {
      const agent = await stage.agent()
      let go = (): void => undefined
      const held = new Promise<void>((resolve) => {
        go = resolve
      })
      stage.fake.script(async () => {
        await held
        return { text: 'first' }
      })
      const asked = stage.fake.requests.length
      const first = say(stage, agent, 'one')
      await stage.fake.request(asked)
      // One of them waits behind the first, the other one is one too many.
      const both = [say(stage, agent, 'two'), say(stage, agent, 'three')]
      refused(await Promise.race(both), { status: 429, says: /2 messages waiting.*plugins\.chat\.queue_length/ })
      go()
      expect([(await first).status, ...(await Promise.all(both)).map(({ status }) => status).toSorted()]).toEqual([
        200, 200, 429,
      ])
    },
    async 'plugins.chat.max_iterations'(stage) {
      const agent = await stage.agent()
      let n = 0
      stage.fake.always(() => ({ calls: [{ name: 'kv_set', args: { key: `k${n}`, value: n++ } }] }))
      const { body } = await say(stage, agent, 'for ever')
      expect(body).toMatchObject({
        stop: 'iterations',
        iterations: 3,
        response: expect.stringMatching(/Stopped after 3/),
      })
      stage.fake.always({ text: 'fine' })
    },
    async 'plugins.chat.tool_calls_per_turn'(stage) {
      const agent = await stage.agent()
      const calls = (count: number) =>
        Array.from({ length: count }, (_, n) => ({ name: 'kv_set', args: { key: `k${n}`, value: n } }))
      stage.fake.script({ calls: calls(5) }, { text: 'done' })
      expect((await say(stage, agent, 'five')).body.response).toBe('done')
      stage.fake.script({ calls: calls(6) })
      expect((await say(stage, agent, 'six')).body.response).toMatch(/more than 5 tool calls in one turn/)
    },
    async 'tools.output_chars'(stage) {
      const agent = await stage.agent()
      const read = async (chars: number): Promise<string> => {
        await stage.host.json('PUT', `/api/agents/${agent}/files/long.txt`, { content: 'z'.repeat(chars) })
        stage.fake.script({ calls: [{ name: 'file_read', args: { path: 'long.txt' } }] }, { text: 'read' })
        await say(stage, agent, 'read it')
        return results(stage)
      }
      expect(await read(150)).toMatch(/z{150}/)
      expect((await read(5000)).replaceAll(/[^z]/g, '').length).toBeLessThanOrEqual(200)
      expect(results(stage)).toMatch(/5,?000|cut|not shown|truncated/i)
    },
    async 'plugins.delegation.max_depth'(stage) {
      const [a, b, c] = [await stage.agent(), await stage.agent(), await stage.agent()]
      stage.fake.script(
        { calls: [{ name: 'agent_send', args: { agent_id: b, message: 'ask c' } }] },
        { calls: [{ name: 'agent_send', args: { agent_id: c, message: 'hello' } }] },
        { text: 'c cannot be asked' },
        { text: 'done' },
      )
      const before = stage.fake.requests.length
      expect((await say(stage, a, 'ask b')).body.response).toBe('done')
      const told = JSON.stringify(stage.fake.requests[before + 2]?.body.messages)
      expect(told).toMatch(/1 deep already \(plugins\.delegation\.max_depth\)/)
      expect((await stage.host.json('GET', `/api/agents/${c}/session`)).body.message_count).toBe(0)
    },
    async 'plugins.delegation.send_timeout_secs'(stage) {
      const [a, b] = [await stage.agent(), await stage.agent()]
      stage.fake.script(
        { calls: [{ name: 'agent_send', args: { agent_id: b, message: 'hello' } }] },
        { fault: 'silent' },
        { text: 'no answer' },
      )
      expect((await say(stage, a, 'ask b')).body.response).toBe('no answer')
      expect(results(stage)).toMatch(/was stopped after 1 seconds/)
    },
    async 'plugins.vision.max_image_bytes'(stage) {
      const agent = await stage.agent()
      await stage.host.json('PUT', `/api/agents/${agent}/files/a.png`, {
        content: png.toString('base64'),
        encoding: 'base64',
      })
      expect(await stage.tool(agent, 'image_analyze', { path: 'a.png' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/"a\.png" has 100 bytes; at most 80 are read/),
      })
    },
  },
}

const flaky = (fake: { readonly url: string }) => ({
  driver: 'openai-compatible',
  base_url: fake.url,
  api_key: 'key',
  default_model: 'fake-1',
})
const on = (provider: string): string => `[model]\nprovider = "${provider}"\nmodel = "fake-1"`
export const models: LimitGroup = {
  name: 'calls of models',
  config: (_, fake) => ({
    providers: {
      openai: flaky(fake),
      one: flaky(fake),
      two: flaky(fake),
      three: flaky(fake),
      four: flaky(fake),
      six: flaky(fake),
    },
    plugins: {
      providers: {
        tries: 2,
        back_off_min_ms: 1,
        back_off_max_ms: 2,
        retry_after_max_ms: 50,
        breaker_failures: 3,
        breaker_trial_ms: 700,
        circuit_wait_ms: 750,
      },
    },
  }),
  limits: {
    async 'plugins.providers.tries'(stage) {
      const agent = await stage.agent(on('one'))
      const before = stage.fake.requests.length
      stage.fake.script({ status: 500 }, { status: 500 })
      expect((await say(stage, agent, 'hello')).status).toBe(503)
      expect(stage.fake.requests.length - before).toBe(2)
      expect((await say(stage, agent, 'again')).status).toBe(200)
    },
    async 'plugins.providers.breaker_failures'(stage) {
      const agent = await stage.agent(on('two'))
      stage.fake.script(...Array.from({ length: 3 }, () => ({ status: 500 })))
      await say(stage, agent, 'one')
      const before = stage.fake.requests.length
      const { status, headers, body } = await say(stage, agent, 'two')
      expect([status, body.error.code, body.error.message]).toEqual([
        503,
        'service_unavailable',
        expect.stringMatching(/two/),
      ])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(stage.fake.requests.length - before).toBe(1)
    },
    async 'plugins.providers.circuit_wait_ms'(stage) {
      const agent = await stage.agent(on('six'))
      const statusOf = async (message: string): Promise<number> => (await say(stage, agent, message)).status
      const fail = (times: number) => stage.fake.script(...Array.from({ length: times }, () => ({ status: 500 })))
      fail(3)
      expect([await statusOf('one'), await statusOf('two')]).toEqual([503, 503])
      // The first trial is no further away than a message waits; later ones are.
      expect(await statusOf('three')).toBe(200)
      stage.fake.always({ status: 500 })
      expect([await statusOf('four'), await statusOf('five'), await statusOf('six')]).toEqual([503, 503, 503])
      // On a loaded machine a trial may be near again by now: each that fails doubles the time until the next.
      let found: { readonly status: number; readonly tried: number; readonly after: number } | undefined
      for (let trials = 0; trials < 4 && found?.tried !== 0; trials++) {
        const before = stage.fake.requests.length
        const { status, headers } = await say(stage, agent, 'again')
        found = { status, tried: stage.fake.requests.length - before, after: Number(headers.get('retry-after')) }
      }
      stage.fake.always({ text: 'fine' })
      expect(found).toMatchObject({ status: 503, tried: 0 })
      expect(found?.after).toBeGreaterThan(0)
    },
    async 'plugins.providers.retry_after_max_ms'(stage) {
      const agent = await stage.agent(on('three'))
      stage.fake.script({ status: 429, headers: { 'retry-after': '3600' } }, { text: 'after a moment' })
      expect((await say(stage, agent, 'hello')).body.response).toBe('after a moment')
    },
  },
}
const modelTimes = (name: string, providers: object, limits: LimitGroup['limits']): LimitGroup => ({
  name,
  config: (_, fake) => ({
    providers: { openai: flaky(fake), four: flaky(fake) },
    plugins: { providers: { tries: 2, back_off_min_ms: 1, back_off_max_ms: 2, ...providers } },
  }),
  limits,
})
/** Each with a daemon of its own, in which nothing else has to be done within so short a time. */
export const firstEvents = modelTimes(
  'the time until a model begins to answer',
  { first_event_ms: 300 },
  {
    async 'plugins.providers.first_event_ms'(stage) {
      const agent = await stage.agent(on('four'))
      const before = stage.fake.requests.length
      stage.fake.script({ fault: 'silent' }, { fault: 'silent' })
      const { status, body } = await say(stage, agent, 'hello')
      expect([status, body.error.message]).toEqual([503, expect.stringMatching(/four/)])
      expect(stage.fake.requests.length - before).toBe(2)
    },
  },
)
export const pauses = modelTimes(
  'the time between two pieces of an answer',
  { idle_ms: 300 },
  {
    async 'plugins.providers.idle_ms'(stage) {
      const agent = await stage.agent(on('four'))
      stage.fake.script({ text: ['half'], fault: 'stall' })
      const { status, body } = await say(stage, agent, 'hello')
      expect([status, body.error.message]).toEqual([503, expect.stringMatching(/four sent nothing for 300 ms/)])
    },
  },
)
export const answers = modelTimes(
  'the time of an answer',
  { answer_ms: 1000 },
  {
    async 'plugins.providers.answer_ms'(stage) {
      const agent = await stage.agent(on('four'))
      stage.fake.always({ text: Array.from({ length: 100 }, () => 'word '), gapMs: 60 })
      const { status, body } = await say(stage, agent, 'hello')
      stage.fake.always({ text: 'fine' })
      expect([status, body.error.message]).toEqual([
        503,
        expect.stringMatching(/four did not finish in the time an answer may take/),
      ])
    },
  },
)
export const turn: LimitGroup = {
  name: 'the time of a turn',
  config: () => ({ plugins: { approvals: { policy: 'never' }, chat: { turn_ms: 400 } } }),
  limits: {
    async 'plugins.chat.turn_ms'(stage) {
      const agent = await stage.agent()
      let n = 0
      stage.fake.always(() => ({ delayMs: 150, calls: [{ name: 'kv_set', args: { key: `k${n}`, value: n++ } }] }))
      const { status, body } = await say(stage, agent, 'slow')
      expect([status, body.error.code, body.error.message]).toEqual([
        503,
        'service_unavailable',
        expect.stringMatching(/time/),
      ])
    },
  },
}

const limited =
  (key: string, value: number, says: RegExp) =>
  async (stage: LimitStage): Promise<void> => {
    const agent = await stage.agent('[model]\nprovider = "openai"\nmodel = "fake-1"\nmax_tokens = 100')
    expect((await say(stage, agent, 'hello')).status).toBe(200)
    expect((await stage.post('/api/config/set', { key, value })).status).toBe(200)
    refused(await say(stage, agent, 'hello'), { status: 429, says })
    expect((await stage.post('/api/config/set', { key, value: 0 })).status).toBe(200)
    expect((await say(stage, agent, 'hello')).status).toBe(200)
  }
export const money: LimitGroup = {
  name: 'money and tokens',
  config: (_, fake) => ({
    providers: { openai: { ...flaky(fake), prices: { 'fake-1': { input: 1000, output: 1000 } } } },
  }),
  limits: {
    'budget.max_hourly_usd': limited('budget.max_hourly_usd', 0.001, /hour/),
    'budget.max_daily_usd': limited('budget.max_daily_usd', 0.001, /day|daily/),
    'budget.max_monthly_usd': limited('budget.max_monthly_usd', 0.001, /month/),
    'budget.default_max_llm_tokens_per_hour': limited(
      'budget.default_max_llm_tokens_per_hour',
      5,
      /tokens.*hour|hour.*tokens/,
    ),
  },
}
