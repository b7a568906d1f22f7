import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { Payload } from '../../../plugins/webhooks/schema.ts'
import { eventually } from '../../support/eventually.ts'
import { startReceiver } from './receiver.ts'
import type { Received, Receiver } from './receiver.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const SECRET = 'a-secret-that-only-we-know'
let stage: ChatStage
let receiver: Receiver
const allowed = { outbound: { allow: ['127.0.0.1'] } }
const quick = { webhooks: { poll_ms: 20, back_off_min_ms: 10, back_off_max_ms: 40 } }
const plugins = [...turnPlugins, 'clock', 'webhooks', 'providers/openai-compatible']
async function open(config: Record<string, unknown> = { ...allowed, plugins: quick }): Promise<void> {
  stage = await openChat({ plugins, memory: true, config })
}
async function listen(): Promise<void> {
  receiver = await startReceiver(SECRET)
}
async function close(): Promise<void> {
  await stage[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
}
const api = (method: string, path: string, body?: unknown) => stage.host.json(method, path, body)
async function subscribe(events: readonly string[], more: Record<string, unknown> = {}): Promise<Json> {
  const answer = await api('POST', '/api/webhooks', {
    name: 'test',
    url: `${receiver.url}/hook`,
    events,
    secret: SECRET,
    ...more,
  })
  expect(answer.status).toBe(201)
  return answer.body
}

describe('outbound webhooks', () => {
  beforeEach(listen)
  afterEach(close)

  it('are added and read', async () => {
    await open()
    const made = await subscribe(['agent_spawned', 'all'])
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'test',
      url: `${receiver.url}/hook`,
      secret: '***',
      events: ['agent_spawned', 'all'],
      enabled: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await api('GET', '/api/webhooks')).body).toEqual({ webhooks: [made], total: 1 })
    expect((await api('GET', `/api/webhooks/${made.id}`)).body).toEqual(made)
    expect((await api('GET', '/api/webhooks/not-a-uuid')).status).toBe(400)
  })

  it('are changed and removed, which is audited, and their secret is never told', async () => {
    await open()
    const made = await subscribe(['agent_spawned', 'all'])
    const changed = await api('PUT', `/api/webhooks/${made.id}`, { name: 'other', enabled: false, secret: '' })
    expect(changed).toMatchObject({
      status: 200,
      body: { name: 'other', enabled: false, secret: null, events: made.events },
    })
    expect((await api('DELETE', `/api/webhooks/${made.id}`)).body).toEqual({ status: 'deleted', webhook_id: made.id })
    expect((await api('GET', `/api/webhooks/${made.id}`)).status).toBe(404)
    const { body: audit } = await api('GET', '/api/audit/recent?event_type=webhook_changed')
    expect(audit.total).toBe(3)
    expect(JSON.stringify([audit, stage.host.log])).not.toContain(SECRET)
  })

  it('stay as they are when what was read is sent back: the mask of a secret is never stored', async () => {
    await open()
    const events = ['agent_spawned']
    const made = await subscribe(events)
    const shown = (await api('GET', `/api/webhooks/${made.id}`)).body
    expect(shown.secret).toBe('***')
    expect(await api('PUT', `/api/webhooks/${made.id}`, { ...shown, name: 'renamed' })).toMatchObject({
      status: 200,
      body: { name: 'renamed', secret: '***' },
    })
    const more = await api('POST', '/api/webhooks/events', {
      event_type: 'agent_spawned',
      url: `${receiver.url}/more`,
      secret: SECRET,
    })
    const [event] = (await api('GET', '/api/webhooks/events')).body
    expect((await api('PUT', `/api/webhooks/events/${event.id}`, event)).status).toBe(200)
    await stage.spawn('told')
    // The receiver takes nothing that is signed with another secret.
    const told = await receiver.count(2)
    expect(told.map(({ genuine }) => genuine)).toEqual([true, true])
    expect(more.status).toBe(201)
    for (const [path, body] of [
      ['/api/webhooks', { name: 'masked', url: `${receiver.url}/x`, events, secret: '***' }],
      ['/api/webhooks/events', { event_type: 'agent_spawned', url: `${receiver.url}/x`, secret: '***' }],
      ['/api/providers/openai/key', { api_key: '***' }],
    ] as const)
      expect([path, await api('POST', path, body)]).toMatchObject([
        path,
        { status: 400, body: { error: { message: expect.stringContaining('in place of a secret') } } },
      ])
    expect((await api('PUT', `/api/webhooks/${made.id}`, { secret: '' })).body.secret).toBeNull()
  })

  it('are changed one after the other: nothing is lost, exceeded or removed twice', async () => {
    await open({ ...allowed, plugins: { webhooks: { ...quick.webhooks, max_webhooks: 3 } } })
    const count = (answers: readonly { readonly status: number }[], status: number): number =>
      answers.filter((answer) => answer.status === status).length
    const added = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        api('POST', '/api/webhooks', { name: `w${index}`, url: `${receiver.url}/hook`, events: ['all'] }),
      ),
    )
    expect([count(added, 201), count(added, 409)]).toEqual([3, 5])
    const path = `/api/webhooks/${added.find(({ status }) => status === 201)?.body.id}`
    await Promise.all([
      api('PUT', path, { name: 'renamed' }),
      api('PUT', path, { events: ['agent_spawned'] }),
      api('PUT', path, { enabled: false }),
      api('PUT', path, { secret: SECRET }),
    ])
    expect((await api('GET', path)).body).toMatchObject({
      name: 'renamed',
      events: ['agent_spawned'],
      enabled: false,
      secret: '***',
    })
    const removed = await Promise.all(Array.from({ length: 6 }, () => api('DELETE', path)))
    expect([count(removed, 200), count(removed, 404)]).toEqual([1, 5])
  })

  it('a test is sent at once and tells what came back', async () => {
    await open()
    const { id } = await subscribe(['all'], { enabled: false })
    receiver.answer = (response) => {
      response.writeHead(418).end()
    }
    expect(await api('POST', `/api/webhooks/${id}/test`)).toMatchObject({
      status: 200,
      body: { status: 'sent', response_status: 418, webhook_id: id },
    })
    const [one] = receiver.received
    expect(one).toMatchObject({
      genuine: true,
      body: { event: 'test', webhook_id: id, message: expect.any(String), timestamp: expect.any(String) },
      headers: { 'content-type': 'application/json', 'user-agent': 'Svc-Webhook/1.0' },
    })
    await receiver[Symbol.asyncDispose]()
    expect(await api('POST', `/api/webhooks/${id}/test`)).toMatchObject({
      status: 502,
      body: { status: 'error', webhook_id: id, error: expect.stringMatching(/refused the connection/) },
    })
    receiver = await startReceiver(SECRET)
  })
})

