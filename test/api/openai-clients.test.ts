import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { AIMessage, HumanMessage, SystemMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { APICallError, generateText, streamText } from 'ai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat()
})
afterEach(() => {
  stage.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = async (tools: string[] = []): Promise<string> => {
  const name = `client-${serial++}`
  await stage.spawn(name, tools)
  return name
}
const last = () => stage.fake.requests.at(-1)?.body
const said = () =>
  last()
    ?.messages?.filter(({ role }) => role !== 'system')
    .map(({ role, content }) => `${role}: ${String(content)}`)

describe('the Vercel AI SDK', () => {
  const model = (name: string, apiKey = 'none', url = stage.host.url) =>
    createOpenAICompatible({ name: 'svc', baseURL: `${url}/v1`, apiKey, includeUsage: true })(name)
  const quiet = { maxRetries: 0 }

  it('generates a text with its usage', async () => {
    const { text, usage, finishReason } = await generateText({ ...quiet, model: model(await spawn()), prompt: 'hello' })
    expect(text).toBe('Hello from the fake.')
    expect(finishReason).toBe('stop')
    expect([usage.inputTokens, usage.outputTokens, usage.totalTokens]).toEqual([10, 20, 30])
  })
  it('streams one', async () => {
    stage.fake.script({ text: ['Hello', ' from', ' the', ' fake.'], gapMs: 3 })
    const result = streamText({ ...quiet, model: model(`svc:${await spawn()}`), prompt: 'hello' })
    let text = ''
    for await (const delta of result.textStream) text += delta
    expect(text).toBe('Hello from the fake.')
    expect(await result.finishReason).toBe('stop')
    expect((await result.usage).outputTokens).toBe(20)
  })
  it('keeps a conversation of its own, with system messages and options', async () => {
    const name = await spawn()
    const messages = [
      { role: 'user' as const, content: 'I am Ada' },
      { role: 'assistant' as const, content: 'Hi Ada' },
      { role: 'user' as const, content: 'who am I?' },
    ]
    await generateText({
      ...quiet,
      model: model(name),
      system: 'Be brief.',
      messages,
      temperature: 0.5,
      maxOutputTokens: 99,
    })
    expect(said()).toEqual(['user: I am Ada', 'assistant: Hi Ada', 'user: who am I?'])
    expect(String(last()?.messages?.[0]?.content)).toContain('Be brief.')
    expect(last()).toMatchObject({ temperature: 0.5 })
    expect(last()?.max_tokens ?? last()?.max_completion_tokens).toBe(99)
  })
  it('sends an image', async () => {
    await generateText({
      ...quiet,
      model: model(await spawn()),
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is it?' },
            { type: 'file', data: Buffer.from(png, 'base64'), mediaType: 'image/png' },
          ],
        },
      ],
    })
    expect(JSON.stringify(last()?.messages?.at(-1)?.content)).toContain(png)
  })
  it('gets the answer of an agent that used its own tools', async () => {
    stage.fake.script({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }, { text: 'stored' })
    const { text, toolCalls } = await generateText({ ...quiet, model: model(await spawn(['kv_set'])), prompt: 'store' })
    expect([text, toolCalls]).toEqual(['stored', []])
  })
  it('aborts', async () => {
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const abort = new AbortController()
    const result = streamText({
      ...quiet,
      model: model(await spawn()),
      prompt: 'hello',
      abortSignal: abort.signal,
      onError: () => undefined,
    })
    const reading = (async () => {
      for await (const delta of result.textStream) if (delta !== '') abort.abort()
    })()
    words.say('endless')
    await reading
    expect(await (await stage.fake.request(index)).closed).toBe(false)
    words.end()
  })
  it('throws what it can tell apart', async () => {
    const name = await spawn()
    stage.fake.script({ status: 401 })
    await expect(generateText({ ...quiet, model: model(name), prompt: 'hello' })).rejects.toSatisfy(
      (error) => APICallError.isInstance(error) && error.statusCode === 500,
    )
    await using locked = await openChat({ config: { api_key: 'secret' } })
    await expect(
      generateText({ ...quiet, model: model('x', 'wrong', locked.host.url), prompt: 'hello' }),
    ).rejects.toSatisfy(
      (error) => APICallError.isInstance(error) && error.statusCode === 401 && error.message === 'Invalid API key',
    )
    stage.fake.script({ text: ['half'], fault: 'cut' })
    const failures: unknown[] = []
    const result = streamText({
      ...quiet,
      model: model(name),
      prompt: 'hello',
      onError: ({ error }) => {
        failures.push(error)
      },
    })
    let text = ''
    for await (const delta of result.textStream) text += delta
    expect(text).toBe('half')
    expect(failures).toHaveLength(1)
  })
  it('asks eight times at once', async () => {
    const name = await spawn()
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => generateText({ ...quiet, model: model(name), prompt: `m${n}` })),
    )
    expect(answers.map(({ text }) => text)).toEqual(Array.from({ length: 8 }, () => 'Hello from the fake.'))
  })
})

