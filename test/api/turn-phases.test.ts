import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({
    config: {
      http: { stream_status_ms: 10 },
      plugins: { providers: { tries: 3, back_off_min_ms: 1, back_off_max_ms: 5, retry_after_max_ms: 60_000 } },
    },
  })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

describe('what a turn waits for', () => {
  it.each([
    ['seconds', (): string => '40'],
    ['a date', (): string => new Date(Date.now() + 40_000).toUTCString()],
  ] as const)(
    'for so many %s is said while its provider is asked again later: in the stream and in its status',
    async (name: string, after: () => string) => {
      const before = Date.now()
      const agent = await stage.spawn(`phases-${name.length}`)
      stage.fake.script({ status: 503, headers: { 'retry-after': after() } })
      const abort = new AbortController()
      const answer = await stage.post(
        `/api/agents/${agent}/message/stream`,
        { message: 'hello' },
        { signal: abort.signal },
      )
      const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
      const [first] = parseEvents((await reader?.read())?.value ?? '')
      expect(first).toMatchObject({
        event: 'phase',
        data: { type: 'phase', phase: 'retrying', attempt: 2, detail: expect.stringContaining('503') },
      })
      const retryAt = Date.parse(first?.data.retry_at)
      expect(retryAt).toBeGreaterThan(before + 30_000)
      expect(retryAt).toBeLessThan(Date.now() + 41_000)
      const { body } = await stage.host.json('GET', `/api/turns/${answer.headers.get('x-turn-id')}`)
      expect(body).toMatchObject({
        state: 'running',
        phase: { phase: 'retrying', attempt: 2, retry_at: first?.data.retry_at, since: expect.any(String) },
      })
      abort.abort()
      await stage.post(`/api/agents/${agent}/stop`)
    },
  )

  it('is said when the wait is over, and nothing of it in the usual course', async () => {
    const agent = await stage.spawn('usual')
    const stream = async () =>
      parseEvents(await (await stage.post(`/api/agents/${agent}/message/stream`, { message: 'hello' })).text())
    stage.fake.script({ status: 503 }, { text: 'there' })
    expect((await stream()).map(({ event, data }) => data.phase ?? event)).toEqual([
      'retrying',
      'waiting_for_model',
      'chunk',
      'done',
    ])
    stage.fake.script({ text: 'there' })
    expect((await stream()).map(({ event }) => event)).toEqual(['chunk', 'done'])
  })
})
