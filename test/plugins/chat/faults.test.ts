import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Answer } from '../../support/fake-provider.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { providers: { tries: 3, back_off_min_ms: 1, back_off_max_ms: 5, retry_after_max_ms: 1000, idle_ms: 150, first_event_ms: 400, breaker_failures: 1000 } } } })
})
afterAll(async () => { await stage[Symbol.asyncDispose]() })

async function ask(...answers: Answer[]) {
  const agent = await stage.spawn(`fault-${serial++}`)
  const before = stage.fake.requests.length
  stage.fake.script(...answers)
  const answer = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
  return { agent, ...answer, tries: stage.fake.requests.length - before, session: await stage.session(agent) }
}

describe('a provider that answers 429', () => {
  it('with Retry-After is asked again after that pause', async () => {
    const started = performance.now()
    const { status, body, tries } = await ask({ status: 429, headers: { 'retry-after': '1' } }, { text: 'now' })
    expect([status, body.response, tries]).toEqual([200, 'now', 2])
    expect(performance.now() - started).toBeGreaterThan(900)
  })
  it('without one is asked again with back-off', async () => {
    const { status, tries } = await ask({ status: 429 }, { status: 429 }, { text: 'now' })
    expect([status, tries]).toEqual([200, 3])
  })
  it('for ever gives an error that names it, and the message stays in the session', async () => {
    const { status, body, session, tries } = await ask({ status: 429 }, { status: 429 }, { status: 429 })
    expect([status, tries, body.error.code]).toEqual([503, 3, 'service_unavailable'])
    expect(body.error.message).toContain('openai')
    expect(session.messages.map(({ role }) => role)).toEqual(['User'])
    expect(stage.host.defects()).toEqual([])
  })
})

describe('a provider that fails', () => {
  it.each([500, 502, 503, 529])('with %i is asked again', async (status) => {
    const answer = await ask({ status }, { text: 'well' })
    expect([answer.status, answer.tries]).toEqual([200, 2])
  })
  it('with 401 is not asked again, and the error says what to do', async () => {
    const { status, body, tries } = await ask({ status: 401 })
    expect([status, tries]).toEqual([500, 1])
    expect(body.error.message).toMatch(/openai.*key/is)
    expect(JSON.stringify(body)).not.toContain('test-key')
  })
  it.each(['cut', 'reset', 'stall'] as const)('by %s in the middle: what was said is kept and marked, and nobody is told that it worked', async (fault) => {
    const { status, body, session, tries } = await ask({ text: ['Half of', ' it'], fault })
    expect([status, tries]).toEqual([503, 1])
    expect(body.error.message).toContain('openai')
    expect(session.messages.at(-1)).toMatchObject({ role: 'Assistant', content: 'Half of it', mark: 'cut' })
  })
  it('in the middle of a stream ends it with an error event', async () => {
    const agent = await stage.spawn(`fault-${serial++}`)
    stage.fake.script({ text: ['Half'], fault: 'cut' })
    const events = parseEvents(await (await stage.post(`/api/agents/${agent}/message/stream`, { message: 'go' })).text())
    expect(events.map(({ event }) => event)).toEqual(['chunk', 'error'])
    expect(events[1]?.data.error).toMatchObject({ code: 'service_unavailable', message: expect.stringContaining('openai') })
  })
  it('after a tool has run does not run it again', async () => {
    const agent = await stage.spawn(`fault-${serial++}`)
    stage.fake.script({ calls: [{ name: 'kv_set', args: { key: 'n', value: 1 } }] }, { status: 500 }, { text: 'stored' })
    const { body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'go' })
    expect(body).toMatchObject({ response: 'stored', iterations: 2 })
    const { messages } = await stage.session(agent)
    expect(messages.filter(({ tools }) => tools)).toHaveLength(1)
  })
  it('leaves the session able to go on', async () => {
    const { agent } = await ask({ text: ['Half'], fault: 'cut' })
    const { status, body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'again' })
    expect([status, body.stop]).toEqual([200, 'done'])
  })
})

describe('a provider that is sloppy', () => {
  const event = (text: string): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
  const end = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`

  it('with one malformed chunk loses only that', async () => {
    const { status, body } = await ask({ raw: [event('a'), 'data: {"choices": [\n\n', event('b'), end] })
    expect([status, body.response]).toEqual([200, 'ab'])
  })
  it('with nothing but malformed chunks fails', async () => {
    const broken = { raw: ['data: {"a\n\n', 'data: nonsense\n\n', 'data: [\n\n', 'data: {\n\n', end] }
    expect((await ask(broken, broken, broken)).status).toBeGreaterThanOrEqual(500)
  })
  it('that splits characters between chunks loses none', async () => {
    const { body } = await ask({ text: ['Grüße, ', '世界 ', '👩‍👩‍👧 ', 'ünïcödé'], fault: 'split' })
    expect(body.response).toBe('Grüße, 世界 👩‍👩‍👧 ünïcödé')
  })
  it('that leaves out the usage, or makes it up, is counted here', async () => {
    for (const usage of [null, { prompt_tokens: -5, completion_tokens: 1e30 }]) {
      const { body } = await ask({ text: 'some words', usage })
      expect(body.input_tokens).toBeGreaterThan(0)
      expect(body.output_tokens).toBeGreaterThan(0)
      expect(body.output_tokens).toBeLessThan(100)
    }
  })
  it('that gives all its calls the same id gets a result for each', async () => {
    const { status, session } = await ask({ calls: [{ id: 'x', name: 'kv_list', args: {} }, { id: 'x', name: 'kv_get', args: { key: 'k' } }] }, { text: 'two' })
    expect(status).toBe(200)
    expect(session.messages[1]?.tools?.every(({ result }) => result !== null)).toBe(true)
  })
})
