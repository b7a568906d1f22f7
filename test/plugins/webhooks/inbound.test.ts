import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const TOKEN = 'a-token-of-more-than-thirty-two-characters'
const plugins = [
  ...turnPlugins,
  'files',
  'catalog',
  'webhooks',
  'providers/openai-compatible',
  'providers/anthropic',
  'providers/builtin',
]
let stage: ChatStage
const close = async (): Promise<void> => stage[Symbol.asyncDispose]()
const open = async (triggers: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Promise<void> => {
  stage = await openChat({
    plugins,
    memory: true,
    config: { webhook_triggers: { enabled: true, token: TOKEN, ...triggers }, ...more },
  })
}
async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` },
): Promise<{ status: number; body: Json; headers: Headers }> {
  const response = await stage.host.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
}
function signed(
  body: string,
  options: { readonly id?: string; readonly seconds?: number; readonly key?: string } = {},
): Record<string, string> {
  const { id = randomUUID(), seconds = Math.floor(Date.now() / 1000), key = TOKEN } = options
  return {
    authorization: `Bearer ${TOKEN}`,
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`,
  }
}
/** What the model was asked, in order. */
const asked = (): readonly string[] => stage.fake.requests.map(({ body }) => String(body.messages?.at(-1)?.content))

/** How many requests were taken. */
const received = async (): Promise<number> =>
  (await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')).body.total
const unixSeconds = (offset = 0): number => Math.floor(Date.now() / 1000) + offset

describe('POST /api/hooks/agent', () => {
  afterEach(close)

  it('asks the first agent, or the one that is named, and answers with what it says', async () => {
    await open()
    stage.fake.script({ text: 'one' }, { text: 'two' })
    const first = await post('/api/hooks/agent', { message: 'who are you?' })
    expect(first).toMatchObject({
      status: 200,
      body: {
        status: 'completed',
        agent_id: stage.agent,
        response: 'one',
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      },
    })
    const named = await stage.spawn('named')
    expect((await post('/api/hooks/agent', { message: 'and you?', agent: 'named' })).body).toMatchObject({
      agent_id: named,
      response: 'two',
    })
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')
    expect(body.total).toBe(2)
    expect(JSON.stringify((await stage.host.json('GET', `/api/agents/${named}/turns`)).body)).toContain(
      '"entry_point":"hook"',
    )
  })

  it.each([
    [{}, 400],
    [{ message: '' }, 400],
    [{ message: 'x'.repeat(16_385) }, 400],
    [{ message: 'x', timeout_secs: 5 }, 400],
    [{ message: 'x', agent: 'nobody' }, 404],
    [{ message: 'x', deliver: true }, 400],
    ['{"message":', 400],
    [{ message: 'x', model: '' }, 400],
    [{ message: 'x', model: 'gpt-99' }, 400],
    [{ message: 'x', model: 'openai/gpt-99' }, 400],
    [{ message: 'x', model: 'x'.repeat(257) }, 400],
  ])('%j is %i', async (body, status) => {
    await open()
    expect((await post('/api/hooks/agent', body)).status).toBe(status)
    expect(stage.fake.requests).toEqual([])
  })

  it('is answered by the model that is named, in this turn and no other, and the trail tells', async () => {
    await open()
    stage.fake.always({ text: 'ok' })
    for (const [model, sent] of [
      ['gpt-5-mini', 'gpt-5-mini'],
      ['openai/gpt-5-nano', 'gpt-5-nano'],
      [undefined, 'fake-1'],
      ['fake-1', 'fake-1'],
    ] as const) {
      expect(
        await post('/api/hooks/agent', { message: 'hello', ...(model === undefined ? {} : { model }) }),
      ).toMatchObject({ status: 200, body: { response: 'ok' } })
      expect(stage.fake.requests.at(-1)?.body.model).toBe(sent)
    }
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')
    expect(body.entries.map(({ details }: { details: string }) => / of (\S+):/.exec(details)?.[1])).toEqual([
      'openai/gpt-5-mini',
      'openai/gpt-5-nano',
      undefined,
      'openai/fake-1',
    ])
    expect((await stage.host.json('GET', `/api/agents/${stage.agent}`)).body.model_name).not.toBe('gpt-5-nano')
    // The model is spoken of, and paid, as what it was.
    expect(
      (await stage.host.json('GET', '/api/usage/by-model')).body.models
        .map(({ model }: { model: string }) => model)
        .toSorted(),
    ).toEqual(['fake-1', 'gpt-5-mini', 'gpt-5-nano'])
  })

  it('a model that cannot be used now, or is pinned, is said so, and nothing is asked', async () => {
    await open()
    expect(await post('/api/hooks/agent', { message: 'x', model: 'groq/llama-3.3-70b-versatile' })).toMatchObject({
      status: 503,
      body: { error: { message: expect.stringMatching(/groq/) } },
    })
    await stage.spawn('offline', ['*'], '[model]\nprovider = "builtin"\nmodel = "offline"\n')
    expect(await post('/api/hooks/agent', { message: 'x', agent: 'offline', model: 'nope' })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(/builtin has no model "nope"/) } },
    })
    await stage.host.json('PUT', `/api/agents/${stage.agent}/mode`, { mode: 'Stable' })
    expect(await post('/api/hooks/agent', { message: 'x', model: 'gpt-5-mini' })).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringMatching(/Stable/) } },
    })
    expect(stage.fake.requests).toEqual([])
    expect((await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')).body.total).toBe(0)
  })

  it('one that is repeated under its key or its id is answered with what came of it', async () => {
    await open()
    stage.fake.always({ text: 'done' })
    const keyed = { authorization: `Bearer ${TOKEN}`, 'idempotency-key': 'k-1' }
    const [a, b] = [
      await post('/api/hooks/agent', { message: 'once' }, keyed),
      await post('/api/hooks/agent', { message: 'once' }, keyed),
    ]
    expect(b.body).toEqual(a.body)
    const body = JSON.stringify({ message: 'signed' })
    const headers = signed(body, { id: 'msg-1' })
    const [c, d] = [await post('/api/hooks/agent', body, headers), await post('/api/hooks/agent', body, headers)]
    expect(d.body).toEqual({ ...c.body, duplicate: true })
    expect(asked()).toHaveLength(2)
  })
})

