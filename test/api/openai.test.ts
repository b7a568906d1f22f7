import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import type { Fetch, OutboundRequest } from 'svc/sdk'
import { byHand, openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
let stage: ChatStage
let client: OpenAI
let scribe: string
beforeAll(async () => {
  stage = await openChat()
  scribe = await stage.spawn('scribe')
  client = new OpenAI({ baseURL: `${stage.host.url}/v1`, apiKey: 'none', maxRetries: 0 })
})
afterEach(() => {
  stage.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const last = () => stage.fake.requests.at(-1)?.body
const hello = [{ role: 'user' as const, content: 'hello' }]

describe('the official client', () => {
  it('creates a completion', async () => {
    const answer = await client.chat.completions.create({ model: 'svc:scribe', messages: hello })
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f-]{36}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'scribe',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello from the fake.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
    })
  })
  it('streams one: the role first, one id, the usage last', async () => {
    stage.fake.script({ text: ['Hello', ' from', ' the', ' fake.'], gapMs: 3 })
    const chunks = []
    for await (const chunk of await client.chat.completions.create({ model: 'scribe', messages: hello, stream: true }))
      chunks.push(chunk)
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant' })
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello from the fake.')
    const end = chunks.at(-1)
    expect(end?.choices[0]).toEqual({ index: 0, delta: {}, finish_reason: 'stop' })
    expect(end?.usage).toEqual({ prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 })
    expect(chunks.slice(0, -1).every(({ usage }) => usage === undefined)).toBe(true)
  })
  it('lists the agents as models', async () => {
    const models = []
    for await (const model of client.models.list()) models.push(model)
    expect(models.map(({ id }) => id)).toEqual(['svc:assistant', 'svc:scribe'])
    expect(models[0]).toEqual({ id: 'svc:assistant', object: 'model', created: expect.any(Number), owned_by: 'svc' })
  })
  it('throws the class that fits the failure', async () => {
    stage.fake.script({ status: 401 })
    await expect(client.chat.completions.create({ model: 'scribe', messages: hello })).rejects.toThrow(
      OpenAI.InternalServerError,
    )
    await expect(client.chat.completions.create({ model: 'scribe', messages: [] })).rejects.toThrow(
      OpenAI.BadRequestError,
    )
    stage.fake.script({ text: ['half'], fault: 'cut' })
    const stream = await client.chat.completions.create({ model: 'scribe', messages: hello, stream: true })
    let text = ''
    await expect(
      (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
      })(),
    ).rejects.toThrow(OpenAI.APIError)
    expect(text).toBe('half')
  })
  it('passes temperature, max_tokens and images on', async () => {
    await client.chat.completions.create({
      model: 'scribe',
      temperature: 0.25,
      max_tokens: 77,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is it?' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
          ],
        },
      ],
    })
    expect(last()?.temperature).toBe(0.25)
    expect(last()?.max_tokens ?? last()?.max_completion_tokens).toBe(77)
    const content = last()?.messages?.at(-1)?.content
    expect(JSON.stringify(content)).toContain(png)
    expect(JSON.stringify(content)).toContain('what is it?')
  })
  it('raises the class that fits each status', async () => {
    await using locked = await openChat({ config: { api_key: 'secret' } })
    const at = (apiKey: string) => new OpenAI({ baseURL: `${locked.host.url}/v1`, apiKey, maxRetries: 0 })
    await expect(at('wrong').chat.completions.create({ model: 'x', messages: hello })).rejects.toThrow(
      OpenAI.AuthenticationError,
    )
    expect((await at('secret').models.list()).data).toHaveLength(1)
    await expect(at('secret').models.retrieve('nobody')).rejects.toThrow(OpenAI.NotFoundError)
    expect(await at('secret').models.retrieve('svc:assistant')).toMatchObject({ id: 'svc:assistant', object: 'model' })
    await expect(at('secret').chat.completions.create({ model: 'x', n: 2, messages: hello })).rejects.toMatchObject({
      status: 400,
      code: 'unsupported_parameter',
      param: 'n',
      type: 'invalid_request_error',
    })
    locked.fake.script({ status: 503 }, { status: 503 }, { status: 503 })
    await expect(at('secret').chat.completions.create({ model: 'x', messages: hello })).rejects.toMatchObject({
      status: 503,
      constructor: OpenAI.InternalServerError,
    })
    await using poor = await openChat({ config: { rate_limit: { tokens_per_minute: 31 } } })
    await expect(
      new OpenAI({ baseURL: `${poor.host.url}/v1`, apiKey: 'none', maxRetries: 0 }).chat.completions.create({
        model: 'x',
        messages: hello,
      }),
    ).rejects.toMatchObject({
      constructor: OpenAI.RateLimitError,
      status: 429,
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
    })
  })
  it('has no use for tools of the client and says so; one that must be called is refused', async () => {
    const tools = [
      { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object', properties: {} } } },
    ]
    expect(await client.chat.completions.create({ model: 'scribe', messages: hello, tools })).toMatchObject({
      warnings: [expect.stringContaining('tools')],
      choices: [{ finish_reason: 'stop' }],
    })
    await expect(
      client.chat.completions.create({ model: 'scribe', messages: hello, tools, tool_choice: 'required' }),
    ).rejects.toMatchObject({ status: 400, param: 'tool_choice' })
  })
  it('passes response_format on', async () => {
    stage.fake.always({ text: '{"n":42}' })
    const answer = await client.chat.completions.create({
      model: 'scribe',
      messages: hello,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'n',
          strict: true,
          schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
        },
      },
    })
    expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({ n: 42 })
    expect(JSON.stringify(last())).toContain('"required"')
  })
  it('is told the same again under a key, as an answer and as a stream', async () => {
    const before = stage.fake.requests.length
    const ask = () =>
      client.chat.completions.create({ model: 'scribe', messages: hello }, { headers: { 'Idempotency-Key': 'k1' } })
    const answers = await Promise.all(Array.from({ length: 50 }, ask))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    const stream = async () => {
      let text = ''
      let id = ''
      for await (const chunk of await client.chat.completions.create(
        { model: 'scribe', messages: hello, stream: true },
        { headers: { 'Idempotency-Key': 'k2' } },
      )) {
        id = chunk.id
        text += chunk.choices[0]?.delta.content ?? ''
      }
      return `${id} ${text}`
    }
    const first = await stream()
    expect(first).toContain('Hello from the fake.')
    expect(await stream()).toBe(first)
    expect(stage.fake.requests.length - before).toBe(2)
  })
  it('that aborts a stream frees the agent at once', async () => {
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const stream = await client.chat.completions.create({ model: 'scribe', messages: hello, stream: true })
    words.say('endless')
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
    stream.controller.abort()
    expect(await (await stage.fake.request(index)).closed).toBe(false)
    expect(
      (await client.chat.completions.create({ model: 'scribe', messages: hello })).choices[0]?.message.content,
    ).toBe('Hello from the fake.')
    expect(
      (await stage.session(scribe)).messages.some(({ mark, content }) => mark === 'cancelled' && content === 'endless'),
    ).toBe(true)
    words.end()
  })
  it('that aborts a request without a stream frees the agent too', async () => {
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const abort = new AbortController()
    const waiting = client.chat.completions.create({ model: 'scribe', messages: hello }, { signal: abort.signal })
    const { closed } = await stage.fake.request(index)
    abort.abort()
    await expect(waiting).rejects.toThrow(OpenAI.APIUserAbortError)
    expect(await closed).toBe(false)
    words.end()
  })
  it('may ask eight times at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.chat.completions.create({ model: 'scribe', messages: hello })),
    )
    expect(answers.every(({ choices }) => choices[0]?.message.content === 'Hello from the fake.')).toBe(true)
  })
})