describe('what is no webhook', () => {
  beforeAll(async () => {
    await listen()
    await open()
  })
  afterAll(close)

  it.each(['a\u0000b', 'a\nb', 'a\u001b[31mb', ' \t '])('reject the name %j', async (name) => {
    const url = `${receiver.url}/hook`
    expect((await api('POST', '/api/webhooks', { name, url, events: ['all'] })).status).toBe(400)
    const made = await subscribe(['all'])
    expect((await api('PUT', `/api/webhooks/${made.id}`, { name })).status).toBe(400)
  })

  it.each([
    [{ name: '' }, /name/],
    [{ events: [] }, /at least one/],
    [{ events: ['agent_exploded'] }, /agent_spawned, agent_stopped/],
    [{ url: 'ftp://example.com/x' }, /http/],
    [{ url: `https://example.com/${'x'.repeat(2_100)}` }, /url|2048|2,048/],
    [{ secret: '' }, /secret|empty/],
    [{ name: 'x'.repeat(129) }, /name|128/],
    [{ url: 'http://user:pass@example.com/' }, /user name or password/],
  ])('%j is 400 and says why', async (wrong, why) => {
    const { status, body } = await api('POST', '/api/webhooks', {
      name: 'x',
      url: `${receiver.url}/`,
      events: ['all'],
      ...wrong,
    })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toMatch(why)
  })
})

