import Sqlite from 'better-sqlite3'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { startDaemon } from '../support/daemon.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { Json } from '../support/json.ts'

const providers = { breaker_failures: 1000, tries: 1 }
const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { providers } } })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (more = '', tools?: string[]): Promise<string> => stage.spawn(`retry-${serial++}`, tools, more)
const send = (agent: string, message: string, at = stage) =>
  at.host.json('POST', `/api/agents/${agent}/message`, { message })
const act = (id: string | undefined, what: 'retry' | 'drop', at = stage) =>
  at.host.json('POST', `/api/turns/${id}/${what}`)
const command = async (agent: string, text: string) =>
  (await stage.host.json('POST', `/api/agents/${agent}/commands`, { command: text })).body
const contents = async (agent: string, at = stage) => (await at.session(agent)).messages.map(({ content }) => content)
const told = (at = stage) => at.fake.requests.at(-1)?.body.messages?.filter(({ role }) => role !== 'system')
const copies = (text: string) => JSON.stringify(told()).split(text).length - 1
/** The text of an answer, once the turn is over. */
async function answered(turnId: string, at = stage): Promise<string> {
  return expect
    .poll(async () => (await at.host.json('GET', `/api/turns/${turnId}`)).body)
    .toMatchObject({ state: 'done' })
    .then(async () => (await at.host.json('GET', `/api/turns/${turnId}`)).body.text)
}

describe('of three tries that failed', () => {
  it.each([
    [
      'an exhausted budget',
      429,
      async (agent: string) => {
        const { status } = await stage.host.json('PUT', `/api/budget/agents/${agent}`, { max_llm_tokens_per_hour: 0 })
        expect(status).toBe(200)
      },
    ],
    ['a provider that is away', 503, undefined],
    ['a message it does not take', 500, undefined],
  ] as const)('by %s, the model gets exactly one copy when it goes on', async (_why, status, raise) => {
    const agent = await spawn(raise ? '[resources]\nmax_llm_tokens_per_hour = 1' : '')
    for (let n = 0; n < 3; n++) {
      if (!raise) stage.fake.script({ status: status === 500 ? 400 : status })
      expect((await send(agent, 'the only one')).status).toBe(status)
    }
    await raise?.(agent)
    const turns = (await stage.session(agent)).messages.map(({ turn_id: id }) => id)
    expect(turns).toHaveLength(3)
    const { body } = await act(turns[2], 'retry')
    await answered(body.turn_id)
    expect([told()?.length, copies('the only one')]).toEqual([1, 1])
    // The others are shown until they are dropped, and no model is given them.
    expect((await send(agent, 'next')).status).toBe(200)
    expect(copies('the only one')).toBe(1)
    for (const id of turns.slice(0, 2)) expect((await act(id, 'drop')).status).toBe(200)
    expect(await contents(agent)).toEqual(['the only one', expect.any(String), 'next', expect.any(String)])
    expect((await stage.session(agent)).message_count).toBe(4)
  })
})

