import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage, ShownMessage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  // No circuit opens here.
  stage = await openChat({ config: { plugins: { providers: { breaker_failures: 1000, tries: 1 } } } })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (tools?: string[]): Promise<string> => stage.spawn(`failed-${serial++}`, tools)
const nobody = '00000000-0000-4000-8000-000000000000'
const send = (agent: string, message: string) => stage.host.json('POST', `/api/agents/${agent}/message`, { message })
const act = (id: string, what: 'retry' | 'drop') => stage.host.json('POST', `/api/turns/${id}/${what}`)
const messages = async (agent: string): Promise<readonly ShownMessage[]> => (await stage.session(agent)).messages
const contents = async (agent: string) => (await messages(agent)).map(({ content }) => content)
/** What the model was given beside the rules, in the last request. */
const told = () => stage.fake.requests.at(-1)?.body.messages?.filter(({ role }) => role !== 'system')
/** Settles when a turn has ended. */
async function ended(agent: string): Promise<void> {
  await send(agent, 'after that')
}
const REFUSED = { status: 400, body: '{"error":{"message":"I do not take this"}}' }

describe('a message whose turn failed', () => {
  it('is shown with the reason, and is not given to the model by later turns', async () => {
    const agent = await spawn()
    stage.fake.script(REFUSED)
    expect((await send(agent, 'poison')).status).toBe(500)
    const [failed] = await messages(agent)
    expect(failed).toMatchObject({
      role: 'User',
      content: 'poison',
      turn_id: expect.any(String),
      failed: true,
      error: { code: 'internal_error', message: expect.stringContaining('I do not take this'), retryable: false },
    })
    expect((await send(agent, 'hello')).status).toBe(200)
    expect(told()).toEqual([{ role: 'user', content: 'hello' }])
    expect(await contents(agent)).toEqual(['poison', 'hello', expect.any(String)])
    const { body } = await stage.host.json('GET', `/api/turns/${failed?.turn_id}`)
    expect(body).toMatchObject({ state: 'failed', failure: failed?.error })
    const { body: shown } = await stage.host.json('GET', `/api/sessions/${body.session_id}`)
    expect(shown.messages[0]).toMatchObject({ failed: true, error: failed?.error })
  })

  it('tried three times while the provider is away, it is answered once when that is back', async () => {
    const agent = await spawn()
    stage.fake.always({ status: 503 })
    try {
      for (let n = 0; n < 3; n++) expect((await send(agent, 'are you there?')).status).toBe(503)
    } finally {
      stage.fake.always({ text: 'yes' })
    }
    expect((await messages(agent)).map(({ error }) => error)).toMatchObject(
      Array.from({ length: 3 }, () => ({ code: 'service_unavailable', retryable: true })),
    )
    const other = await spawn()
    await send(other, 'unrelated')
    await send(agent, 'and now?')
    expect(told()).toEqual([{ role: 'user', content: 'and now?' }])
  })

  it('is answered again when it is retried: a new turn, and the failed one no longer shows', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 }, { text: 'now it works' })
    await send(agent, 'try this')
    const [failed] = await messages(agent)
    const { status, body } = await act(failed?.turn_id ?? '', 'retry')
    expect(status).toBe(202)
    expect(body).toEqual({
      turn_id: expect.any(String),
      session_id: (await stage.session(agent)).session_id,
      agent_id: agent,
      retried: failed?.turn_id,
    })
    await ended(agent)
    expect((await contents(agent)).slice(0, 2)).toEqual(['try this', 'now it works'])
    expect((await messages(agent))[0]?.turn_id).toBe(body.turn_id)
    expect((await messages(agent))[0]).not.toHaveProperty('failed')
    expect(await act(failed?.turn_id ?? '', 'retry')).toMatchObject({ status: 409 })
    expect(await act(failed?.turn_id ?? '', 'drop')).toMatchObject({ status: 409 })
    expect(await act(body.turn_id, 'retry')).toMatchObject({ status: 409 })
    const audit = await stage.host.json('GET', '/api/audit/recent?n=20')
    expect(JSON.stringify(audit.body)).toContain(`turn ${failed?.turn_id} by rest retried`)
  })

  it('asked to be retried twice at once, is answered once', async () => {
    const agent = await spawn()
    stage.fake.script({ status: 400 })
    await send(agent, 'once only')
    const id = (await messages(agent))[0]?.turn_id ?? ''
    const answers = await Promise.all([act(id, 'retry'), act(id, 'retry'), act(id, 'drop')])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409, 409])
  })

  it('goes from view when it is dropped, and the count of messages with it', async () => {
    const agent = await spawn()
    stage.fake.script({ text: 'hi' }, REFUSED)
    await send(agent, 'hello')
    await send(agent, 'no')
    const before = await stage.session(agent)
    const id = before.messages.at(-1)?.turn_id ?? ''
    expect(await act(id, 'drop')).toMatchObject({
      status: 200,
      body: { status: 'dropped', turn_id: id, session_id: before.session_id, agent_id: agent },
    })
    const after = await stage.session(agent)
    expect(after.messages.map(({ content }) => content)).toEqual(['hello', 'hi'])
    expect([before.message_count, after.message_count]).toEqual([3, 2])
    expect(await act(id, 'retry')).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    const audit = await stage.host.json('GET', '/api/audit/recent?n=20')
    expect(JSON.stringify(audit.body)).toContain(`turn ${id} by rest dropped`)
  })

  it('that is unknown or malformed cannot be retried or dropped', async () => {
    for (const what of ['retry', 'drop'] as const) {
      expect(await act(nobody, what)).toMatchObject({ status: 404 })
      expect(await act('nonsense', what)).toMatchObject({ status: 400 })
    }
  })

  it('that failed half way leaves out what it said, and the model is told which tools had run', async () => {
    const agent = await spawn(['kv_set', 'kv_get'])
    stage.fake.script(
      {
        text: 'Writing it down.',
        calls: [
          { name: 'kv_set', args: { key: 'a', value: 1 } },
          { name: 'kv_get', args: { key: 'a' } },
        ],
      },
      REFUSED,
    )
    expect((await send(agent, 'write it down')).status).toBe(500)
    await send(agent, 'and?')
    expect(told()).toEqual([
      { role: 'user', content: expect.stringMatching(/Tools had run by then: kv_set\.\]\n\nand\?$/) },
    ])
    expect((await messages(agent)).map(({ role }) => role)).toEqual([
      'User',
      'Assistant',
      'System',
      'User',
      'Assistant',
    ])
  })

  it('in a longer session leaves what was said before and after it as it was', async () => {
    const agent = await spawn()
    stage.fake.script({ text: 'one' }, REFUSED, { text: 'two' })
    for (const message of ['first', 'bad', 'second', 'third']) await send(agent, message)
    expect(told()).toEqual([
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'one' },
      { role: 'user', content: 'second' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'third' },
    ])
  })
})