describe('addresses that no webhook may have', () => {
  beforeAll(async () => {
    await listen()
    await open({ plugins: quick })
  })
  afterAll(close)
  const webhook = { name: 'x', events: ['all'] }

  it.each([
    'http://127.0.0.1:9/',
    'http://localhost/',
    'http://10.1.2.3/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://2130706433/',
    'http://192.168.0.1/',
    'http://printer.local/',
    'http://x.internal/',
    'http://a.localhost/',
  ])('%s is 400 and names what permits it', async (url) => {
    const { status, body } = await api('POST', '/api/webhooks', { ...webhook, url })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toMatch(/\[outbound\] allow/)
    expect((await api('POST', '/api/webhooks/events', { event_type: 'agent_spawned', url })).status).toBe(400)
  })
  it('a metadata service is 400', async () => {
    expect((await api('POST', '/api/webhooks', { ...webhook, url: 'http://169.254.169.254/latest' })).status).toBe(400)
  })
  it('a webhook cannot be changed to one of them', async () => {
    const url = 'https://93.184.215.14/hook'
    const fine = await api('POST', '/api/webhooks', { ...webhook, url, enabled: false })
    expect(fine.status).toBe(201)
    expect((await api('PUT', `/api/webhooks/${fine.body.id}`, { url: 'http://127.0.0.1/' })).status).toBe(400)
  })
})

describe('events of an agent and of its turn', () => {
  let target: string
  let agent: string
  let response: string
  let got: readonly Received[]
  beforeAll(async () => {
    await listen()
    await open()
    const events = ['agent_spawned', 'message_received', 'message_completed', 'agent_stopped', 'tool_invoked']
    target = (await subscribe(events)).id
    agent = await stage.spawn('worker')
    stage.fake.script({ text: 'hello' })
    const answer = await api('POST', `/api/agents/${agent}/message`, { message: 'hi' })
    expect(answer.status).toBe(200)
    response = answer.body.response
    await receiver.count(3)
    await api('DELETE', `/api/agents/${agent}`)
    got = await receiver.count(4, ({ body }) => body.data.agent_id === agent)
  })
  afterAll(close)

  it('Outbound webhook forging/replay: they are delivered once, signed and in order', () => {
    expect(got.map(({ body, genuine }) => [body.event, genuine])).toEqual([
      ['agent_spawned', true],
      ['message_received', true],
      ['message_completed', true],
      ['agent_stopped', true],
    ])
    expect(new Set(got.map(({ body }) => body.id)).size).toBe(4)
  })

  it('each carries its id, the webhook and its time, as the schema says', () => {
    for (const { body, headers } of got) {
      expect(headers['x-webhook-id']).toBe(body.id)
      expect(body).toMatchObject({
        id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
        webhook_id: target,
        timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      })
      expect(v.is(Payload, body), JSON.stringify(body)).toBe(true)
    }
  })

  it('the end of a turn tells its answer and what it used', () => {
    expect(got[2]?.body.data).toMatchObject({
      agent_id: agent,
      turn_id: expect.any(String),
      response,
      usage: { input_tokens: expect.any(Number) },
    })
  })

  it('they are listed as delivered', async () => {
    const listed = async (): Promise<readonly string[]> =>
      (await api('GET', `/api/webhooks/${target}/deliveries?state=delivered`)).body.deliveries.map(
        (one: { id: string }) => one.id,
      )
    // The receiver has the last one before the daemon has its answer.
    await expect.poll(listed).toEqual(expect.arrayContaining(got.map(({ body }) => body.id)))
  })
})

describe('events', () => {
  beforeEach(listen)
  afterEach(close)

  it('before the subscription, and while it is off, are not told', async () => {
    await open()
    await stage.spawn('before')
    const { id } = await subscribe(['agent_spawned'])
    await api('PUT', `/api/webhooks/${id}`, { enabled: false })
    await stage.spawn('meanwhile')
    await api('PUT', `/api/webhooks/${id}`, { enabled: true })
    await stage.spawn('after')
    const [first] = await receiver.count(1)
    expect(first?.body.data.agent_name).toBe('after')
    expect((await api('GET', `/api/webhooks/${id}/deliveries`)).body.total).toBe(1)
  })
})

