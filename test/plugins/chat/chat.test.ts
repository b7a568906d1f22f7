import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat, parseEvents } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { chat: { queue_length: 30 } } } })
})
afterEach(() => {
  stage.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const spawn = (tools?: string[], more?: string): Promise<string> => stage.spawn(`agent-${serial++}`, tools, more)
const send = async (agent: string, message: string, more: object = {}) =>
  stage.host.json('POST', `/api/agents/${agent}/message`, { message, ...more })
const asked = (index: number) =>
  (stage.fake.requests[index]?.body.messages ?? []).map(
    ({ role, content }) => `${String(role)}: ${typeof content === 'string' ? content : JSON.stringify(content)}`,
  )
const audit = async (agent: string): Promise<{ event_type: string; details: string }[]> =>
  (await stage.host.json('GET', `/api/audit/recent?agent_id=${agent}&limit=500`)).body.entries

describe('a turn', () => {
  it('gives the model the conversation so far and keeps both sides of it', async () => {
    const agent = await spawn()
    await send(agent, 'first')
    const before = stage.fake.requests.length
    await send(agent, 'second')
    expect(asked(before).slice(-3)).toEqual(['user: first', 'assistant: Hello from the fake.', 'user: second'])
    const { messages, message_count } = await stage.session(agent)
    expect(message_count).toBe(4)
    expect(messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'User: first',
      'Assistant: Hello from the fake.',
      'User: second',
      'Assistant: Hello from the fake.',
    ])
  })

  it('writes what it did into the audit trail and what it used into the ledger', async () => {
    const agent = await spawn()
    const before = (await stage.host.json('GET', '/api/usage')).body
    await send(agent, 'count me')
    expect((await audit(agent)).map(({ event_type }) => event_type)).toEqual(['agent_spawned', 'agent_message'])
    const after = (await stage.host.json('GET', '/api/usage')).body
    expect(after.request_count - before.request_count).toBe(1)
    expect(after.total_input_tokens - before.total_input_tokens).toBe(10)
  })

  it('runs tools, records calls and results, and answers with all that was said', async () => {
    const agent = await spawn(['kv_set', 'kv_get'])
    stage.fake.script(
      { text: 'I store it.', calls: [{ name: 'kv_set', args: { key: 'colour', value: 'green' } }] },
      {
        calls: [
          { name: 'kv_get', args: { key: 'colour' } },
          { name: 'kv_get', args: { key: 'colour' } },
        ],
      },
      { text: 'It is green.' },
    )
    const { body } = await send(agent, 'remember green')
    expect(body).toMatchObject({ response: 'I store it.\n\nIt is green.', iterations: 3, stop: 'done' })
    const { messages } = await stage.session(agent)
    expect(
      messages.map(({ role, content, tools }) => [role, content, tools?.map(({ name, is_error }) => [name, is_error])]),
    ).toEqual([
      ['User', 'remember green', undefined],
      ['Assistant', 'I store it.', [['kv_set', false]]],
      [
        'Assistant',
        '',
        [
          ['kv_get', false],
          ['kv_get', false],
        ],
      ],
      ['Assistant', 'It is green.', undefined],
    ])
    expect(messages[2]?.tools?.[0]?.result).toContain('green')
    expect((await audit(agent)).filter(({ event_type }) => event_type === 'tool_invoked')).toHaveLength(3)
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv/colour`)).body).toMatchObject({
      value: 'green',
    })
  })

  it('tells the model about tools that are unknown, not granted or wrongly called', async () => {
    const agent = await spawn(['kv_get'])
    stage.fake.script(
      {
        calls: [
          { name: 'kv_set', args: { key: 'a', value: 1 } },
          { name: 'no_such', args: {} },
          { name: 'kv_get', args: '{"key":' },
          { name: 'kv_get', args: { wrong: 1 } },
        ],
      },
      { text: 'I see.' },
    )
    const before = stage.fake.requests.length
    expect((await send(agent, 'go')).body.response).toBe('I see.')
    expect(stage.fake.requests[before]?.body.tools?.map((tool) => tool.function?.name)).toEqual(['kv_get'])
    const results = (stage.fake.requests[before + 1]?.body.messages ?? [])
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => String(content))
    expect(results[0]).toContain('not granted')
    expect(results[1]).toContain('no tool "no_such"')
    expect(results[2]).toContain('not valid JSON')
    expect(results[3]).toContain('key')
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv/a`)).status).toBe(404)
  })

  it('ends at the cap of its manifest and says so', async () => {
    const agent = await spawn(['kv_set'], '[autonomous]\nmax_iterations = 2')
    let n = 0
    stage.fake.always(() => ({ calls: [{ name: 'kv_set', args: { key: 'n', value: n++ } }] }))
    const { body } = await send(agent, 'for ever')
    expect(body).toMatchObject({ stop: 'iterations', iterations: 2 })
    expect(body.response).toContain('Stopped after 2')
  })

  it('twenty messages at once to one session are answered one at a time, in the order they were taken', async () => {
    const agent = await spawn()
    let running = 0
    let most = 0
    stage.fake.always(async ({ body }) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return { text: `re ${String(body.messages?.at(-1)?.content)}` }
    })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => send(agent, `m${n}`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(answers.map(({ body }) => body.response)).toEqual(Array.from({ length: 20 }, (_, n) => `re m${n}`))
    expect(most).toBe(1)
    const { messages } = await stage.session(agent)
    expect(messages).toHaveLength(40)
    for (let at = 0; at < 40; at += 2) expect(messages[at + 1]?.content).toBe(`re ${messages[at]?.content}`)
  })

  it('two sessions of one agent are answered side by side', async () => {
    const agent = await spawn()
    const one = (await stage.host.json('POST', `/api/agents/${agent}/sessions`)).body.session_id
    const two = (await stage.host.json('POST', `/api/agents/${agent}/sessions`, { label: null })).body.session_id
    const both = Promise.withResolvers<void>()
    let waiting = 0
    stage.fake.always(async () => {
      if (++waiting === 2) both.resolve()
      await both.promise
      return { text: 'side by side' }
    })
    const answers = await Promise.all([send(agent, 'a', { session_id: one }), send(agent, 'b', { session_id: two })])
    expect(answers.map(({ body }) => body.session_id)).toEqual([one, two])
    expect((await stage.session(agent)).session_id).toBe(two)
  })

  it('a session of another agent is not found', async () => {
    const [mine, other] = [await spawn(), await spawn()]
    await send(other, 'hello')
    const foreign = (await stage.session(other)).session_id
    const { status, body } = await send(mine, 'let me in', { session_id: foreign })
    expect(status).toBe(404)
    expect(body.error.code).toBe('session_not_found')
  })

  it('a full line refuses the next message and loses none of those it took', async () => {
    const agent = await spawn()
    const gate = Promise.withResolvers<void>()
    stage.fake.always(async () => {
      await gate.promise
      return { text: 'late' }
    })
    const sent = Array.from({ length: 31 }, (_, n) => send(agent, `m${n}`))
    const refused = await Promise.race(sent)
    expect(refused.status).toBe(429)
    expect(refused.body.error).toContain('30 messages waiting')
    expect(refused.headers.get('retry-after')).toBe('5')
    gate.resolve()
    expect((await Promise.all(sent)).map(({ status }) => status).toSorted()).toEqual([...Array(30).fill(200), 429])
  })
})

