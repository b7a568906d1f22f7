import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (): Promise<string> => stage.spawn(`chat-${serial++}`)
const nobody = '00000000-0000-4000-8000-000000000000'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('POST /api/agents/{id}/message', () => {
  it('answers with the text, the tokens, the iterations, the cost and where it is kept', async () => {
    const { status, body } = await stage.host.json('POST', `/api/agents/${await spawn()}/message`, { message: 'hi' })
    expect(status).toBe(200)
    expect(body).toEqual({
      response: 'Hello from the fake.',
      input_tokens: 10,
      output_tokens: 20,
      iterations: 1,
      cost_usd: null,
      session_id: expect.stringMatching(uuid),
      turn_id: expect.stringMatching(uuid),
      provider: 'openai',
      model: 'fake-1',
      stop: 'done',
      context_pressure: 'low',
    })
  })

  it.each([
    {},
    { message: '' },
    { message: '  \n' },
    { message: 5 },
    { message: null },
    { message: ['a'] },
    { message: { text: 'a' } },
    [],
    'text',
    { message: 'x', session_id: 'no' },
  ])('%j is 400', async (body) => {
    const { status, body: answer } = await stage.host.json('POST', `/api/agents/${stage.agent}/message`, body)
    expect(status).toBe(400)
    expect(answer.error.code).toBe('invalid_request')
  })
  it('null for what may be left out is the same as leaving it out', async () => {
    const { status, body } = await stage.host.json('POST', `/api/agents/${await spawn()}/message`, {
      message: 'hi',
      session_id: null,
      thinking: null,
      attachments: null,
      response_format: null,
    })
    expect([status, body.response]).toEqual([200, 'Hello from the fake.'])
  })
  it('malformed JSON is 400, an id that is none is 400, an unknown agent is 404', async () => {
    expect((await stage.post(`/api/agents/${stage.agent}/message`, undefined, { body: '{"message":' })).status).toBe(
      400,
    )
    expect((await stage.host.json('POST', '/api/agents/not-a-uuid/message', { message: 'x' })).status).toBe(400)
    const { status, body } = await stage.host.json('POST', `/api/agents/${nobody}/message`, { message: 'x' })
    expect([status, body.error.code]).toEqual([404, 'agent_not_found'])
  })
  it('a message over 100,000 characters or 256 KiB is 413 and leaves no trace', async () => {
    const agent = await spawn()
    for (const message of ['a'.repeat(100_001), '世'.repeat(99_000)]) {
      const { status, body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message })
      expect([status, body.error.code]).toEqual([413, 'payload_too_large'])
    }
    expect(
      (await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'a'.repeat(100_000) })).status,
    ).toBe(200)
    expect((await stage.session(agent)).message_count).toBe(2)
  })
})