describe('a subscription to events', () => {
  beforeAll(async () => {
    await listen()
    await open()
  })
  afterEach(async () => {
    for (const { id } of (await api('GET', '/api/webhooks/events')).body) await api('DELETE', path(id))
  })
  afterAll(close)
  const path = (id: string): string => `/api/webhooks/events/${id}`
  const add = (body: object) => api('POST', '/api/webhooks/events', body)
  const addOne = () => add({ event_type: 'agent_spawned', url: `${receiver.url}/one`, secret: SECRET })
  const addTwo = () => add({ events: ['agent.spawned', 'agent.terminated'], url: `${receiver.url}/two` })

  it('names one event with event_type, and its secret is not told', async () => {
    expect(await addOne()).toMatchObject({
      status: 201,
      body: {
        event_type: 'agent_spawned',
        events: ['agent_spawned'],
        url: `${receiver.url}/one`,
        secret: '***',
        enabled: true,
      },
    })
  })

  it('names several events with dotted names', async () => {
    expect(await addTwo()).toMatchObject({
      status: 201,
      body: { secret: null, events: ['agent.spawned', 'agent.terminated'] },
    })
  })

  it('to an event that nobody knows is refused with those there are', async () => {
    const { status, body } = await add({ event_type: 'nothing', url: receiver.url })
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(/agent_spawned/)])
  })

  it('to no event is 400', async () => {
    expect((await add({ url: receiver.url })).status).toBe(400)
  })

  it('is listed with those of its kind, and is none of the webhooks', async () => {
    const [one, two] = [await addOne(), await addTwo()]
    expect((await api('GET', '/api/webhooks/events')).body).toEqual([one.body, two.body])
    expect((await api('GET', '/api/webhooks')).body.total).toBe(0)
    expect((await api('GET', `/api/webhooks/${one.body.id}`)).status).toBe(404)
  })

  it('brings events under the names that it was made with', async () => {
    await addOne()
    await addTwo()
    const agent = await stage.spawn('named')
    await api('DELETE', `/api/agents/${agent}`)
    const received = await receiver.count(3)
    const eventsAt = (at: string): readonly string[] =>
      received.filter((request) => request.path === at).map(({ body }) => body.event)
    expect(eventsAt('/one')).toEqual(['agent_spawned'])
    expect(eventsAt('/two')).toEqual(['agent.spawned', 'agent.terminated'])
  })

  it('is changed to another event', async () => {
    const { body } = await addOne()
    expect(await api('PUT', path(body.id), { event_type: 'agent_stopped' })).toMatchObject({
      status: 200,
      body: { event_type: 'agent_stopped' },
    })
  })

  it('is deleted once', async () => {
    const { body } = await addOne()
    expect((await api('DELETE', path(body.id))).status).toBe(200)
    expect((await api('DELETE', path(body.id))).status).toBe(404)
  })
})