/** Its declared type says that there are none. */
function totalTokens(chunk: object): number {
  const usage: unknown = 'usage_metadata' in chunk ? chunk.usage_metadata : undefined
  return typeof usage === 'object' && usage !== null && 'total_tokens' in usage ? Number(usage.total_tokens) : 0
}

describe('LangChain', () => {
  const chat = (model: string, more: object = {}, url = stage.host.url, apiKey = 'none') =>
    new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: `${url}/v1` }, ...more })

  it('invokes', async () => {
    const answer = await chat(await spawn(), { temperature: 0.5, maxTokens: 99 }).invoke('hello')
    expect(answer.content).toBe('Hello from the fake.')
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 10, output_tokens: 20, total_tokens: 30 })
    expect(last()).toMatchObject({ temperature: 0.5 })
    expect(last()?.max_tokens ?? last()?.max_completion_tokens).toBe(99)
  })
  it('streams', async () => {
    stage.fake.script({ text: ['Hello', ' from', ' the', ' fake.'], gapMs: 3 })
    let text = ''
    let tokens = 0
    for await (const chunk of await chat(`svc:${await spawn()}`).stream('hello')) {
      text += String(chunk.content)
      tokens = Math.max(tokens, totalTokens(chunk))
    }
    expect([text, tokens]).toEqual(['Hello from the fake.', 30])
  })
  it('keeps a conversation of its own', async () => {
    await chat(await spawn()).invoke([
      new SystemMessage('Be brief.'),
      new HumanMessage('I am Ada'),
      new AIMessage('Hi Ada'),
      new HumanMessage('who am I?'),
    ])
    expect(said()).toEqual(['user: I am Ada', 'assistant: Hi Ada', 'user: who am I?'])
    expect(String(last()?.messages?.[0]?.content)).toContain('Be brief.')
  })
  it('sends an image', async () => {
    await chat(await spawn()).invoke([
      new HumanMessage({
        content: [
          { type: 'text', text: 'what is it?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        ],
      }),
    ])
    expect(JSON.stringify(last()?.messages?.at(-1)?.content)).toContain(png)
  })
  it('aborts', async () => {
    const words = byHand()
    stage.fake.script({ text: words.text })
    const index = stage.fake.requests.length
    const abort = new AbortController()
    const reading = (async () => {
      for await (const chunk of await chat(await spawn()).stream('hello', { signal: abort.signal }))
        if (chunk.content !== '') abort.abort()
    })()
    words.say('endless')
    await expect(reading).rejects.toThrow()
    expect(await (await stage.fake.request(index)).closed).toBe(false)
    words.end()
  })
  it('throws what it can tell apart', async () => {
    await using locked = await openChat({ config: { api_key: 'secret' } })
    await expect(chat('x', {}, locked.host.url, 'wrong').invoke('hello')).rejects.toMatchObject({ status: 401 })
    await expect(chat(await spawn(), { n: 2 }).invoke('hello')).rejects.toMatchObject({ status: 400 })
  })
  it('asks eight times at once', async () => {
    const model = chat(await spawn())
    const answers = await model.batch(Array.from({ length: 8 }, (_, n) => `m${n}`))
    expect(answers.map(({ content }) => content)).toEqual(Array.from({ length: 8 }, () => 'Hello from the fake.'))
  })
})
