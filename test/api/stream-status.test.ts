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
  ['GET /stream', (agent) => stage.host.fetch(`/api/agents/${agent}/stream?message=hi`)],
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