describe('outbound webhook forging / replay', () => {
  beforeEach(listen)
  afterEach(close)

  it('a receiver that fails gets the same bytes under the same id again, and nothing overtakes them', async () => {
    await open()
    const { id } = await subscribe(['agent_spawned'])
    receiver.answer = (response, _, nth) => {
      response.writeHead(nth <= 3 ? 500 : 204).end()
    }
    await stage.spawn('one')
    await stage.spawn('two')
    const got = await receiver.count(5)
    expect(new Set(got.slice(0, 4).map(({ raw }) => raw)).size).toBe(1)
    expect(new Set(got.slice(0, 4).map(({ headers }) => headers['x-webhook-id'])).size).toBe(1)
    expect(got.every(({ genuine }) => genuine)).toBe(true)
    expect(got.map(({ body }) => body.data.agent_name)).toEqual(['one', 'one', 'one', 'one', 'two'])
    const { body } = await api('GET', `/api/webhooks/${id}/deliveries`)
    expect(body.deliveries.find((one: { id: string }) => one.id === got[0]?.body.id)).toMatchObject({
      state: 'delivered',
      attempts: 4,
      response_status: 204,
    })
  })

  /** The one delivery that has been given up. */
  async function deadLetter(id: string): Promise<Json> {
    return await eventually(async () => {
      const { deliveries } = (await api('GET', `/api/webhooks/${id}/deliveries?state=dead`)).body
      expect(deliveries).toHaveLength(1)
      return deliveries[0]
    })
  }

  it('what a slow receiver did not take is a dead letter', async () => {
    await open({ ...allowed, plugins: { webhooks: { ...quick.webhooks, max_attempts: 2, timeout_ms: 100 } } })
    const { id } = await subscribe(['agent_spawned'])
    // It is never answered.
    receiver.answer = () => undefined
    await stage.spawn('slow')
    expect(await deadLetter(id)).toMatchObject({
      attempts: 2,
      error: expect.stringMatching(/100 ms/),
      settled_at: expect.any(String),
    })
  })

  it('what a redirecting receiver did not take is a dead letter that can be sent again', async () => {
    await open({ ...allowed, plugins: { webhooks: { ...quick.webhooks, max_attempts: 2 } } })
    const { id } = await subscribe(['agent_spawned'])
    let fail = true
    receiver.answer = (response) => {
      if (fail) response.writeHead(307, { location: `${receiver.url}/elsewhere` }).end()
      else response.writeHead(200).end('ok')
    }
    await stage.spawn('redirected')
    const dead = await deadLetter(id)
    expect(dead).toMatchObject({ attempts: 2, error: expect.stringMatching(/redirected to/) })
    expect(receiver.received.some(({ path }) => path === '/elsewhere')).toBe(false)
    fail = false
    const again = await api('POST', `/api/webhooks/${id}/deliveries/${dead.id}/retry`)
    expect(again).toMatchObject({ status: 200, body: { state: 'pending', attempts: 0 } })
    const [, , last] = await receiver.count(3)
    expect(last?.body).toMatchObject({ id: dead.id, data: { agent_name: 'redirected' } })
    expect((await api('POST', `/api/webhooks/${id}/deliveries/evt_${'0'.repeat(32)}/retry`)).status).toBe(404)
    expect((await api('POST', `/api/webhooks/${id}/deliveries/${dead.id}/retry`)).status).toBe(409)
  })

  it('a receiver that was gone gets what happened meanwhile when it is back', async () => {
    await open()
    const { id } = await subscribe(['agent_spawned'])
    const { port } = receiver
    await receiver[Symbol.asyncDispose]()
    for (const name of ['one', 'two']) await stage.spawn(name)
    let body: Json = {}
    while (!(body.deliveries?.at(-1)?.attempts > 0)) body = (await api('GET', `/api/webhooks/${id}/deliveries`)).body
    receiver = await startReceiver(SECRET, port)
    const got = await receiver.count(2)
    expect(got.map((one) => one.body.data.agent_name)).toEqual(['one', 'two'])
    expect(got[0]?.body.id).toBe(body.deliveries.at(-1).id)
  })

  it('beyond what may wait for one target deliveries are dead letters at once', async () => {
    await open({
      ...allowed,
      plugins: { webhooks: { ...quick.webhooks, max_waiting: 2, back_off_min_ms: 60_000, back_off_max_ms: 60_000 } },
    })
    receiver.answer = (response) => {
      response.writeHead(503).end()
    }
    const { id } = await subscribe(['agent_spawned'])
    for (const name of ['a', 'b', 'c']) await stage.spawn(name)
    let body: Json = {}
    while (!(body.dead > 0)) body = (await api('GET', `/api/webhooks/${id}/deliveries`)).body
    expect(body).toMatchObject({ total: 3, pending: 2, dead: 1 })
    expect(body.deliveries[0].error).toMatch(/more than 2/)
    await subscribe(['agent_terminated'])
    expect((await api('GET', '/api/webhooks?counts=true')).body.webhooks).toMatchObject([
      { id, pending: 2, dead: 1 },
      { pending: 0, dead: 0 },
    ])
    expect((await api('GET', '/api/webhooks')).body.webhooks[0]).not.toHaveProperty('dead')
  })
})
