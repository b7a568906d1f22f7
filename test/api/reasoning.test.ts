import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import type { Json } from '../support/json.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { chat: { reasoning_chars: 20 } } } })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (more = ''): Promise<string> => stage.spawn(`reasoning-${serial++}`, ['*'], more)
const thinks = { reasoning: ['Let me ', 'think.'], text: ['It is', ' four.'] }
const events = async (agent: string, body: object = {}) =>
  parseEvents(
    await (await stage.post(`/api/agents/${agent}/message/stream`, { message: 'What is 2 + 2?', ...body })).text(),
  )
const told = (all: readonly { event: string; data: Json }[], name: string): string =>
  all
    .filter(({ event }) => event === name)
    .map(({ data }) => data.content)
    .join('')

describe('what a model thinks', () => {
  it('is streamed, kept with its message, and not given to a model again', async () => {
    const agent = await spawn()
    stage.fake.script(thinks)
    const all = await events(agent)
    expect([told(all, 'thinking'), told(all, 'chunk')]).toEqual(['Let me think.', 'It is four.'])
    expect((await stage.session(agent)).messages.at(-1)).toMatchObject({
      content: 'It is four.',
      thinking: 'Let me think.',
    })
    stage.fake.script({ text: 'Yes.' })
    const { body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'Sure?' })
    expect(body).not.toHaveProperty('thinking')
    expect(JSON.stringify(stage.fake.requests.at(-1)?.body)).not.toContain('Let me think')
  })

  it('is told before the calls it leads to, and kept with them', async () => {
    const agent = await spawn()
    stage.fake.script(
      { reasoning: ['Write.'], calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] },
      { reasoning: ['Done.'], text: 'Written.' },
    )
    const { body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'write' })
    expect(body).toMatchObject({ response: 'Written.', thinking: 'Write.Done.' })
    expect((await stage.session(agent)).messages.slice(1)).toMatchObject([
      { thinking: 'Write.', tools: [{ name: 'kv_set' }] },
      { thinking: 'Done.', content: 'Written.' },
    ])
  })

  it('reaches clients of the OpenAI API as reasoning_content', async () => {
    const agent = await spawn()
    const ask = (stream: boolean) =>
      stage.post('/v1/chat/completions', { model: agent, stream, messages: [{ role: 'user', content: 'think' }] })
    stage.fake.script(thinks)
    const whole: Json = await (await ask(false)).json()
    expect(whole.choices[0].message).toMatchObject({ content: 'It is four.', reasoning_content: 'Let me think.' })
    stage.fake.script(thinks)
    const chunks = parseEvents(await (await ask(true)).text()).filter(({ data }) => data !== '[DONE]')
    const deltas = chunks.map(({ data }) => data.choices[0].delta)
    expect(deltas.map(({ reasoning_content: text = '' }) => text).join('')).toBe('Let me think.')
    expect(deltas[0]).toEqual({ role: 'assistant' })
  })

  it('is found where a server writes it into the text, and only at its beginning', async () => {
    const agent = await spawn()
    stage.fake.script({ text: ['<thi', 'nk>Let me', ' see.</th', 'ink>\n\nIt is ', 'four.'] })
    const all = await events(agent)
    expect([told(all, 'thinking'), told(all, 'chunk')]).toEqual(['Let me see.', 'It is four.'])
    stage.fake.script({ text: ['The tag ', '<think>', ' opens it'] })
    expect(told(await events(agent), 'chunk')).toBe('The tag <think> opens it')
    stage.fake.script({ text: ['<thin', ' ice'] })
    expect(told(await events(agent), 'chunk')).toBe('<thin ice')
  })

  it('is not shown where the manifest or the message switches it off', async () => {
    for (const [more, body] of [
      ['[thinking]\nenabled = false', {}],
      ['', { thinking: false }],
    ] as const) {
      const agent = await spawn(more)
      stage.fake.script(thinks)
      expect(told(await events(agent, body), 'thinking')).toBe('')
      expect((await stage.session(agent)).messages.at(-1)).not.toHaveProperty('thinking')
    }
    const quiet = await spawn('[thinking]\nenabled = true\nstream_thinking = false')
    stage.fake.script(thinks)
    expect(told(await events(quiet), 'thinking')).toBe('')
    expect((await stage.session(quiet)).messages.at(-1)).toMatchObject({ thinking: 'Let me think.' })
  })

  it('is kept up to a limit', async () => {
    const agent = await spawn()
    stage.fake.script({ reasoning: ['0123456789', '0123456789', '0123456789'], text: 'ok' })
    expect(told(await events(agent), 'thinking')).toHaveLength(30)
    expect((await stage.session(agent)).messages.at(-1)?.thinking).toHaveLength(20)
  })
})