describe('a request with an Idempotency-Key whose turn failed', () => {
  const asks: readonly (readonly [string, (agent: string) => readonly [path: string, body: object]])[] = [
    ['POST /message', (agent) => [`/api/agents/${agent}/message`, { message: 'hi' }]],
    ['POST /message/stream', (agent) => [`/api/agents/${agent}/message/stream`, { message: 'hi' }]],
    ['POST /v1', (agent) => ['/v1/chat/completions', { model: agent, messages: [{ role: 'user', content: 'hi' }] }]],
    [
      'POST /v1, streamed',
      (agent) => ['/v1/chat/completions', { model: agent, stream: true, messages: [{ role: 'user', content: 'hi' }] }],
    ],
  ]
  async function ask(path: string, body: object, key: string) {
    const answer = await stage.post(path, body, {
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
    })
    const { error } = await answer.json()
    return {
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      code: error.code,
      says: error.message,
    }
  }
  const read = (turn: string) => stage.host.json('GET', `/api/turns/${turn}`)

  it.each(asks)('%s is answered again as the first time, also when its session is gone', async (name, request) => {
    const agent = await spawn()
    const [path, body] = request(agent)
    stage.fake.script({ status: 503, headers: { 'retry-after': '7' } })
    const first = await ask(path, body, `away-${name.length}-${agent}`)
    expect(first).toMatchObject({ status: 503, retryAfter: '7', code: 'service_unavailable' })
    const again = async () => ask(path, body, `away-${name.length}-${agent}`)
    expect(await again()).toEqual(first)
    const { turn_id: turn } = (await messages(agent))[0] ?? {}
    const failure = { code: 'service_unavailable', message: first.says, retryable: true, retry_after_secs: 7 }
    expect((await read(String(turn))).body.failure).toEqual(failure)
    expect((await stage.post(`/api/agents/${agent}/session/reset`)).status).toBe(200)
    expect(await again()).toEqual(first)
    expect((await read(String(turn))).body.failure).toEqual(failure)
  })

  it('is answered with the code of what refused it, whatever that is', async () => {
    const agent = await stage.spawn(`failed-${serial++}`, [], '[resources]\nmax_llm_tokens_per_hour = 1')
    const [path, body] = [`/api/agents/${agent}/message/stream`, { message: 'hi' }] as const
    const answers = [await stage.post(path, body, keyed(agent)), await stage.post(path, body, keyed(agent))]
    expect(answers.map(({ status }) => status)).toEqual([429, 429])
    const [first, second] = await Promise.all(answers.map((answer) => answer.json()))
    expect(second).toEqual(first)
    expect(answers[1]?.headers.get('retry-after')).toMatch(/^[1-9]/)
  })
  const keyed = (key: string) => ({ headers: { 'content-type': 'application/json', 'idempotency-key': key } })
})