describe('sessions', () => {
  it('GET session of an agent that was never spoken to is empty', async () => {
    const agent = await spawn()
    expect((await stage.host.json('GET', `/api/agents/${agent}/session`)).body).toMatchObject({
      session_id: expect.stringMatching(uuid),
      agent_id: agent,
      message_count: 0,
      context_window_tokens: 0,
      messages: [],
    })
    expect((await stage.host.json('GET', `/api/agents/${nobody}/session`)).status).toBe(404)
  })
  it('GET session gives the newest page and pages back', async () => {
    const agent = await spawn()
    for (let n = 0; n < 4; n++) await stage.host.json('POST', `/api/agents/${agent}/message`, { message: `m${n}` })
    const { body: newest } = await stage.host.json('GET', `/api/agents/${agent}/session?limit=3`)
    expect(newest.message_count).toBe(8)
    expect(newest.context_window_tokens).toBeGreaterThan(20)
    expect(newest.messages.map(({ role, content }: { role: string; content: string }) => `${role} ${content}`)).toEqual(
      ['Assistant Hello from the fake.', 'User m3', 'Assistant Hello from the fake.'],
    )
    const { body: older } = await stage.host.json(
      'GET',
      `/api/agents/${agent}/session?limit=3&before=${newest.messages[0].id}`,
    )
    expect(older.messages.map(({ content }: { content: string }) => content)).toEqual([
      'm1',
      'Hello from the fake.',
      'm2',
    ])
    for (const limit of ['0', '-1', 'x', '1001', '1e3'])
      expect((await stage.host.json('GET', `/api/agents/${agent}/session?limit=${limit}`)).status).toBe(400)
  })
  it('a new session becomes the active one, and switching goes back', async () => {
    const agent = await spawn()
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'old' })
    const { session_id: old } = await stage.session(agent)
    const created = await stage.host.json('POST', `/api/agents/${agent}/sessions`, { label: 'Plans for May' })
    expect(created).toMatchObject({
      status: 201,
      body: { session_id: expect.stringMatching(uuid), label: 'Plans for May' },
    })
    const list = (await stage.host.json('GET', `/api/agents/${agent}/sessions`)).body.sessions
    expect(
      list
        .map(({ session_id, message_count, label, active }: Record<string, unknown>) => [
          session_id,
          message_count,
          label,
          active,
        ])
        .toSorted((a: unknown[], b: unknown[]) => Number(a[1]) - Number(b[1])),
    ).toEqual([
      [created.body.session_id, 0, 'Plans for May', true],
      [old, 2, null, false],
    ])
    expect((await stage.session(agent)).message_count).toBe(0)
    expect((await stage.host.json('POST', `/api/agents/${agent}/sessions/${old}/switch`)).body).toMatchObject({
      status: 'ok',
      message: 'Session switched',
    })
    expect((await stage.session(agent)).message_count).toBe(2)
    expect((await stage.host.json('POST', `/api/agents/${await spawn()}/sessions/${old}/switch`)).status).toBe(404)
    expect((await stage.host.json('POST', `/api/agents/${agent}/sessions/${nobody}/switch`)).status).toBe(404)
  })
  it.each(['', '   ', 'a\nb', 'x'.repeat(201), 5])('a label of %j is 400', async (label) => {
    expect((await stage.host.json('POST', `/api/agents/${stage.agent}/sessions`, { label })).status).toBe(400)
  })
  it('DELETE history empties the session and keeps its id', async () => {
    const agent = await spawn()
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'forget me' })
    const before = await stage.session(agent)
    expect((await stage.host.json('DELETE', `/api/agents/${agent}/history`)).body).toEqual({
      status: 'ok',
      message: 'All history cleared',
    })
    expect(await stage.session(agent)).toMatchObject({ session_id: before.session_id, message_count: 0, messages: [] })
  })
  it('DELETE history ends what is being answered, and nothing of it comes back', async () => {
    const agent = await spawn()
    const hand = byHand()
    stage.fake.script({ text: hand.text })
    const running = stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'forget me' })
    const waiting = stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'forget me too' })
    hand.say('half an ')
    const states = async () =>
      (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns.map(
        ({ state }: { state: string }) => state,
      )
    await expect.poll(async () => (await states()).toSorted()).toEqual(['queued', 'running'])
    await stage.host.json('DELETE', `/api/agents/${agent}/history`)
    expect([(await running).body.stop, (await waiting).body.stop]).toEqual(['cancelled', 'cancelled'])
    expect(await stage.session(agent)).toMatchObject({ message_count: 0, messages: [] })
    hand.end()
  })
  it('are listed with their agents, read and deleted by id', async () => {
    const agent = await spawn()
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hello' })
    const { session_id: id } = await stage.session(agent)
    const row = (await stage.host.json('GET', '/api/sessions')).body.sessions.find(
      (session: { id: string }) => session.id === id,
    )
    expect(row).toMatchObject({
      id,
      agent_id: agent,
      agent_name: expect.stringMatching(/^chat-/),
      message_count: 2,
      created_at: expect.stringMatching(/Z$/),
    })
    expect((await stage.host.json('GET', `/api/sessions/${id}`)).body).toMatchObject({
      session_id: id,
      message_count: 2,
    })
    expect((await stage.host.json('DELETE', `/api/sessions/${id}`)).body).toEqual({ status: 'deleted', session_id: id })
    expect((await stage.host.json('GET', `/api/sessions/${id}`)).status).toBe(404)
    expect((await stage.host.json('DELETE', `/api/sessions/${id}`)).status).toBe(404)
    expect((await stage.host.json('GET', '/api/sessions/nonsense')).status).toBe(400)
    expect((await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'again' })).status).toBe(200)
  })
  it('every change is in the audit trail', async () => {
    const agent = await spawn()
    await stage.host.json('POST', `/api/agents/${agent}/session/reset`)
    await stage.host.json('DELETE', `/api/agents/${agent}/history`)
    const { body } = await stage.host.json('GET', `/api/audit/recent?agent_id=${agent}&event_type=session_changed`)
    expect(body.entries).toHaveLength(2)
  })
})

describe('POST /api/agents/{id}/stop', () => {
  it('says that nothing runs, and does not know an unknown agent', async () => {
    expect((await stage.host.json('POST', `/api/agents/${stage.agent}/stop`)).body).toEqual({
      status: 'stopped',
      message: 'No active run',
    })
    expect((await stage.host.json('POST', `/api/agents/${nobody}/stop`)).status).toBe(404)
    expect((await stage.host.json('POST', '/api/agents/x/stop')).status).toBe(400)
  })
})