describe('stopping', () => {
  it('keeps what was said, marked, and answers whoever waits', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const stream = await stage.post(`/api/agents/${agent}/message/stream`, { message: 'tell me' })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    words.say('Once upon')
    let read = ''
    while (!read.includes('Once upon')) read += (await reader?.read())?.value ?? ''
    const { body } = await stage.host.json('POST', `/api/agents/${agent}/stop`)
    expect(body).toEqual({ status: 'stopped', message: 'Agent run cancelled' })
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) read += piece.value
    expect(parseEvents(read).at(-1)).toMatchObject({ event: 'done', data: { done: true, stop: 'cancelled' } })
    expect((await stage.session(agent)).messages.at(-1)).toMatchObject({
      role: 'Assistant',
      content: 'Once upon',
      mark: 'cancelled',
    })
    words.end()
    expect((await stage.host.json('POST', `/api/agents/${agent}/stop`)).body).toEqual({
      status: 'stopped',
      message: 'No active run',
    })
  })

  it('lets the next message go on from there', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const first = send(agent, 'one')
    await stage.fake.request(stage.fake.requests.length)
    const second = send(agent, 'two')
    await stage.host.json('POST', `/api/agents/${agent}/stop`)
    expect((await first).body.stop).toBe('cancelled')
    expect((await second).body).toMatchObject({ stop: 'done', response: 'Hello from the fake.' })
    words.end()
  })

  it('resetting the session cancels its turns and leaves an empty one', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const running = send(agent, 'one')
    const queued = send(agent, 'two')
    await stage.fake.request(stage.fake.requests.length)
    const { body } = await stage.host.json('POST', `/api/agents/${agent}/session/reset`)
    expect(body).toEqual({ status: 'reset', agent_id: agent, new_session_id: expect.any(String) })
    expect((await Promise.all([running, queued])).map((answer) => answer.body.stop)).toEqual(['cancelled', 'cancelled'])
    expect(await stage.session(agent)).toMatchObject({
      session_id: body.new_session_id,
      message_count: 0,
      messages: [],
    })
    words.end()
  })

  it('killing the agent ends its turn and removes its rows', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const running = send(agent, 'one')
    await stage.fake.request(stage.fake.requests.length)
    const { session_id: session } = await stage.session(agent)
    expect((await stage.host.json('DELETE', `/api/agents/${agent}`)).status).toBe(200)
    expect((await running).status).toBe(200)
    expect((await stage.host.json('GET', `/api/sessions/${session}`)).status).toBe(404)
    words.end()
  })
})

describe('a client that disconnects', () => {
  it('stops nothing that was accepted', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const abort = new AbortController()
    const index = stage.fake.requests.length
    const stream = await stage.post(
      `/api/agents/${agent}/message/stream`,
      { message: 'go on without me' },
      { signal: abort.signal },
    )
    expect(stream.status).toBe(200)
    const { closed } = await stage.fake.request(index)
    abort.abort()
    words.say('All', ' the same.')
    words.end()
    expect(await closed).toBe(true)
    // The next message of the session is answered after that turn.
    await send(agent, 'still there?')
    expect((await stage.session(agent)).messages[1]).toMatchObject({ role: 'Assistant', content: 'All the same.' })
  })
})
