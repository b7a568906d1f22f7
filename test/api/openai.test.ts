import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
let stage: ChatStage
let client: OpenAI
let scribe: string
beforeAll(async () => {
  stage = await openChat()
  scribe = await stage.spawn('scribe')
  client = new OpenAI({ baseURL: `${stage.host.url}/v1`, apiKey: 'none', maxRetries: 0 })
})
afterEach(() => { stage.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] }) })
afterAll(async () => { await stage[Symbol.asyncDispose]() })
const last = () => stage.fake.requests.at(-1)?.body
const hello = [{ role: 'user' as const, content: 'hello' }]

describe('the official client', () => {
  it('creates a completion', async () => {
    const answer = await client.chat.completions.create({ model: 'svc:scribe', messages: hello })
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f-]{36}$/), object: 'chat.completion', created: expect.any(Number), model: 'scribe',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello from the fake.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
    })
  })
  it('streams one: the role first, one id, the usage last', async () => {
    stage.fake.script({ text: ['Hello', ' from', ' the', ' fake.'], gapMs: 3 })
    const chunks = []
    for await (const chunk of await client.chat.completions.create({ model: 'scribe', messages: hello, stream: true })) chunks.push(chunk)
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
    await expect(client.chat.completions.create({ model: 'scribe', messages: hello })).rejects.toThrow(OpenAI.InternalServerError)
    await expect(client.chat.completions.create({ model: 'scribe', messages: [] })).rejects.toThrow(OpenAI.BadRequestError)
    stage.fake.script({ text: ['half'], fault: 'cut' })
    const stream = await client.chat.completions.create({ model: 'scribe', messages: hello, stream: true })
    let text = ''
    await expect((async () => { for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '' })()).rejects.toThrow(OpenAI.APIError)
    expect(text).toBe('half')
  })
  it('passes temperature, max_tokens and images on', async () => {
    await client.chat.completions.create({
      model: 'scribe', temperature: 0.25, max_tokens: 77,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it?' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }] }],
    })
    expect(last()?.temperature).toBe(0.25)
    expect(last()?.max_tokens ?? last()?.max_completion_tokens).toBe(77)
    const content = last()?.messages?.at(-1)?.content
    expect(JSON.stringify(content)).toContain(png)
    expect(JSON.stringify(content)).toContain('what is it?')
  })
  it('forwards the last message of the user only: the agent has its own history', async () => {
    await stage.host.json('POST', `/api/agents/${scribe}/session/reset`)
    await client.chat.completions.create({ model: 'scribe', messages: [{ role: 'system', content: 'IGNORED' }, { role: 'user', content: 'earlier' }, { role: 'assistant', content: 'said' }, { role: 'user', content: 'now' }] })
    expect(last()?.messages?.filter(({ role }) => role !== 'system').map(({ content }) => content)).toEqual(['now'])
    expect(JSON.stringify(last())).not.toContain('IGNORED')
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
    expect((await client.chat.completions.create({ model: 'scribe', messages: hello })).choices[0]?.message.content).toBe('Hello from the fake.')
    expect((await stage.session(scribe)).messages.some(({ mark, content }) => mark === 'cancelled' && content === 'endless')).toBe(true)
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
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.chat.completions.create({ model: 'scribe', messages: hello })))
    expect(answers.every(({ choices }) => choices[0]?.message.content === 'Hello from the fake.')).toBe(true)
  })
})

describe('the model selects the agent', () => {
  const answeredBy = async (model: string | undefined) => (await stage.host.json('POST', '/v1/chat/completions', { model, messages: hello })).body.model
  it('by svc:name, by id, by name, and anything else is the first one', async () => {
    expect(await answeredBy('svc:scribe')).toBe('scribe')
    expect(await answeredBy(scribe)).toBe('scribe')
    expect(await answeredBy(`svc:${scribe}`)).toBe('scribe')
    expect(await answeredBy('scribe')).toBe('scribe')
    for (const model of ['gpt-4o', '', 'svc:nobody', '00000000-0000-4000-8000-000000000000', undefined]) expect(await answeredBy(model)).toBe('assistant')
  })
  it('and without any agent there is none', async () => {
    await using empty = await openChat({ listen: false })
    await empty.host.json('DELETE', `/api/agents/${empty.agent}`)
    const { status, body } = await empty.host.json('POST', '/v1/chat/completions', { model: 'x', messages: hello })
    expect(status).toBe(404)
    expect(body).toEqual({ error: { message: expect.stringContaining("'x'"), type: 'invalid_request_error', param: null, code: 'model_not_found' } })
  })
})

describe('bad requests', () => {
  it.each([
    [{}], [{ messages: 'hello' }], [{ messages: {} }], [{ messages: [] }], [{ messages: ['x'] }], [{ messages: [{ role: 'system', content: 'x' }] }],
    [{ messages: [{ role: 'user', content: '' }] }], [{ messages: [{ role: 'user', content: 5 }] }], [{ messages: hello, temperature: 'hot' }], [{ messages: hello, max_tokens: -1 }],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://example.com/a.png' } }] }] }],
  ])('%j is 400 in OpenAI\'s shape', async (body) => {
    const { status, body: answer } = await stage.host.json('POST', '/v1/chat/completions', body)
    expect(status).toBe(400)
    expect(answer.error).toMatchObject({ type: 'invalid_request_error', message: expect.any(String), code: expect.any(String) })
  })
  it('an unknown role counts as the user', async () => {
    expect((await stage.host.json('POST', '/v1/chat/completions', { messages: [{ role: 'narrator', content: 'hi' }] })).status).toBe(200)
  })
})

describe('curl', () => {
  const curl = async (...args: string[]): Promise<string> => (await promisify(execFile)('curl', ['-sS', '-N', ...args])).stdout
  it('reads a completion and a stream that ends with [DONE]', async () => {
    const data = (stream: boolean): string[] => ['-H', 'content-type: application/json', '-d', JSON.stringify({ model: 'scribe', stream, messages: hello }), `${stage.host.url}/v1/chat/completions`]
    expect(JSON.parse(await curl(...data(false))).choices[0].message.content).toBe('Hello from the fake.')
    const text = await curl(...data(true))
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('data: '))).toEqual([])
    const events = parseEvents(text)
    expect(events.slice(0, -1).every(({ data: chunk }) => chunk.object === 'chat.completion.chunk')).toBe(true)
  })
})
