import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
const NOBODY = '00000000-0000-4000-8000-000000000000'
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { sessions: { retention_days: 30, max_sessions_per_agent: 3 } } } })
  stage.fake.always(({ body }) => ({
    text: `heard ${(body.messages ?? [])
      .filter(({ role }) => role === 'user')
      .map(({ content }) => String(content))
      .join('|')}`,
  }))
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const spawn = () => stage.spawn(`of-sessions-${serial++}`)
const create = async (agent: string, body?: unknown) =>
  (await stage.host.json('POST', `/api/agents/${agent}/sessions`, body)).body.session_id as string
const say = async (agent: string, message: string, session_id?: string) =>
  (await stage.host.json('POST', `/api/agents/${agent}/message`, { message, ...(session_id ? { session_id } : {}) }))
    .body.response as string
const active = async (agent: string) => (await stage.session(agent)).session_id

describe('labels', () => {
  it('are set, found, changed and taken away', async () => {
    const agent = await spawn()
    const id = await active(agent)
    expect(
      (await stage.host.json('PUT', `/api/sessions/${id}/label`, { label: '  Tax 2026 - draft_1 ' })).body,
    ).toEqual({ status: 'updated', session_id: id, label: 'Tax 2026 - draft_1' })
    const found = await stage.host.json(
      'GET',
      `/api/agents/${agent}/sessions/by-label/${encodeURIComponent('Tax 2026 - draft_1')}`,
    )
    expect(found.body).toMatchObject({
      session_id: id,
      agent_id: agent,
      label: 'Tax 2026 - draft_1',
      message_count: 0,
      active: true,
    })
    expect((await stage.host.json('GET', `/api/sessions/${id}`)).body.label).toBe('Tax 2026 - draft_1')
    expect((await stage.host.json('PUT', `/api/sessions/${id}/label`, { label: null })).body.label).toBeNull()
    const gone = await stage.host.json(
      'GET',
      `/api/agents/${agent}/sessions/by-label/${encodeURIComponent('Tax 2026 - draft_1')}`,
    )
    expect([gone.status, gone.body.error.message]).toEqual([404, 'No session found with that label'])
  })
  it.each([
    '',
    '   ',
    'x'.repeat(201),
    '🪶'.repeat(201),
    'tab\there',
    'a\u0000b',
    'a\nb',
    'a\u009fb',
    '\ud800',
    7,
    undefined,
  ])('%j is refused and changes nothing', async (label) => {
    const id = await active(stage.agent)
    const { status, body } = await stage.host.json('PUT', `/api/sessions/${id}/label`, { label })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('label')])
    expect((await stage.host.json('GET', `/api/agents/${stage.agent}/session`)).body.label).toBeNull()
  })
  it.each([
    'ü'.repeat(172) + '語'.repeat(28),
    '🪶'.repeat(200),
    'Q3 / Q4: (draft) — 100% "sure"?',
    'a/b',
    'x;y',
    '../..',
    '50%25',
  ])('any text is taken and found again: %s', async (label) => {
    const agent = await spawn()
    const id = await active(agent)
    expect((await stage.host.json('PUT', `/api/sessions/${id}/label`, { label })).body).toMatchObject({ label })
    const found = await stage.host.json('GET', `/api/agents/${agent}/sessions/by-label/${encodeURIComponent(label)}`)
    expect([found.status, found.body.session_id]).toEqual([200, id])
  })
  it('are unique within an agent and free for another', async () => {
    const [one, two] = [await spawn(), await spawn()]
    await create(one, { label: 'work' })
    expect((await stage.host.json('POST', `/api/agents/${one}/sessions`, { label: 'work' })).status).toBe(409)
    expect((await stage.host.json('POST', `/api/agents/${two}/sessions`, { label: 'work' })).status).toBe(201)
    expect((await stage.host.json('GET', `/api/agents/${two}/sessions/by-label/work`)).body.agent_id).toBe(two)
  })
  it('of a session that is not there is 404, of a malformed id 400', async () => {
    expect((await stage.host.json('PUT', `/api/sessions/${NOBODY}/label`, { label: 'a' })).status).toBe(404)
    expect((await stage.host.json('PUT', '/api/sessions/nonsense/label', { label: 'a' })).status).toBe(400)
    expect((await stage.host.json('GET', `/api/agents/${NOBODY}/sessions/by-label/a`)).status).toBe(404)
  })
})

