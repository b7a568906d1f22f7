import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (): Promise<string> => stage.spawn(`turns-${serial++}`)
const nobody = '00000000-0000-4000-8000-000000000000'
const turn = async (agent: string, id: string) =>
  (await stage.host.json('GET', `/api/agents/${agent}/turns/${id}`)).body

describe('where is my message?', () => {
  it('a stream that is left says in its first event where to look, and its answer is there afterwards', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const abort = new AbortController()
    const response = await stage.post(
      `/api/agents/${agent}/message/stream`,
      { message: 'go on without me' },
      { signal: abort.signal },
    )
    const named = response.headers.get('x-turn-id')
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    words.say('Once')
    const first = parseEvents((await reader?.read())?.value ?? '')[0]?.data
    expect(first).toMatchObject({ content: 'Once', done: false, turn_id: named })
    abort.abort()
    expect(await turn(agent, first.turn_id)).toMatchObject({
      state: 'running',
      text: 'Once',
      usage: null,
      error: null,
      ahead: [],
    })
    const { body: queue } = await stage.host.json('GET', `/api/agents/${agent}/turns`)
    expect(queue.turns).toMatchObject([{ turn_id: first.turn_id, state: 'running', entry_point: 'sse' }])
    const next = stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'next' })
    words.say(' upon a time')
    words.end()
    await next
    expect(await turn(agent, first.turn_id)).toEqual({
      turn_id: first.turn_id,
      agent_id: agent,
      session_id: expect.any(String),
      entry_point: 'sse',
      state: 'done',
      text: 'Once upon a time',
      iterations: 1,
      usage: { input_tokens: 10, output_tokens: expect.any(Number) },
      cost_usd: null,
      provider: 'openai',
      model: 'fake-1',
      error: null,
      failure: null,
      phase: null,
      created_at: expect.stringMatching(/Z$/),
      ahead: [],
    })
    expect((await stage.host.json('GET', `/api/turns/${first.turn_id}`)).body).toEqual(await turn(agent, first.turn_id))
  })
  it('one that waits says behind which', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const first = stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'first' })
    await stage.fake.request(index)
    // Its header comes while it waits, long before its first event.
    const second = stage.post(`/api/agents/${agent}/message/stream`, { message: 'second' })
    const waiting = (await second).headers.get('x-turn-id')
    let turns: { turn_id: string; state: string; ahead: string[] }[] = []
    while (turns.length < 2) turns = (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns
    expect(turns.map(({ state }) => state)).toEqual(['queued', 'running'])
    expect(turns[0]?.turn_id).toBe(waiting)
    expect(turns[0]?.ahead).toEqual([turns[1]?.turn_id])
    words.end()
    await Promise.all([first, (await second).text()])
    expect((await stage.host.json('GET', `/api/agents/${agent}/turns?limit=1`)).body.turns).toMatchObject([
      { state: 'done', ahead: [] },
    ])
  })
  it('one that failed says why', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 401 })
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'x' })
    const { body } = await stage.host.json('GET', `/api/agents/${agent}/turns`)
    expect(await turn(agent, body.turns[0].turn_id)).toMatchObject({
      state: 'failed',
      error: expect.stringContaining('openai'),
    })
  })
  it('what is not there is 404, and what is no id is 400', async () => {
    const agent = await spawn()
    for (const [path, status] of [
      [`/api/agents/${agent}/turns/${nobody}`, 404],
      [`/api/agents/${nobody}/turns/${nobody}`, 404],
      [`/api/turns/${nobody}`, 404],
      [`/api/agents/${agent}/turns/x`, 400],
      ['/api/turns/x', 400],
      [`/api/agents/${agent}/turns?limit=0`, 400],
    ] as const) {
      expect((await stage.host.json('GET', path)).status).toBe(status)
    }
    const { body } = await stage.host.json('POST', `/api/agents/${await spawn()}/message`, { message: 'x' })
    expect((await stage.host.json('GET', `/api/agents/${agent}/turns/${body.turn_id}`)).status).toBe(404)
  })
})