describe('conversations', () => {
  const said = () =>
    last()
      ?.messages?.filter(({ role }) => role !== 'system')
      .map(({ role, content }) => `${role}: ${String(content)}`)
  const system = () => String(last()?.messages?.find(({ role }) => role === 'system')?.content ?? '')
  type Turn = { role: 'user' | 'assistant' | 'system'; content: string }
  const ask = async (model: string, messages: Turn[], more: object = {}, headers: Record<string, string> = {}) =>
    (await client.chat.completions.create({ model, messages, ...more }, { headers })).choices[0]?.message.content ?? ''
  const user = (content: string): Turn => ({ role: 'user', content })
  const assistant = (content: string): Turn => ({ role: 'assistant', content })
  let serial = 0
  const spawn = async (): Promise<[name: string, id: string]> => {
    const name = `conv-${serial++}`
    return [name, await stage.spawn(name)]
  }
  it('one message goes on in the session of the agent, which keeps its own history', async () => {
    const [name, id] = await spawn()
    await ask(name, [user('one')])
    await ask(name, [user('two')])
    expect(said()).toEqual(['user: one', 'assistant: Hello from the fake.', 'user: two'])
    expect((await stage.session(id)).message_count).toBe(4)
  })
  it('a history that the session ends with is the same conversation', async () => {
    const [name, id] = await spawn()
    const answer = await ask(name, [user('one')])
    await ask(name, [user('one'), assistant(answer), user('two')])
    expect(said()).toEqual(['user: one', 'assistant: Hello from the fake.', 'user: two'])
    expect((await stage.session(id)).message_count).toBe(4)
  })
  it('any other history is answered from exactly what was sent, beside the session of the agent', async () => {
    const [name, id] = await spawn()
    await ask(name, [user('the agent knows this')])
    await ask(name, [user('my name is Ada'), assistant('Hi Ada'), user('what is my name?')])
    expect(said()).toEqual(['user: my name is Ada', 'assistant: Hi Ada', 'user: what is my name?'])
    expect((await stage.session(id)).message_count).toBe(2)
  })
  it('goes on in one session of its own, and forks where a message was changed', async () => {
    const [name, id] = await spawn()
    const sessions = async () =>
      (await stage.host.json('GET', `/api/agents/${id}/sessions`)).body.sessions.length as number
    const talk: Turn[] = [{ role: 'system', content: 'Be brief.' }, user('a')]
    for (const next of ['b', 'c', 'd']) {
      talk.push(assistant(await ask(name, talk)), user(next))
    }
    await ask(name, talk)
    expect(said()).toEqual([
      'user: a',
      'assistant: Hello from the fake.',
      'user: b',
      'assistant: Hello from the fake.',
      'user: c',
      'assistant: Hello from the fake.',
      'user: d',
    ])
    expect(await sessions()).toBe(2)
    await ask(name, [...talk.slice(0, 3), user('other')])
    expect(said()).toEqual(['user: a', 'assistant: Hello from the fake.', 'user: other'])
    expect(await sessions()).toBe(3)
    expect((await stage.session(id)).message_count).toBe(0)
  })
  it('system messages are said after those of the agent, and only in that conversation', async () => {
    const name = 'tempered'
    await stage.spawn(name, [], '[model]\nsystem_prompt = "You are the agent."')
    await ask(name, [{ role: 'system', content: 'Answer in French.' }, user('hello')])
    expect(system()).toBe('You are the agent.\n\nAnswer in French.')
    await ask(name, [user('hello')])
    expect(system()).toBe('You are the agent.')
    expect(said()).toEqual(['user: hello'])
  })
  it('the same history eight times at once is eight turns that do not see each other', async () => {
    const [name] = await spawn()
    const from = stage.fake.requests.length
    await Promise.all(
      Array.from({ length: 8 }, (_, n) => ask(name, [user('start'), assistant('ok'), user(`branch ${n}`)])),
    )
    const asked = stage.fake.requests
      .slice(from)
      .map(({ body }) => body.messages?.filter(({ role }) => role === 'user').map(({ content }) => content))
    expect(asked).toHaveLength(8)
    expect(asked.every((texts) => texts?.length === 2)).toBe(true)
  })
  it('user and X-Svc-Session name a session of their own', async () => {
    const [name, id] = await spawn()
    await ask(name, [user('I am Ada')], { user: 'ada' })
    await ask(name, [user('I am Bob')], { user: 'bob' })
    await ask(name, [user('who?')], { user: 'ada' })
    expect(said()).toEqual(['user: I am Ada', 'assistant: Hello from the fake.', 'user: who?'])
    await ask(name, [user('IGNORED'), assistant('IGNORED'), user('first')], {}, { 'X-Svc-Session': 'notes' })
    await ask(name, [user('second')], {}, { 'X-Svc-Session': 'notes' })
    expect(said()).toEqual(['user: first', 'assistant: Hello from the fake.', 'user: second'])
    const { session_id: active, message_count: count } = await stage.session(id)
    expect(count).toBe(0)
    await ask(name, [user('here')], {}, { 'X-Svc-Session': active })
    expect((await stage.session(id)).message_count).toBe(2)
    await expect(
      ask(name, [user('there')], {}, { 'X-Svc-Session': '00000000-0000-4000-8000-000000000000' }),
    ).rejects.toThrow(OpenAI.NotFoundError)
  })
})

