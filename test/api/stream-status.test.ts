import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({
    config: {
      http: { stream_status_ms: 20_000 },
      plugins: { providers: { breaker_failures: 1000, tries: 2, back_off_min_ms: 1, back_off_max_ms: 5 } },
    },
  })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (more = ''): Promise<string> => stage.spawn(`status-${serial++}`, ['*'], more)
const streams: readonly (readonly [string, (agent: string) => Promise<Response>])[] = [
  ['POST /message/stream', (agent) => stage.post(`/api/agents/${agent}/message/stream`, { message: 'hi' })],
  [
    'POST /v1/chat/completions',
    (agent) =>
      stage.post('/v1/chat/completions', { model: agent, stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  ],
]

describe.each(streams)('a stream of %s', (_name, ask) => {
  it('that the provider refuses before its first event answers with the status', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 503 }, { status: 503 })
    const busy = await ask(agent)
    expect([busy.status, busy.headers.get('content-type')]).toEqual([503, 'application/json'])
    stage.fake.script({ status: 400 })
    expect((await ask(agent)).status).toBe(500)
    expect((await stage.session(agent)).messages).toMatchObject([{ failed: true }, { failed: true }])
  })

  it('that a budget refuses answers 429', async () => {
    const agent = await spawn('[resources]\nmax_llm_tokens_per_hour = 1')
    const answer = await ask(agent)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([429, 'application/json'])
    await answer.text()
  })

  it('that breaks after its first event says so in an event', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['half'], fault: 'cut' })
    const answer = await ask(agent)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toMatch(/half[\s\S]*error/)
  })

  it('of a slow model begins when the time for its status is over', async () => {
    await using slow = await openChat({ config: { http: { stream_status_ms: 10 } } })
    const words = byHand()
    slow.fake.script({ text: words.text })
    const [id] = [slow.agent]
    const answer = await slow.post(`/api/agents/${id}/message/stream`, { message: 'hi' })
    expect([answer.status, answer.headers.get('x-turn-id')]).toEqual([200, expect.any(String)])
    words.say('late')
    words.end()
    expect(parseEvents(await answer.text())).toMatchObject([{ event: 'chunk' }, { event: 'done' }])
  })
})

describe('a stream for an EventSource, which can read no status', () => {
  const events = (agent: string, more = '', headers: Record<string, string> = {}) =>
    stage.host.fetch(`/api/agents/${agent}/stream?message=hi${more}`, { headers })
  const turns = async (agent: string) => (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns

  it('tells its id at once, however long the model takes, and what fails in an event', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text }, { status: 400 })
    const answer = await events(agent)
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader?.read())?.value).toBe(`id: ${answer.headers.get('x-turn-id')}\n\n`)
    await reader?.cancel()
    words.end()
    const failed = await events(agent)
    expect(failed.status).toBe(200)
    expect(parseEvents(await failed.text())).toMatchObject([
      { event: 'error', data: { error: { code: 'internal_error' } } },
    ])
  })

  it('that loses its line before it has the id reads the answer again with its key, and sends nothing twice', async () => {
    const agent = await spawn()
    const asked = stage.fake.requests.length
    const words = byHand()
    stage.fake.script({ text: words.text })
    const lost = new AbortController()
    const first = stage.host
      .fetch(`/api/agents/${agent}/stream?message=hi&idempotency_key=k1`, { signal: lost.signal })
      .catch((error: unknown) => error)
    await stage.fake.request(asked)
    lost.abort()
    await first
    const again = await events(agent, '&idempotency_key=k1')
    const id = again.headers.get('x-turn-id') ?? ''
    words.say('once')
    words.end()
    expect(parseEvents(await again.text())).toMatchObject([
      { event: 'chunk', data: { content: 'once' } },
      { event: 'done', data: { turn_id: id } },
    ])
    expect((await events(agent, '&idempotency_key=k1', { 'last-event-id': id })).status).toBe(204)
    const whole = parseEvents(await (await events(agent, '&idempotency_key=k1')).text())
    expect(whole.map(({ event }) => event)).toEqual(['chunk', 'done'])
    const together = await Promise.all([1, 2, 3].map(() => events(agent, '&idempotency_key=k2')))
    expect(new Set(together.map(({ headers }) => headers.get('x-turn-id'))).size).toBe(1)
    await Promise.all(together.map((one) => one.text()))
    expect(await turns(agent)).toHaveLength(2)
    expect(stage.fake.requests.length - asked).toBe(2)
    expect((await stage.host.fetch(`/api/agents/${agent}/stream?message=other&idempotency_key=k1`)).status).toBe(409)
    expect((await events(agent, '&idempotency_key=')).status).toBe(400)
  })

  it('whose turn failed hears so again with its key', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    for (let n = 0; n < 2; n++) {
      const answer = await events(agent, '&idempotency_key=k3')
      expect(answer.status).toBe(200)
      expect(parseEvents(await answer.text()).at(-1)?.event).toBe('error')
    }
    expect(await turns(agent)).toHaveLength(1)
  })
})