describe('Idempotency-Key on messages', () => {
  const send = (agent: string, key: string, body: unknown = { message: 'hello' }, path = 'message') =>
    stage.post(`/api/agents/${agent}/${path}`, body, {
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
    })
  it('fifty at once are one turn and one answer', async () => {
    const agent = await spawn()
    const before = stage.fake.requests.length
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const answer = await send(agent, 'k')
        return { status: answer.status, text: await answer.text() }
      }),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(stage.fake.requests.length - before).toBe(1)
    expect((await stage.session(agent)).message_count).toBe(2)
    expect((await send(agent, 'k', { message: 'something else' })).status).toBe(409)
    expect((await send(await spawn(), 'k')).status).toBe(200)
  })
  it('a stream is told again: as it goes on while it runs, whole when it is over', async () => {
    const agent = await spawn()
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const abort = new AbortController()
    const left = await stage.post(
      `/api/agents/${agent}/message/stream`,
      { message: 'go' },
      { signal: abort.signal, headers: { 'content-type': 'application/json', 'idempotency-key': 's' } },
    )
    await stage.fake.request(index)
    words.say('Hello ')
    abort.abort()
    void left
    const again = await send(agent, 's', { message: 'go' }, 'message/stream')
    words.say('again')
    words.end()
    const chunks = (text: string): string =>
      parseEvents(text)
        .filter(({ event }) => event === 'chunk')
        .map(({ data }) => data.content)
        .join('')
    expect(chunks(await again.text())).toBe('Hello again')
    const late = await send(agent, 's', { message: 'go' }, 'message/stream')
    expect(late.headers.get('idempotent-replayed')).toBe('true')
    const events = parseEvents(await late.text())
    expect(events).toMatchObject([
      { event: 'chunk', data: { content: 'Hello again', done: false } },
      { event: 'done', data: { done: true, usage: { input_tokens: 10 } } },
    ])
    expect(stage.fake.requests.length - index).toBe(1)
  })
  it('a failed turn fails again, and a refused one may be tried again', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 401 })
    const first = await send(agent, 'f')
    const second = await send(agent, 'f')
    expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([500, 500, 'true'])
    await stage.host.json('POST', '/api/agents/bulk/stop', { agent_ids: [agent] })
    expect((await send(agent, 'r')).status).toBe(409)
    await stage.host.json('POST', '/api/agents/bulk/start', { agent_ids: [agent] })
    expect((await send(agent, 'r')).status).toBe(200)
  })
  it('a spawn is made once', async () => {
    const spawning = () =>
      stage.post(
        '/api/agents',
        { manifest_toml: 'name = "once"\n' },
        { headers: { 'content-type': 'application/json', 'idempotency-key': 'once' } },
      )
    const answers = await Promise.all([spawning(), spawning(), spawning()])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1)
  })
  it('a key left by a process that died is resolved by the turn it made', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises')
    const { tmpdir } = await import('node:os')
    const { join } = await import('node:path')
    const home = await mkdtemp(join(tmpdir(), 'svc-test-'))
    try {
      let agent: string
      let turnId: string
      {
        await using first = await openChat({ home, fake: stage.fake })
        agent = first.agent
        const answer = await first.post(
          `/api/agents/${agent}/message`,
          { message: 'hello' },
          { headers: { 'content-type': 'application/json', 'idempotency-key': 'k' } },
        )
        turnId = ((await answer.json()) as { turn_id: string }).turn_id
      }
      const { default: Sqlite } = await import('better-sqlite3')
      const file = new Sqlite(join(home, 'data', 'svc.db'))
      // As it stands when the process is killed between the turn's end and the answer's.
      expect(file.prepare("UPDATE core_idempotency SET state = 'open', status = NULL, body = NULL").run().changes).toBe(
        1,
      )
      file.close()
      await using second = await openChat({ home, fake: stage.fake })
      const before = stage.fake.requests.length
      const answer = await second.post(
        `/api/agents/${agent}/message`,
        { message: 'hello' },
        { headers: { 'content-type': 'application/json', 'idempotency-key': 'k' } },
      )
      expect(await answer.json()).toMatchObject({
        response: 'Hello from the fake.',
        turn_id: turnId,
        input_tokens: 10,
        model: 'fake-1',
      })
      expect(stage.fake.requests.length).toBe(before)
      expect((await second.session(agent)).message_count).toBe(2)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