describe('the model selects the agent', () => {
  const answeredBy = async (model: string | undefined) =>
    (await stage.host.json('POST', '/v1/chat/completions', { model, messages: hello })).body.model
  it('by svc:name, by id, by name, and anything else is the first one', async () => {
    expect(await answeredBy('svc:scribe')).toBe('scribe')
    expect(await answeredBy(scribe)).toBe('scribe')
    expect(await answeredBy(`svc:${scribe}`)).toBe('scribe')
    expect(await answeredBy('scribe')).toBe('scribe')
    for (const model of ['gpt-4o', '', 'svc:nobody', '00000000-0000-4000-8000-000000000000', undefined])
      expect(await answeredBy(model)).toBe('assistant')
  })
  it('and without any agent there is none', async () => {
    await using empty = await openChat({ listen: false })
    await empty.host.json('DELETE', `/api/agents/${empty.agent}`)
    const { status, body } = await empty.host.json('POST', '/v1/chat/completions', { model: 'x', messages: hello })
    expect(status).toBe(404)
    expect(body).toEqual({
      error: {
        message: expect.stringContaining("'x'"),
        type: 'invalid_request_error',
        param: null,
        code: 'model_not_found',
      },
    })
  })
})

describe('bad requests', () => {
  it.each([
    [{}],
    [{ messages: 'hello' }],
    [{ messages: {} }],
    [{ messages: [] }],
    [{ messages: ['x'] }],
    [{ messages: [{ role: 'system', content: 'x' }] }],
    [{ messages: [{ role: 'user', content: '' }] }],
    [{ messages: [{ role: 'user', content: 5 }] }],
    [{ messages: hello, temperature: 'hot' }],
    [{ messages: hello, max_tokens: -1 }],
    [
      {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://example.com/a.png' } }] }],
      },
    ],
  ])("%j is 400 in OpenAI's shape", async (body) => {
    const { status, body: answer } = await stage.host.json('POST', '/v1/chat/completions', body)
    expect(status).toBe(400)
    expect(answer.error).toMatchObject({
      type: 'invalid_request_error',
      message: expect.any(String),
      code: expect.any(String),
    })
  })
  it.each(['narrator', '', 'User', 7])('a role it does not know (%s) is refused', async (role) => {
    const messages = [...hello, { role, content: 'hi' }]
    const { status, body } = await stage.host.json('POST', '/v1/chat/completions', { messages })
    expect(status).toBe(400)
    expect(body).toEqual({
      error: {
        type: 'invalid_request_error',
        message: expect.stringContaining('role'),
        param: 'messages.1.role',
        code: 'invalid_request',
      },
    })
  })
  it.each([
    ['a page', '<html><script>alert(1)</script></html>'],
    ['a text', 'GIF89a'],
    ['a file', '%PDF-1.4\n'],
  ])('%s that is declared a picture is refused', async (_, text) => {
    const url = `data:image/png;base64,${Buffer.from(text).toString('base64')}`
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    const { status, body } = await stage.host.json('POST', '/v1/chat/completions', { messages })
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_image_url', 'messages'])
  })
})

