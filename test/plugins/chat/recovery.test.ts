import Sqlite from 'better-sqlite3'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Json } from '../../support/json.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'

let fake: FakeProvider
let home: string
beforeAll(async () => {
  fake = await startFakeProvider()
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
})
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-recovery-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

/** Makes the home look as a process leaves it that dies in the middle of a turn. */
function die(facts: {
  readonly agent: string
  readonly session: string
  readonly turn: string
  readonly entryPoint: string
  readonly onCrash: 'resume' | 'interrupt'
  readonly calls?: readonly {
    readonly id: string
    readonly tool: string
    readonly args: unknown
    readonly receipt?: string
  }[]
}): void {
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  const at = '2026-01-01T00:00:00.000Z'
  const { agent, session, turn, entryPoint, onCrash, calls = [] } = facts
  db.prepare(
    'INSERT INTO sessions_session (id, agent_id, message_count, created_at) VALUES (?, ?, 0, ?) ON CONFLICT DO NOTHING',
  ).run(session, agent, at)
  const seq = db
    .prepare('SELECT coalesce(max(turn_seq), 0) + 1 FROM sessions_message WHERE session_id = ?')
    .pluck()
    .get(session)
  const message = db.prepare(
    `INSERT INTO sessions_message (session_id, turn_seq, seq, id, turn_id, role, blocks, chars, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, 10, ?)`,
  )
  message.run(session, seq, 1, `${turn}-1`, turn, 'user', JSON.stringify([{ type: 'text', text: 'set it' }]), at)
  db.prepare(
    `INSERT INTO journal_turn
        (id, agent_id, session_id, entry_point, state, on_crash, options, owner, created_at, updated_at)
      VALUES (?, ?, ?, ?, 'running', ?, '{}', 'dead', ?, ?)`,
  ).run(turn, agent, session, entryPoint, onCrash, at, at)
  if (calls.length > 0) {
    message.run(
      session,
      seq,
      2,
      `${turn}-2`,
      turn,
      'assistant',
      JSON.stringify(calls.map(({ id, tool, args }) => ({ type: 'call', id, tool, args }))),
      at,
    )
    const effect = db.prepare(
      `INSERT INTO journal_effect (key, turn_id, kind, name, state, input, result, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    for (const { id, tool, args, receipt } of calls)
      effect.run(
        `${turn}:${id}`,
        turn,
        'tool',
        tool,
        receipt === undefined ? 'intent' : 'done',
        JSON.stringify(args),
        receipt ?? null,
        at,
      )
  }
  db.prepare(
    `UPDATE sessions_session SET
        appended = (SELECT max(turn_seq) + 1 FROM sessions_message WHERE session_id = ?) + appended,
        fingerprint = fingerprint + 1
      WHERE id = ?`,
  ).run(session, session)
  db.close()
}
async function firstBoot(): Promise<{ agent: string; session: string }> {
  await using stage = await openChat({ home, fake })
  return { agent: stage.agent, session: (await stage.session()).session_id }
}
function read<T>(sql: string): T[] {
  const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
  try {
    return db.prepare(sql).all() as T[]
  } finally {
    db.close()
  }
}

describe('after a crash', () => {
  it('a turn whose caller is gone is marked as interrupted, where everyone looks', async () => {
    const { agent, session } = await firstBoot()
    die({ agent, session, turn: 't1', entryPoint: 'rest', onCrash: 'interrupt' })
    await using stage = await openChat({ home, fake })
    const { messages } = await stage.session()
    expect(messages.map(({ role, mark }) => [role, mark])).toEqual([
      ['User', undefined],
      ['Assistant', 'interrupted'],
    ])
    expect(messages[1]?.content).toContain('Interrupted')
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=turn_interrupted')
    expect(body.entries).toHaveLength(1)
    expect((await stage.host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
    expect(read<{ state: string }>("SELECT state FROM journal_turn WHERE id = 't1'")).toEqual([
      { state: 'interrupted' },
    ])
    const answer = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'and now?' })
    expect(answer.status).toBe(200)
  })

  it('an interrupted turn with open calls gets a result for each, once', async () => {
    const { agent, session } = await firstBoot()
    die({
      agent,
      session,
      turn: 't1',
      entryPoint: 'sse',
      onCrash: 'interrupt',
      calls: [
        {
          id: 'a',
          tool: 'kv_set',
          args: { key: 'a', value: 1 },
          receipt: JSON.stringify({ text: 'stored a', failed: false }),
        },
        { id: 'b', tool: 'kv_set', args: { key: 'b', value: 1 } },
      ],
    })
    {
      await using stage = await openChat({ home, fake })
      await stage.session()
    }
    await using stage = await openChat({ home, fake })
    const { messages } = await stage.session()
    expect(messages).toHaveLength(3)
    expect(messages[1]?.tools?.map(({ result, is_error }) => [result?.slice(0, 8), is_error])).toEqual([
      ['stored a', false],
      ['unknown:', true],
    ])
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv/b`)).status).toBe(404)
  })

  it('a turn of an asynchronous entry point goes on from its last step, and no tool runs twice', async () => {
    const { agent, session } = await firstBoot()
    die({
      agent,
      session,
      turn: 't2',
      entryPoint: 'channel',
      onCrash: 'resume',
      calls: [
        {
          id: 'a',
          tool: 'kv_set',
          args: { key: 'a', value: 1 },
          receipt: JSON.stringify({ text: 'stored a', failed: false }),
        },
        { id: 'b', tool: 'kv_set', args: { key: 'b', value: 1 } },
      ],
    })
    const index = fake.requests.length
    fake.script({ text: 'I went on.' })
    await using stage = await openChat({ home, fake })
    const request = await fake.request(index)
    const told = (request.body.messages ?? [])
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => String(content))
    expect(told[0]).toBe('stored a')
    expect(told[1]).toContain('unknown')
    // A message of the same session is answered after the turn that goes on.
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'then?' })
    const { messages } = await stage.session()
    expect(messages[2]).toMatchObject({ role: 'Assistant', content: 'I went on.' })
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv`)).body.kv_pairs).toEqual([])
    expect(read<{ key: string; state: string }>('SELECT key, state FROM journal_effect ORDER BY key')).toEqual([
      { key: 't2:a', state: 'done' },
      { key: 't2:b', state: 'unknown' },
    ])
    expect(read<{ state: string }>("SELECT state FROM journal_turn WHERE id = 't2'")).toEqual([{ state: 'done' }])
  })

  it('a call that reads is made again, and none after one of unknown outcome', async () => {
    const { agent, session } = await firstBoot()
    const entry = { agent, session, entryPoint: 'channel', onCrash: 'resume' } as const
    const set = (id: string) => ({ id, tool: 'kv_set', args: { key: id, value: 1 } })
    die({ ...entry, turn: 't4', calls: [set('a'), set('b')] })
    die({ ...entry, turn: 't5', calls: [{ id: 'c', tool: 'kv_get', args: { key: 'a' } }] })
    for (const text of ['One.', 'Two.']) fake.script({ text })
    const index = fake.requests.length
    {
      await using stage = await openChat({ home, fake })
      await fake.request(index + 1)
      await stage.session()
    }
    const told = fake.requests
      .slice(index)
      .map(({ body }) =>
        (body.messages ?? []).filter(({ role }) => role === 'tool').map(({ content }) => String(content)),
      )
    expect(told[0]).toEqual([expect.stringMatching(/^unknown:/), expect.stringMatching(/^not run:/)])
    expect(told[1]?.at(-1)).not.toMatch(/^unknown|^not run/)
    expect(read<{ key: string; state: string }>('SELECT key, state FROM journal_effect ORDER BY key')).toEqual([
      { key: 't4:a', state: 'unknown' },
      { key: 't4:b', state: 'failed' },
      { key: 't5:c', state: expect.stringMatching(/done|failed/) },
    ])
  })

  it('a turn of an agent that is gone fails and disturbs nobody', async () => {
    const { session } = await firstBoot()
    die({
      agent: '00000000-0000-4000-8000-000000000000',
      session: `${session}-gone`,
      turn: 't3',
      entryPoint: 'channel',
      onCrash: 'resume',
    })
    await using stage = await openChat({ home, fake })
    expect((await stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'hello' })).status).toBe(200)
    await expect
      .poll(() => read<{ state: string }>("SELECT state FROM journal_turn WHERE id = 't3'"))
      .toEqual([{ state: 'failed' }])
  })
})

describe('unloading the chat', () => {
  it('drains, then interrupts what still runs, keeps what was said and tells who waits', async () => {
    await using stage = await openChat({ home, fake, config: { plugins: { drain_ms: 100 } } })
    const words = byHand()
    fake.script({ text: words.text })
    const stream = await stage.post(`/api/agents/${stage.agent}/message/stream`, { message: 'long story' })
    const queued = stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'and then' })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    words.say('It began')
    let text = ''
    while (!text.includes('It began')) text += (await reader?.read())?.value ?? ''
    await stage.host.app.host.reload('chat')
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) text += piece.value
    expect(text).toContain('event: error')
    expect((await queued).status).toBe(503)
    const { messages } = await stage.session()
    expect(messages.map(({ role, mark }) => [role, mark])).toEqual([
      ['User', undefined],
      ['Assistant', 'interrupted'],
      ['User', undefined],
      ['Assistant', 'interrupted'],
    ])
    expect(messages[1]?.content).toBe('It began')
    expect(
      (await stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'hello again' })).status,
    ).toBe(200)
    words.end()
  })

  it('a message with an Idempotency-Key goes on at the next start, and the key gets its answer', async () => {
    const completion = { model: 'svc', messages: [{ role: 'user', content: 'by OpenAI' }] }
    const send = async (stage: ChatStage, path: string, body: object, key: string) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': key }
      const answer = await stage.host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
      return `${answer.status} ${await answer.text()}`
    }
    const words = byHand()
    const index = fake.requests.length
    fake.script({ text: words.text }, { text: words.text })
    let first: readonly string[]
    let path: string
    {
      await using stage = await openChat({ home, fake, config: { plugins: { drain_ms: 50 } } })
      path = `/api/agents/${stage.agent}/message`
      const other = await stage.spawn('other')
      const sent = [
        send(stage, path, { message: 'long story' }, 'a'),
        send(stage, '/v1/chat/completions', { ...completion, model: other }, 'b'),
      ]
      completion.model = other
      await fake.request(index + 1)
      await stage.host.app.host.unload('chat')
      first = await Promise.all(sent)
    }
    words.end()
    for (const answer of first) expect(answer).toMatch(/^503 .*goes on when it is back/)
    fake.script({ text: 'The end.' }, { text: 'The end.' })
    await using stage = await openChat({ home, fake })
    expect(await send(stage, path, { message: 'long story' }, 'a')).toMatch(/^200 .*The end/)
    expect(await send(stage, '/v1/chat/completions', completion, 'b')).toMatch(/^200 .*The end/)
    expect((await stage.session()).messages.map(({ content }) => content)).toEqual(['long story', 'The end.'])
  })

  it('the key of a message that was interrupted for good does not ask to be tried again', async () => {
    await using stage = await openChat({ home, fake })
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'old' }
    const send = () => stage.post(`/api/agents/${stage.agent}/message`, { message: 'one' }, { headers })
    expect((await send()).status).toBe(200)
    // As an earlier version left it, which did not go on with such a message.
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    db.exec(`UPDATE journal_turn SET state = 'interrupted'; UPDATE core_idempotency SET state = 'recall'`)
    db.close()
    const again = await send()
    expect(again.status).toBe(409)
    const { error } = (await again.json()) as Json
    expect(error.code).toBe('turn_failed')
    expect(error.message).toContain(`POST /api/turns/${error.details.turn_id}/retry`)
    expect((await stage.host.json('POST', `/api/turns/${error.details.turn_id}/retry`)).status).toBe(202)
  })

  it('a turn that ends within the drain is answered as if nothing had happened', async () => {
    await using stage = await openChat({ home, fake, config: { plugins: { drain_ms: 5000 } } })
    const words = byHand()
    const index = fake.requests.length
    fake.script({ text: words.text })
    const answer = stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'quick' })
    await fake.request(index)
    const reload = stage.host.app.host.reload('chat')
    words.say('done')
    words.end()
    expect(await answer).toMatchObject({ status: 200, body: { response: 'done' } })
    await reload
    expect((await stage.session()).messages.map(({ mark }) => mark)).toEqual([undefined, undefined])
  })
})

describe('a turn that waits for a person', () => {
  const manifest = '[metadata]\napproval = "always"\n'
  async function waiting(stage: Awaited<ReturnType<typeof openChat>>, agent: string) {
    const find = async () =>
      (await stage.host.json('GET', '/api/approvals')).body.approvals.find(
        (each: { agent_id: string; status: string }) => each.agent_id === agent && each.status === 'pending',
      )
    await expect.poll(find).toBeDefined()
    await expect
      .poll(async () => read<{ state: string }>(`SELECT state FROM journal_turn WHERE agent_id = '${agent}'`)[0]?.state)
      .toBe('waiting')
    return (await find()).id as string
  }

  it('goes on after a restart whatever its entry point, and the call is made once', async () => {
    let agent = ''
    {
      await using stage = await openChat({ home, fake, config: { plugins: { drain_ms: 50 } } })
      agent = await stage.spawn('careful', ['*'], manifest)
      fake.script({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] })
      // The connection ends with the service; the turn does not.
      const gone = stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'set it' }).catch(() => undefined)
      await waiting(stage, agent)
      await stage.host.stop()
      await gone
    }
    fake.script({ text: 'It is set.' })
    await using stage = await openChat({ home, fake })
    await stage.host.json('POST', `/api/approvals/${await waiting(stage, agent)}/approve`)
    await expect
      .poll(() => read<{ state: string }>(`SELECT state FROM journal_turn WHERE agent_id = '${agent}'`))
      .toEqual([{ state: 'done' }])
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv/a`)).body.value).toBe(1)
    const { messages } = await stage.session(agent)
    expect(messages.at(-1)?.content).toBe('It is set.')
    expect(messages.flatMap(({ tools = [] }) => tools)).toHaveLength(1)
  })

  it('is not let through while the chat or those who ask are replaced', async () => {
    await using stage = await openChat({ home, fake, config: { plugins: { drain_ms: 50 } } })
    const agent = await stage.spawn('careful', ['*'], manifest)
    fake.script({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }, { text: 'It was refused.' })
    void stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'set it' })
    const id = await waiting(stage, agent)
    await stage.host.app.host.reload('approvals')
    expect(await waiting(stage, agent)).toBe(id)
    await stage.host.app.host.reload('chat')
    expect(await waiting(stage, agent)).toBe(id)
    await stage.host.json('POST', `/api/approvals/${id}/reject`)
    await expect
      .poll(() => read<{ state: string }>(`SELECT state FROM journal_turn WHERE agent_id = '${agent}'`))
      .toEqual([{ state: 'done' }])
    expect((await stage.host.json('GET', `/api/memory/agents/${agent}/kv/a`)).status).toBe(404)
    expect((await stage.session(agent)).messages.at(-1)?.content).toBe('It was refused.')
  })
})