describe('a conversation that the provider refuses as it is', () => {
  const refuse = (message: string, code: string) => ({
    status: 400,
    body: JSON.stringify({ error: { message, type: 'invalid_request_error', code } }),
  })

  it('because it is too long says what to do, and the next message works', async () => {
    const agent = await spawn()
    await send(agent, 'hello')
    stage.fake.always(({ body }) =>
      JSON.stringify(body.messages).includes('endless')
        ? refuse("This model's maximum context length is 8192 tokens", 'context_length_exceeded')
        : { text: 'ok' },
    )
    const { body } = await send(agent, 'endless '.repeat(2000))
    expect(JSON.stringify(body)).toMatch(/maximum context length is 8192 tokens\. Shorten the message, begin/)
    expect((await messages(agent)).at(-1)).toMatchObject({
      failed: true,
      error: { message: expect.stringContaining('Shorten the message'), retryable: false },
    })
    expect((await send(agent, 'short')).status).toBe(200)
    expect(JSON.stringify(told())).not.toContain('endless')
  })

  it('because of an image says so, and the next message works', async () => {
    const agent = await spawn()
    stage.fake.always(({ body }) =>
      JSON.stringify(body.messages).includes('image_url') ? refuse('cannot read', 'invalid') : { text: 'ok' },
    )
    const url =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const content = [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url } },
    ]
    const ask = (said: unknown, session: string) =>
      stage.post(
        '/v1/chat/completions',
        { model: agent, messages: [{ role: 'user', content: said }] },
        { headers: { 'content-type': 'application/json', 'x-session-id': session } },
      )
    const refused = await ask(content, 'pictures')
    expect(await refused.text()).toContain('The model may not read this image')
    expect((await ask('hello', 'pictures')).status).toBe(200)
    expect(JSON.stringify(told())).not.toContain('image_url')
  })
})

describe('neighbouring messages of the user', () => {
  it('reach the provider as one string: the server of a model that does not see reads no list', async () => {
    const agent = await spawn()
    stage.fake.script({ text: '' })
    await send(agent, 'first')
    await send(agent, 'second')
    expect(told()).toEqual([{ role: 'user', content: 'first\n\nsecond' }])
  })

  it('stay a list where there is an image between them', async () => {
    const agent = await spawn()
    const ask = (content: unknown) =>
      stage.post('/v1/chat/completions', {
        model: agent,
        messages: [
          { role: 'user', content: 'look' },
          { role: 'user', content },
        ],
      })
    const url =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    await ask([
      { type: 'text', text: 'at this' },
      { type: 'image_url', image_url: { url } },
    ])
    expect(told()).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'look\n\nat this' }, { type: 'image_url' }] },
    ])
    await ask('at that')
    expect(told()).toEqual([{ role: 'user', content: 'look\n\nat that' }])
  })
})