describe('curl', () => {
  const curl = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)('curl', ['-sS', '-N', ...args])).stdout
  it('reads a completion and a stream that ends with [DONE]', async () => {
    const data = (stream: boolean): string[] => [
      '-H',
      'content-type: application/json',
      '-d',
      JSON.stringify({ model: 'scribe', stream, messages: hello }),
      `${stage.host.url}/v1/chat/completions`,
    ]
    expect(JSON.parse(await curl(...data(false))).choices[0].message.content).toBe('Hello from the fake.')
    const text = await curl(...data(true))
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('data: '))).toEqual([])
    const events = parseEvents(text)
    expect(events.slice(0, -1).every(({ data: chunk }) => chunk.object === 'chat.completion.chunk')).toBe(true)
  })
})

describe('a picture at an address', () => {
  const ask = (host: TestHost, url: string) =>
    host.json('POST', '/v1/chat/completions', {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    })
  const bytes = Buffer.from(png, 'base64')
  /** Serves what a path names. */
  const asked: { url: string; request: OutboundRequest | undefined }[] = []
  const fetch: Fetch = async (address, request) => {
    const url = new URL(address)
    asked.push({ url: url.href, request })
    request?.check?.(url)
    if (url.pathname === '/downgraded.png') request?.check?.(new URL('http://pictures.example/x.png'))
    if (url.pathname === '/inside.png') throw new Refusal('forbidden', 'the address is private')
    const found = url.pathname !== '/gone.png'
    const body = url.pathname === '/page.png' ? Buffer.from('<html>') : bytes
    const response = new Response(body, { status: found ? 200 : 404 })
    return {
      status: response.status,
      ok: response.ok,
      url: url.href,
      header: (name) => response.headers.get(name) ?? undefined,
      chunks: () => response.body ?? new ReadableStream<Uint8Array>(),
      text: () => response.text(),
      json: () => response.json(),
      bytes: () => response.bytes(),
      toResponse: () => response,
    }
  }

  it('is refused with what to do, unless the file says otherwise', async () => {
    const { status, body } = await ask(stage.host, 'https://pictures.example/x.png')
    expect([status, body.error.code]).toEqual([400, 'invalid_image_url'])
    expect(body.error.message).toMatch(/data URL.*\[plugins\.openai-api\] fetch_images = true/)
    const set = { key: 'plugins.openai-api.fetch_images', value: true }
    expect((await stage.host.json('POST', '/api/config/set', set)).status).toBeGreaterThanOrEqual(400)
  })
  it('is fetched within limits where that is allowed, and refused when it is no picture or cannot be had', async () => {
    await using host = await startHost({
      fetch,
      config: {
        default_provider: 'builtin',
        plugins: { 'openai-api': { fetch_images: true, max_image_bytes: 1000, image_timeout_secs: 2 } },
      },
    })
    await host.json('POST', '/api/agents', { manifest_toml: 'name = "eye"\n[model]\nprovider = "builtin"' })
    asked.splice(0)
    expect((await ask(host, 'https://pictures.example/x.png')).status).toBe(200)
    expect(asked).toEqual([
      {
        url: 'https://pictures.example/x.png',
        request: expect.objectContaining({ maxBytes: 1000, totalTimeoutMs: 2000 }),
      },
    ])
    for (const path of ['gone', 'page', 'inside', 'downgraded']) {
      const { status, body } = await ask(host, `https://pictures.example/${path}.png`)
      expect([path, status, body.error.code]).toEqual([path, 400, 'invalid_image_url'])
    }
    asked.splice(0)
    for (const url of ['http://pictures.example/x.png', 'file:///etc/passwd', 'ftp://x/y.png', 'x.png', ''])
      expect((await ask(host, url)).status).toBe(400)
    expect(asked).toEqual([])
  })
})