describe('an id written in capitals, as some languages write theirs', () => {
  it('is the same session and the same turn', async () => {
    const agent = await spawn()
    const id = await create(agent, {})
    await say(agent, 'first', id)
    expect(await say(agent, 'second', id.toUpperCase())).toBe('heard first|second')
    expect((await stage.host.json('GET', `/api/sessions/${id.toUpperCase()}`)).body).toMatchObject({
      session_id: id,
      message_count: 4,
    })
    const [turn] = (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns
    expect((await stage.host.json('GET', `/api/turns/${turn.turn_id.toUpperCase()}`)).body.turn_id).toBe(turn.turn_id)
  })
})

describe('sessions of one agent', () => {
  it('know nothing of each other', async () => {
    const agent = await spawn()
    const first = await active(agent)
    await say(agent, 'the code is 4711')
    const second = await create(agent, { label: null })
    expect(await say(agent, 'what is the code')).not.toContain('4711')
    expect((await stage.host.json('GET', `/api/sessions/${second}`)).body.message_count).toBe(2)
    await stage.host.json('POST', `/api/agents/${agent}/sessions/${first}/switch`)
    expect(await say(agent, 'and now')).toContain('4711')
    const { body } = await stage.host.json('GET', `/api/agents/${agent}/sessions`)
    expect(
      body.sessions.map((session: { session_id: string; active: boolean }) => [
        session.session_id === first,
        session.active,
      ]),
    ).toEqual(
      expect.arrayContaining([
        [true, true],
        [false, false],
      ]),
    )
  })
  it('run side by side, and two turns of one session never', async () => {
    const agent = await spawn()
    const [a, b] = [await active(agent), await create(agent)]
    const index = stage.fake.requests.length
    const [slow, other] = [byHand(), byHand()]
    stage.fake.script({ text: slow.text }, { text: other.text })
    const first = say(agent, 'slow', a)
    await stage.fake.request(index)
    const behind = say(agent, 'behind', a)
    const second = say(agent, 'aside', b)
    await stage.fake.request(index + 1)
    other.say('aside done')
    other.end()
    expect(await second).toBe('aside done')
    expect(stage.fake.requests).toHaveLength(index + 2)
    slow.say('slow done')
    slow.end()
    expect(await first).toBe('slow done')
    expect(await behind).toContain('behind')
  })
  it('do not answer for each other when one is deleted', async () => {
    const agent = await spawn()
    await say(agent, 'keep this')
    const kept = await active(agent)
    const gone = await create(agent)
    await say(agent, 'forget this')
    expect((await stage.host.json('DELETE', `/api/sessions/${gone}`)).body).toEqual({
      status: 'deleted',
      session_id: gone,
    })
    expect((await stage.host.json('GET', `/api/sessions/${gone}`)).status).toBe(404)
    expect((await stage.host.json('DELETE', `/api/sessions/${gone}`)).status).toBe(404)
    expect((await stage.host.json('GET', `/api/sessions/${kept}`)).body.messages).toHaveLength(2)
  })
})

describe('sessions of two agents', () => {
  it('leak nothing, whatever id is used', async () => {
    const [one, two] = [await spawn(), await spawn()]
    await say(one, 'the code is 0815')
    const of = await active(one)
    const taken = await stage.host.json('POST', `/api/agents/${two}/message`, {
      message: 'what is the code',
      session_id: of,
    })
    expect([taken.status, taken.body.error.code]).toEqual([404, 'session_not_found'])
    expect((await stage.host.json('POST', `/api/agents/${two}/sessions/${of}/switch`)).status).toBe(404)
    expect(await say(two, 'what is the code')).not.toContain('0815')
    const { body } = await stage.host.json('GET', `/api/agents/${two}/sessions`)
    expect(JSON.stringify(body)).not.toContain(of)
    expect((await stage.host.json('GET', `/api/sessions/${of}`)).body.messages).toHaveLength(2)
  })
  it('end with their agent, and only with theirs', async () => {
    const [one, two] = [await spawn(), await spawn()]
    await say(one, 'hello')
    await say(two, 'hello')
    const [gone, kept] = [await active(one), await active(two)]
    await stage.host.json('DELETE', `/api/agents/${one}`)
    expect((await stage.host.json('GET', `/api/sessions/${gone}`)).status).toBe(404)
    expect((await stage.host.json('GET', `/api/sessions/${kept}`)).body.messages).toHaveLength(2)
  })
})

describe('a session read in pages', () => {
  it('is whole, in order, without a message twice', async () => {
    const agent = await spawn()
    for (let n = 0; n < 6; n++) await say(agent, `m${n}`)
    const id = await active(agent)
    const seen: string[] = []
    const pages: boolean[] = []
    for (let before = ''; ;) {
      const { body } = await stage.host.json(
        'GET',
        `/api/sessions/${id}?limit=5${before === '' ? '' : `&before=${before}`}`,
      )
      pages.push(body.has_earlier)
      seen.unshift(
        ...body.messages.map((message: { role: string; content: string }) =>
          message.role === 'User' ? message.content : 'answer',
        ),
      )
      if (body.has_earlier === false) break
      before = body.messages[0].id
    }
    expect(pages).toEqual([true, true, false])
    expect(seen.filter((text) => text !== 'answer')).toEqual(['m0', 'm1', 'm2', 'm3', 'm4', 'm5'])
    expect(seen).toHaveLength(12)
    // As many as there are.
    expect((await stage.host.json('GET', `/api/sessions/${id}?limit=12`)).body.has_earlier).toBe(false)
    for (const limit of ['0', '-1', 'x', '100000'])
      expect((await stage.host.json('GET', `/api/sessions/${id}?limit=${limit}`)).status).toBe(400)
  })
})

describe('the alternate listing', () => {
  it('is the same list and the same session', async () => {
    const agent = await spawn()
    await say(agent, 'hello')
    const id = await active(agent)
    for (const path of ['sessions', `sessions/${id}`, `sessions/${NOBODY}`]) {
      const [there, here] = [
        await stage.host.json('GET', `/api/${path}`),
        await stage.host.json('GET', `/api/memory/${path}`),
      ]
      expect([here.status, here.body.sessions, here.body.messages]).toEqual([
        there.status,
        there.body.sessions,
        there.body.messages,
      ])
    }
  })
})

describe('the window of a session', () => {
  it('is counted with rules, tools and history, and grows with what is said', async () => {
    const agent = await stage.spawn(
      `of-sessions-${serial++}`,
      ['*'],
      '[model]\ncontext_window = 20000\nsystem_prompt = "Be brief."\n',
    )
    const before = (await stage.host.json('GET', `/api/agents/${agent}/session`)).body
    expect(before.context).toMatchObject({
      window: 20000,
      system: expect.any(Number),
      history: 0,
      pressure: expect.any(String),
    })
    expect(before.context.tools).toBeGreaterThan(100)
    await say(agent, 'word '.repeat(1000))
    const after = (await stage.host.json('GET', `/api/agents/${agent}/session`)).body
    expect(after.context_window_tokens - before.context_window_tokens).toBeGreaterThan(1000)
    expect(after.context.used).toBe(
      after.context_window_tokens + after.context.system + after.context.tools + after.context.memory,
    )
    expect([before.context.pressure, after.context.pressure]).not.toContain('critical')
  })
  it('costs more for a script that takes more tokens', async () => {
    const [latin, han] = [
      await stage.spawn(`of-sessions-${serial++}`, []),
      await stage.spawn(`of-sessions-${serial++}`, []),
    ]
    const index = stage.fake.requests.length
    stage.fake.script({ text: 'ok' }, { text: 'ok' })
    await say(latin, 'abcd'.repeat(500))
    await say(han, '漢字漢字'.repeat(500))
    expect(stage.fake.requests).toHaveLength(index + 2)
    const tokens = async (agent: string) =>
      (await stage.host.json('GET', `/api/agents/${agent}/session`)).body.context_window_tokens as number
    expect(await tokens(han)).toBeGreaterThan(2.5 * (await tokens(latin)))
  })
})

describe('POST /api/sessions/cleanup', () => {
  const edit = (sql: string, ...values: string[]): void => {
    const db = new Sqlite(join(stage.host.home, 'data', 'svc.db'))
    try {
      db.prepare(sql).run(...values)
    } finally {
      db.close()
    }
  }
  it('removes orphans, what nobody wrote to for long, and what is over the limit; never the active one', async () => {
    await stage.host.json('POST', '/api/sessions/cleanup')
    const agent = await spawn()
    const ids = [
      await active(agent),
      await create(agent),
      await create(agent),
      await create(agent),
      await create(agent),
    ]
    for (const [n, id] of ids.entries())
      edit(
        'UPDATE sessions_session SET created_at = ? WHERE id = ?',
        `${new Date(Date.now() - (ids.length - n) * 60_000).toISOString()}`,
        id ?? '',
      )
    const old = await spawn()
    const oldActive = await active(old)
    const oldOther = await create(old)
    await stage.host.json('POST', `/api/agents/${old}/sessions/${oldActive}/switch`)
    for (const id of [oldActive, oldOther])
      edit('UPDATE sessions_session SET created_at = ? WHERE id = ?', '2020-01-01T00:00:00.000Z', id)
    edit(
      'INSERT INTO sessions_session (id, agent_id, message_count, created_at) VALUES (?, ?, 0, ?)',
      NOBODY,
      NOBODY,
      new Date().toISOString(),
    )
    expect((await stage.host.json('POST', '/api/sessions/cleanup')).body).toEqual({ sessions_deleted: 4 })
    const left = async (id: string | undefined) => (await stage.host.json('GET', `/api/sessions/${id}`)).status
    expect(await Promise.all(ids.map(left))).toEqual([404, 404, 200, 200, 200])
    expect([await left(oldActive), await left(oldOther), await left(NOBODY)]).toEqual([200, 404, 404])
    expect((await stage.host.json('POST', '/api/sessions/cleanup')).body).toEqual({ sessions_deleted: 0 })
  })
})