describe('/retry and /drop', () => {
  it('are commands over REST, for the last message that failed', async () => {
    const agent = await spawn()
    expect((await command(agent, '/retry')).content).toBe('No message of this session has failed.')
    stage.fake.script({ status: 400 }, { status: 400 })
    await send(agent, 'first')
    await send(agent, 'second')
    const { content, turn_id: id } = await command(agent, '/retry')
    expect(content).toContain(id)
    await answered(id)
    expect(told()).toEqual([{ role: 'user', content: 'second' }])
    expect((await command(agent, '/drop')).content).toBe('The message is dropped.')
    expect((await command(agent, '/drop')).content).toBe('No message of this session has failed.')
    expect(await contents(agent)).toEqual(['second', expect.any(String)])
  })

  it('are commands over the socket: the answer comes as that of a message', async () => {
    const agent = await spawn()
    const frames: Json[] = []
    const socket = new WebSocket(`${stage.host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
    const next = async (content: string) => {
      const seen = frames.length
      socket.send(JSON.stringify({ type: 'message', content }))
      const found = () => frames.slice(seen).find(({ type }) => type === 'response' || type === 'error')
      await expect.poll(found).toBeDefined()
      return found()
    }
    try {
      await expect.poll(() => frames.some(({ type }) => type === 'connected')).toBe(true)
      stage.fake.script({ status: 400 }, { text: 'now' }, { status: 400 })
      expect(await next('over the socket')).toMatchObject({ type: 'error' })
      expect(await next('/retry')).toMatchObject({ type: 'response', content: 'now', turn_id: expect.any(String) })
      expect(await next('again')).toMatchObject({ type: 'error' })
      expect(await next('/drop')).toMatchObject({ content: 'The message is dropped.' })
      expect(await next('/retry')).toMatchObject({ content: 'No message of this session has failed.' })
    } finally {
      socket.close()
      await closed
    }
    expect(await contents(agent)).toEqual(['over the socket', 'now'])
  })
})

describe('a message that is retried', () => {
  it('keeps its images and the options of its turn', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    const refused = await stage.post('/v1/chat/completions', {
      model: agent,
      temperature: 0.25,
      max_tokens: 77,
      response_format: { type: 'json_object' },
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is this?' },
            { type: 'image_url', image_url: { url: PNG } },
          ],
        },
      ],
    })
    expect(refused.status).toBe(500)
    const before = stage.fake.requests.at(-1)?.body
    const { turns } = (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body
    stage.fake.script({ text: '{"it":"is a dot"}' })
    const { body } = await act(turns[0].turn_id, 'retry')
    expect(await answered(body.turn_id)).toBe('{"it":"is a dot"}')
    expect(stage.fake.requests.at(-1)?.body).toEqual(before)
    expect(before).toMatchObject({ temperature: 0.25 })
    expect(JSON.stringify(before)).toContain('iVBORw0KGgo')
  })

  it('while another turn runs waits behind it', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    await send(agent, 'first')
    const [failed] = (await stage.session(agent)).messages
    const words = byHand()
    const asked = stage.fake.requests.length
    stage.fake.script({ text: words.text }, { text: 'one' })
    const running = send(agent, 'second')
    await stage.fake.request(asked)
    const { status, body } = await act(failed?.turn_id, 'retry')
    expect(status).toBe(202)
    expect((await stage.host.json('GET', `/api/turns/${body.turn_id}`)).body).toMatchObject({
      state: 'queued',
      ahead: [expect.any(String)],
    })
    words.say('two')
    words.end()
    await running
    expect(await answered(body.turn_id)).toBe('one')
    expect(await contents(agent)).toEqual(['second', 'two', 'first', 'one'])
  })

  it('under an Idempotency-Key is asked again once, and a repeated request names the same turn', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    await send(agent, 'once more')
    const [failed] = (await stage.session(agent)).messages
    const retry = () =>
      stage.post(`/api/turns/${failed?.turn_id}/retry`, undefined, { headers: { 'idempotency-key': 'again-1' } })
    const first = await retry()
    expect(first.status).toBe(202)
    const body = await first.json()
    await answered(body.turn_id)
    const second = await retry()
    expect([second.status, await second.json()]).toEqual([202, body])
    expect(await contents(agent)).toEqual(['once more', expect.any(String)])
    expect((await act(failed?.turn_id, 'retry')).status).toBe(409)
  })

  it('when the journal no longer knows its turn is not found, and the message says what to do', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    await send(agent, 'long ago')
    const [failed] = (await stage.session(agent)).messages
    const db = new Sqlite(join(stage.host.home, 'data', 'svc.db'))
    db.prepare('DELETE FROM journal_turn WHERE id = ?').run(failed?.turn_id)
    db.close()
    for (const what of ['retry', 'drop'] as const)
      expect(await act(failed?.turn_id, what)).toMatchObject({
        status: 404,
        body: { error: { code: 'turn_not_found', message: expect.stringContaining('plugins.journal.retention_days') } },
      })
    expect(await stage.host.json('POST', `/api/agents/${agent}/commands`, { command: '/retry' })).toMatchObject({
      status: 404,
      body: { error: { code: 'turn_not_found' } },
    })
  })

  it('and dropped by many at once is settled once', async () => {
    for (let round = 0; round < 3; round++) {
      const agent = await spawn()
      stage.fake.script({ status: 400 })
      await send(agent, 'once only')
      const [failed] = (await stage.session(agent)).messages
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) => act(failed?.turn_id, n % 2 === 0 ? 'retry' : 'drop')),
      )
      expect(answers.filter(({ status }) => status !== 409)).toHaveLength(1)
      const { turns } = (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body
      const retried = answers.some(({ status }) => status === 202)
      expect(turns).toHaveLength(retried ? 2 : 1)
      if (retried) await answered(turns[0].turn_id)
    }
  })
})

describe('a summary of older messages', () => {
  it('has nothing of messages that failed, whether they are shown, dropped or retried', async () => {
    await using own = await openChat({
      config: { plugins: { providers, chat: { compaction: { threshold_messages: 6, keep_recent: 2 } } } },
    })
    const summaries: string[] = []
    own.fake.always(({ body }) => {
      const text = JSON.stringify(body.messages)
      if (text.includes('You summarise')) {
        summaries.push(text)
        return { text: 'They spoke.' }
      }
      return text.includes('poison') ? { status: 400 } : { text: 'ok' }
    })
    for (const message of ['good 1', 'poison shown', 'good 2', 'poison dropped', 'good 3'])
      await send(own.agent, message, own)
    const dropped = (await own.session()).messages.find(({ content }) => content === 'poison dropped')
    await act(dropped?.turn_id, 'drop', own)
    const { body } = await own.host.json('POST', `/api/agents/${own.agent}/session/compact`)
    expect(body).toMatchObject({ message: 'Session compacted: 4 messages summarized, 2 kept' })
    expect(summaries[0]).toContain('good 2')
    expect(summaries.join('\n')).not.toContain('poison')
    // One that stands before what was summarised is asked again at the end.
    const shown = (await own.session()).messages.find(({ content }) => content === 'poison shown')
    own.fake.script({ text: 'no poison at all' })
    const retried = await act(shown?.turn_id, 'retry', own)
    await answered(retried.body.turn_id, own)
    expect(told(own)?.at(-1)?.content).toMatch(/poison shown$/)
    expect(JSON.stringify(told(own))).toContain('They spoke.')
    expect(await contents(own.agent, own)).toEqual([
      'good 1',
      'ok',
      'good 2',
      'ok',
      'good 3',
      'ok',
      'poison shown',
      'no poison at all',
    ])
  })
})

describe('the title of a session', () => {
  it('is that of the first message that was answered', async () => {
    const agent = await spawn()
    const titles = async () => (await stage.host.json('GET', `/api/agents/${agent}/sessions`)).body.sessions[0].title
    stage.fake.script({ status: 400 }, { status: 400 })
    await send(agent, 'a secret that failed')
    expect(await titles()).toBe('')
    await send(agent, 'one that is dropped')
    const { turn_id: id = '' } = (await stage.session(agent)).messages[1] ?? {}
    await act(id, 'drop')
    await send(agent, 'what it is about')
    expect(await titles()).toBe('what it is about')
    expect((await command(agent, '/sessions')).content).toContain('what it is about')
  })
})

describe('after a restart', () => {
  it('turns that failed under a version which did not mark them are shown so, and no model is given them', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-old-failed-'))
    try {
      const agent = await (async () => {
        await using before = await openChat({ home, config: { plugins: { providers } } })
        const id = await before.spawn('old', ['kv_set'])
        before.fake.script(
          { text: 'hi' },
          { status: 400, body: '{"error":{"message":"I do not take this"}}' },
          { calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] },
          { status: 400 },
        )
        for (const message of ['hello', 'poison', 'half done']) await send(id, message, before)
        return id
      })()
      // As they were: no marks, and no note of what tools did.
      const db = new Sqlite(join(home, 'data', 'svc.db'))
      const notes = db.prepare("DELETE FROM sessions_message WHERE role = 'system'").run().changes
      db.prepare('UPDATE sessions_session SET message_count = message_count - ?').run(notes)
      db.exec('UPDATE sessions_message SET turn_state = NULL, error_code = NULL, error = NULL, retryable = NULL')
      db.exec('DELETE FROM chat_upkeep')
      db.close()
      for (let boot = 0; boot < 2; boot++) {
        await using after = await openChat({ home, config: { plugins: { providers } } })
        const { messages } = await after.session(agent)
        expect(messages.slice(0, 6).map(({ role, content, failed }) => [role, content, failed ?? false])).toEqual([
          ['User', 'hello', false],
          ['Assistant', 'hi', false],
          ['User', 'poison', true],
          ['User', 'half done', true],
          ['Assistant', '', false],
          ['System', expect.stringContaining('Tools had run by then: kv_set.'), false],
        ])
        expect(messages[2]?.error?.message).toContain('I do not take this')
        await send(agent, `boot ${boot}`, after)
        const said = JSON.stringify(told(after))
        expect(said).not.toMatch(/poison|half done/)
        expect(said.split('Tools had run').length).toBe(2)
      }
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })

  it('of a daemon that was killed, a message that failed and one that was interrupted are asked again', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-killed-'))
    await using fake = await startFakeProvider()
    const env = {
      SVC_DEFAULT_PROVIDER: 'openai',
      SVC_DEFAULT_MODEL: 'fake-1',
      SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
      SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
      SVC_PLUGINS__PROVIDERS__TRIES: '1',
    }
    const call = async (url: string, method: string, path: string, body?: object): Promise<Json> => {
      const answer = await fetch(url + path, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return answer.json()
    }
    try {
      let agent = ''
      {
        await using daemon = await startDaemon({ home, env })
        agent = (
          await call(daemon.url, 'POST', '/api/agents', {
            manifest_toml: 'name = "killed"\n[capabilities]\ntools = ["kv_set"]\n',
          })
        ).agent_id
        fake.script(
          { status: 400 },
          { calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] },
          { text: ['half'], fault: 'stall' },
        )
        await call(daemon.url, 'POST', `/api/agents/${agent}/message`, { message: 'refused' })
        const lost = call(daemon.url, 'POST', `/api/agents/${agent}/message`, { message: 'cut off' }).catch(
          (error: unknown) => error,
        )
        await fake.request(2)
        await daemon.kill()
        await lost
      }
      await using daemon = await startDaemon({ home, env })
      for (const wanted of ['cut off', 'refused']) {
        const { turn_id: id, content } = await call(daemon.url, 'POST', `/api/agents/${agent}/commands`, {
          command: '/retry',
        })
        expect(id, content).toBeDefined()
        await expect.poll(async () => (await call(daemon.url, 'GET', `/api/turns/${id}`)).state).toBe('done')
        const said = JSON.stringify(fake.requests.at(-1)?.body.messages)
        expect(said.split(wanted).length - 1).toBe(1)
        // What its tools did stays done, so the model is told.
        expect(said).toContain('Tools had run by then: kv_set.')
      }
      const { content } = await call(daemon.url, 'POST', `/api/agents/${agent}/commands`, { command: '/retry' })
      expect(content).toBe('No message of this session has failed.')
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
