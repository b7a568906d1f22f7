import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (): Promise<string> => stage.spawn(`sse-${serial++}`)
const stream = async (agent: string, message: unknown) => {
  const response = await stage.post(`/api/agents/${agent}/message/stream`, { message })
  return { response, events: parseEvents(await response.text()) }
}

describe('POST /api/agents/{id}/message/stream', () => {
  it('sends chunks that add up to the answer, then done with the usage', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['Ein ', '"Wort"\n', 'mehr 世界'], gapMs: 5 })
    const { response, events } = await stream(agent, 'go')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const chunks = events.filter(({ event }) => event === 'chunk')
    expect(chunks.map(({ data }) => data.content).join('')).toBe('Ein "Wort"\nmehr 世界')
    expect(chunks.every(({ data }) => data.done === false)).toBe(true)
    expect(events.at(-1)).toMatchObject({
      event: 'done',
      data: { done: true, usage: { input_tokens: 10, output_tokens: expect.any(Number) } },
    })
    expect(events).toHaveLength(chunks.length + 1)
  })
  it('names tools when they start and gives their input when they have ended', async () => {
    const agent = await spawn()
    stage.fake.script({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }, { text: 'stored' })
    const { events } = await stream(agent, 'store')
    expect(events.map(({ event }) => event)).toEqual(['tool_use', 'tool_result', 'chunk', 'done'])
    expect(events[0]?.data).toMatchObject({ tool: 'kv_set' })
    expect(events[1]?.data).toMatchObject({ tool: 'kv_set', input: { key: 'a', value: 1 }, is_error: false })
  })
  it('refuses before the stream begins as any route does', async () => {
    for (const [path, body, status] of [
      ['x', { message: 'a' }, 400],
      [stage.agent, {}, 400],
      [stage.agent, { message: 'a'.repeat(100_001) }, 413],
      ['00000000-0000-4000-8000-000000000000', { message: 'a' }, 404],
    ] as const) {
      const response = await stage.post(`/api/agents/${path}/message/stream`, body)
      expect(response.status).toBe(status)
      expect(response.headers.get('content-type')).toMatch(/json/)
      expect(await response.json()).toHaveProperty('error.code')
    }
  })
  it('a failure underway is an error event and the end', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['half'], fault: 'cut' })
    const { events } = await stream(agent, 'go')
    expect(events.map(({ event }) => event)).toEqual(['chunk', 'error'])
    expect(events[1]?.data.error.message).toContain('openai')
  })
  it('a reader that does not read holds up nobody and misses nothing', async () => {
    const agent = await spawn()
    const words = Array.from({ length: 20_000 }, (_, n) => `word${n} `.padEnd(200, '.'))
    stage.fake.script({ text: words })
    const index = stage.fake.requests.length
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const onward = request(
        `${stage.host.url}/api/agents/${agent}/message/stream`,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        resolve,
      )
      onward.on('error', reject)
      onward.end('{"message":"much"}')
    })
    // Nothing is read of the answer until the model has said everything.
    const { closed } = await stage.fake.request(index)
    expect(await closed).toBe(true)
    expect((await stage.host.json('GET', '/api/health')).status).toBe(200)
    let text = ''
    answer.setEncoding('utf8')
    for await (const piece of answer) text += piece
    const events = parseEvents(text)
    expect(
      events
        .filter(({ event }) => event === 'chunk')
        .map(({ data }) => data.content)
        .join(''),
    ).toBe(words.join(''))
    expect(events.at(-1)?.event).toBe('done')
    expect(events.length).toBeLessThan(words.length)
  })
})

describe('GET /api/agents/{id}/stream', () => {
  it('takes the message in the body of the GET', async () => {
    const agent = await spawn()
    const text = await new Promise<string>((resolve, reject) => {
      const body = '{"message":"hello"}'
      const onward = request(
        `${stage.host.url}/api/agents/${agent}/stream`,
        { method: 'GET', headers: { 'content-type': 'application/json', 'content-length': body.length } },
        (answer) => {
          let read = ''
          answer.on('data', (piece) => {
            read += String(piece)
          })
          answer.on('end', () => resolve(read))
        },
      )
      onward.on('error', reject)
      onward.end(body)
    })
    expect(parseEvents(text).at(-1)?.event).toBe('done')
  })
  it('takes it in the query too, and wants one', async () => {
    const agent = await spawn()
    const response = await stage.host.fetch(`/api/agents/${agent}/stream?message=hello`)
    expect(parseEvents(await response.text()).at(-1)?.event).toBe('done')
    expect((await stage.host.fetch(`/api/agents/${agent}/stream`)).status).toBe(400)
    expect((await stage.host.fetch(`/api/agents/${agent}/stream?message=`)).status).toBe(400)
  })
  it('an EventSource, which comes back by itself when a stream ends, does not send its message again', async () => {
    for (const answer of [{ text: 'once' }, { text: ['half'], fault: 'cut' }] as const) {
      const agent = await spawn()
      stage.fake.script(answer)
      const first = await stage.host.fetch(`/api/agents/${agent}/stream?message=hello`)
      const id = /^id: (\S+)\n\n/.exec(await first.text())?.[1] ?? ''
      expect(id).toBe(first.headers.get('x-turn-id'))
      const asked = stage.fake.requests.length
      // 204 is what ends an EventSource.
      const again = await stage.host.fetch(`/api/agents/${agent}/stream?message=hello`, {
        headers: { 'last-event-id': id },
      })
      expect(again.status).toBe(204)
      expect(stage.fake.requests.length).toBe(asked)
      const { body } = await stage.host.json<{ turns: unknown[] }>('GET', `/api/agents/${agent}/turns`)
      expect(body.turns).toHaveLength(1)
    }
  })
  it('the id of a turn of another agent holds back nothing', async () => {
    const [agent, other] = [await spawn(), await spawn()]
    const first = await stage.host.fetch(`/api/agents/${other}/stream?message=hello`)
    await first.text()
    const response = await stage.host.fetch(`/api/agents/${agent}/stream?message=hello`, {
      headers: { 'last-event-id': first.headers.get('x-turn-id') ?? '' },
    })
    expect(response.status).toBe(200)
    expect(parseEvents(await response.text()).at(-1)?.event).toBe('done')
  })
})