describe('POST /api/hooks/wake', () => {
  afterEach(close)

  it('is answered at once, and the agent gets the text', async () => {
    await open()
    stage.fake.always({ text: 'awake' })
    expect(await post('/api/hooks/wake', { text: 'the build is red' })).toMatchObject({
      status: 200,
      body: { status: 'accepted', mode: 'now' },
    })
    await stage.fake.request(0)
    expect(asked()[0]).toContain('the build is red')
  })

  it('for the next heartbeat waits for it, and what came meanwhile is one message', async () => {
    await open({}, { plugins: { webhooks: { heartbeat_secs: 1 } } })
    stage.fake.always({ text: 'awake' })
    for (const text of ['first news', 'second news'])
      expect((await post('/api/hooks/wake', { text, mode: 'next_heartbeat' })).body).toMatchObject({
        mode: 'next_heartbeat',
      })
    expect(stage.fake.requests).toEqual([])
    await stage.fake.request(0)
    expect(asked()).toEqual([expect.stringMatching(/first news\n\nsecond news/)])
  })

  it('for an agent that does not exist is 404, and nothing waits for it', async () => {
    await open()
    expect(await post('/api/hooks/wake', { text: 'x', agent: 'nobody' })).toMatchObject({
      status: 404,
      body: { error: { code: 'agent_not_found' } },
    })
    expect((await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')).body.total).toBe(0)
  })

  it.each([{}, { text: '' }, { text: 'x'.repeat(4_097) }, { text: 'x', mode: 'tomorrow' }])(
    '%j is 400',
    async (body) => {
      await open()
      expect((await post('/api/hooks/wake', body)).status).toBe(400)
    },
  )
})

describe('inbound hook signature and replay', () => {
  afterEach(close)

  it('does not exist while it is off, for who has the key, and needs the key before that is told', async () => {
    await open({ enabled: false }, { api_key: 'the-key' })
    expect((await post('/api/hooks/wake', { text: 'x' }, {})).status).toBe(401)
    expect((await post('/api/hooks/wake', { text: 'x' })).status).toBe(401)
    expect(await post('/api/hooks/wake', { text: 'x' }, { authorization: 'Bearer the-key' })).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringMatching(/webhook_triggers/) } },
    })
  })

  it('takes its own token and nothing else, with and without a key', async () => {
    for (const api_key of [undefined, 'the-key']) {
      await open({}, api_key === undefined ? {} : { api_key })
      stage.fake.always({ text: 'ok' })
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: `Bearer ${TOKEN}x` },
        { authorization: 'Bearer the-key' },
        { authorization: `Basic ${TOKEN}` },
      ] as Record<string, string>[]) {
        expect((await post('/api/hooks/wake', { text: 'x' }, headers)).status).toBe(401)
        expect((await post('/api/hooks/agent', { message: 'x' }, headers)).status).toBe(401)
      }
      expect((await post('/api/hooks/wake', { text: 'x' })).status).toBe(200)
      // It opens nothing else.
      if (api_key !== undefined)
        expect(
          (await stage.host.json('GET', '/api/agents', undefined, { authorization: `Bearer ${TOKEN}` })).status,
        ).toBe(401)
      if (api_key === undefined) await close()
    }
  })

  it('with a short token, or none, every request is refused and the log says why', async () => {
    await open({ token: 'short' })
    expect((await post('/api/hooks/wake', { text: 'x' }, { authorization: 'Bearer short' })).status).toBe(401)
    expect(stage.host.log.join('\n')).toMatch(/less than 32 characters/)
  })

  it('handles a signed wake once when it is delivered several times at the same moment', async () => {
    await open({ require_signature: true })
    stage.fake.always({ text: 'ok' })
    const body = JSON.stringify({ text: 'pay one', agent: stage.agent })
    const headers = signed(body, { id: 'msg-1' })
    const answers = await Promise.all(Array.from({ length: 5 }, () => post('/api/hooks/wake', body, headers)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1)
    expect(answers.filter((answer) => answer.body.duplicate !== true)).toHaveLength(1)
    expect((await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')).body.total).toBe(1)
  })

  it('handles a signed question once when it is delivered several times at the same moment', async () => {
    await open({ require_signature: true })
    stage.fake.always({ text: 'ok' })
    const body = JSON.stringify({ message: 'pay one' })
    const headers = signed(body, { id: 'msg-1' })
    const answers = await Promise.all(Array.from({ length: 5 }, () => post('/api/hooks/agent', body, headers)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(new Set(answers.map((answer) => answer.body.turn_id)).size).toBe(1)
    expect(answers.filter((answer) => answer.body.duplicate !== true)).toHaveLength(1)
    expect((await stage.host.json('GET', '/api/audit/recent?event_type=webhook_received')).body.total).toBe(1)
  })

  it.each([
    ['modle', 'model'],
    ['timeoutSecs', 'timeout_secs'],
    ['timeout_seconds', 'timeout_secs'],
    ['timeout_ms', 'timeout_secs'],
    ['timeoutMs', 'timeout_secs'],
    ['timeout', 'timeout_secs'],
    ['delivr', 'deliver'],
    ['chanel', 'channel'],
  ])('rejects the unknown field %s and suggests %s', async (field, known) => {
    await open()
    expect(await post('/api/hooks/agent', { message: 'hello', [field]: 'x' })).toMatchObject({
      status: 400,
      body: { error: { message: `${field}: unknown field; did you mean ${known}?` } },
    })
    expect(stage.fake.requests).toEqual([])
  })

  it('a token that is no whsec_ secret signs as text and as the base64 that libraries take it for', async () => {
    const token = randomBytes(32).toString('base64')
    await open({ token })
    stage.fake.always({ text: 'ok' })
    const body = JSON.stringify({ message: 'hello' })
    const [at, seconds] = [new Date(), Math.floor(Date.now() / 1000)]
    const text = `v1,${createHmac('sha256', token).update(`text.${seconds}.${body}`).digest('base64')}`
    for (const [id, signature] of [
      ['library', new Webhook(token).sign('library', at, body)],
      ['text', text],
    ] as const) {
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': id === 'text' ? String(seconds) : String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': signature,
      }
      expect([id, (await post('/api/hooks/agent', body, headers)).status]).toEqual([id, 200])
    }
  })

  it('names its agent as agent, agent_id or agent_name; a name that is nearly one of these is refused', async () => {
    await open()
    stage.fake.always({ text: 'ok' })
    const named = await stage.spawn('named')
    const ask = (who: object) => post('/api/hooks/agent', { message: 'hello', ...who })
    for (const who of [{ agent: 'named' }, { agent_id: named }, { agent_name: 'named' }])
      expect((await ask(who)).body).toMatchObject({ agent_id: named })
    expect((await ask({})).body).toMatchObject({ agent_id: stage.agent })
    const asked = stage.fake.requests.length
    for (const who of [
      { agnet: 'named' },
      { agentId: named },
      { agent_uuid: named },
      { 'agent-id': named },
      { Agent: 'named' },
    ])
      expect([who, await ask(who)]).toMatchObject([
        who,
        { status: 400, body: { error: { message: expect.stringMatching(/did you mean agent/) } } },
      ])
    expect((await ask({ agent: 'named', agent_id: stage.agent })).status).toBe(400)
    expect((await post('/api/hooks/wake', { text: 'hello', agentId: named })).status).toBe(400)
    expect((await ask({ agent: 'named', trace: 'x', source: 'ci' })).status).toBe(200)
    expect(stage.fake.requests).toHaveLength(asked + 1)
  })

  it('what is too large, and more than so many in a minute, is refused', async () => {
    await open({ max_payload_bytes: 1_024, rate_limit_per_minute: 3 })
    stage.fake.always({ text: 'ok' })
    expect((await post('/api/hooks/wake', { text: 'x'.repeat(2_000) })).status).toBe(413)
    for (const text of ['a', 'b', 'c']) expect((await post('/api/hooks/wake', { text })).status).toBe(200)
    const refused = await post('/api/hooks/wake', { text: 'd' })
    expect(refused).toMatchObject({ status: 429, body: { error: expect.stringMatching(/3 requests/) } })
    expect(refused.headers.get('retry-after')).toBe('60')
  })
})

describe('a hook that requires a signature', () => {
  beforeAll(async () => {
    await open({ require_signature: true })
    stage.fake.always({ text: 'ok' })
  })
  afterAll(close)
  const body = JSON.stringify({ text: 'pay one' })
  const changed = JSON.stringify({ text: 'pay ten' })

  it('Inbound hook signature and replay: takes a signed request once, however often it comes', async () => {
    const headers = signed(body, { id: 'repeated' })
    const [before, questions] = [await received(), asked().length]
    expect((await post('/api/hooks/wake', body, headers)).body).toMatchObject({ status: 'accepted' })
    expect((await post('/api/hooks/wake', body, headers)).body).toMatchObject({ status: 'accepted', duplicate: true })
    expect(await received()).toBe(before + 1)
    await stage.fake.request(questions)
    expect(asked()).toHaveLength(questions + 1)
  })

  it('does not take another text under an id that was used', async () => {
    await post('/api/hooks/wake', body, signed(body, { id: 'used' }))
    const before = await received()
    expect((await post('/api/hooks/wake', changed, signed(changed, { id: 'used' }))).status).toBe(409)
    expect(await received()).toBe(before)
  })

  it.each<[what: string, headers: () => Record<string, string> | undefined, status: number]>([
    ['a changed text', () => signed(changed), 401],
    ['a signature from five minutes ago', () => signed(body, { seconds: unixSeconds(-301) }), 401],
    ['a signature from five minutes ahead', () => signed(body, { seconds: unixSeconds(302) }), 401],
    [
      'a signature with another key',
      () => signed(body, { key: 'another key of more than thirty-two characters' }),
      401,
    ],
    ['a request without a signature', () => undefined, 401],
    [
      'a signature that is as long in characters, and longer in bytes',
      () => ({ ...signed(body), 'webhook-signature': `v1,${'\u00e9'.repeat(44)}` }),
      401,
    ],
    [
      'a signed request without an id',
      () => {
        const { 'webhook-id': _, ...without } = signed(body)
        return without
      },
      400,
    ],
  ])('does not take %s', async (_what, headers, status) => {
    const before = await received()
    expect((await post('/api/hooks/wake', body, headers())).status).toBe(status)
    expect(await received()).toBe(before)
  })
})

describe('a sender by the Standard Webhooks library', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const sender = new Webhook(secret)
  const body = JSON.stringify({ message: 'the build is red' })
  const send = (text: string, id: string, at = new Date(), more: Record<string, string> = {}) =>
    post('/api/hooks/agent', text, {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': sender.sign(id, at, text),
      ...more,
    })
  const fiveMinutesAgo = (): Date => new Date(Date.now() - 301_000)

  describe('whose secret is the token', () => {
    beforeAll(async () => {
      await open({ token: secret })
      stage.fake.always({ text: 'ok' })
    })
    afterAll(close)

    it('needs no token beside its signature', async () => {
      expect(await send(body, 'alone')).toMatchObject({ status: 200, body: { response: 'ok' } })
    })

    it('may send several signatures in one header while its secret is rotated', async () => {
      const rotated = `v1,${randomBytes(32).toString('base64')} ${sender.sign('rotated', new Date(), body)}`
      expect((await send(body, 'rotated', new Date(), { 'webhook-signature': rotated })).status).toBe(200)
    })

    it('gets the same answer again for the same id, and nothing is asked', async () => {
      const first = await send(body, 'twice')
      const requests = stage.fake.requests.length
      expect(await send(body, 'twice')).toMatchObject({
        status: 200,
        body: { turn_id: first.body.turn_id, duplicate: true },
      })
      expect(stage.fake.requests).toHaveLength(requests)
    })

    it('is not told an answer that is kept for a key when nobody looked at its signature', async () => {
      const key = { 'idempotency-key': 'mine' }
      const authorized = { authorization: `Bearer ${secret}`, ...key }
      expect((await post('/api/hooks/agent', body, authorized)).status).toBe(200)
      expect((await post('/api/hooks/agent', body, { 'webhook-signature': 'v1,x', ...key })).status).toBe(401)
    })

    it.each<[what: string, request: () => ReturnType<typeof post>]>([
      ['from five minutes ago', () => send(body, 'old', fiveMinutesAgo())],
      [
        'whose text was changed',
        () =>
          send(`${body} `, 'changed', new Date(), { 'webhook-signature': sender.sign('changed', new Date(), body) }),
      ],
      ['without its signature', () => post('/api/hooks/agent', body)],
    ])('is refused a request %s', async (_what, request) => {
      const requests = stage.fake.requests.length
      expect((await request()).status).toBe(401)
      expect(stage.fake.requests).toHaveLength(requests)
    })
  })

  it('is let in no more after as many wrong signatures as wrong keys are', async () => {
    await open({ token: secret }, { rate_limit: { failed_auth_per_minute: 5, tokens_per_minute: 100_000 } })
    try {
      for (let n = 0; n < 5; n++) expect((await send(body, `wrong-${n}`, fiveMinutesAgo())).status).toBe(401)
      expect((await send(body, 'right')).status).toBe(429)
      expect(stage.fake.requests).toEqual([])
    } finally {
      await close()
    }
  })
})
