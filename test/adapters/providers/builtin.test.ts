import { describe, expect, it } from 'vitest'
import type { CompletionEvent, CompletionRequest, Turn } from 'svc/providers'
import { evaluate } from '../../../adapters/providers/builtin/arithmetic.ts'
import { openBuiltin } from '../../support/provider-stage.ts'
import { collect, request, textOf } from '../../contract/provider.ts'

const user = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })
const assistant = (text: string): Turn => ({ role: 'assistant', text, calls: [] })
async function ask(turns: readonly Turn[], more: Partial<CompletionRequest> = {}): Promise<CompletionEvent[]> {
  await using stage = await openBuiltin()
  return await collect(stage.client, { ...request(''), turns, ...more })
}
const say = async (...turns: readonly Turn[]): Promise<string> => textOf(await ask(turns))
const calls = (events: readonly CompletionEvent[]) =>
  events.flatMap((event) => (event.type === 'call' ? [event.call] : []))

describe('the offline model', () => {
  it('says what it is and how to connect a real model', async () => {
    for (const text of ['Hello!', 'What is the meaning of life?', 'help']) {
      const answer = await say(user(text))
      expect(answer).toContain('No model provider is configured')
      expect(answer).toContain('OPENAI_API_KEY')
      expect(answer).toContain('Ollama')
      expect(answer).toContain('[model]')
    }
  })
  it('documents the form of a tool call in its help', async () => {
    const help = await say(user('/help'))
    expect(help).toContain('use <tool> {"argument": "value"}')
    expect(help).toContain('/tool <tool>')
  })
  it('gives the same answer to the same conversation', async () => {
    expect(await ask([user('hi')])).toEqual(await ask([user('hi')]))
  })
  it('answers in several deltas', async () => {
    expect((await ask([user('help')])).filter(({ type }) => type === 'text').length).toBeGreaterThan(5)
  })
  it('remembers names and words of the conversation', async () => {
    expect(
      await say(user('My name is Ada Lovelace and I like numbers'), assistant('ok'), user("What's my name?")),
    ).toBe('Your name is Ada Lovelace.')
    expect(await say(user("what's my name?"))).toContain('not told me')
    expect(await say(user('the sky is blue'), assistant('ok'), user('What did I say?'))).toBe(
      'You said: the sky is blue',
    )
    expect(await say(user('my name is bob and hello'))).toContain('bob.')
  })
  it('calculates', async () => {
    expect(await say(user('What is 2 * (3 + 4)?'))).toBe('14')
    expect(await say(user('10 / 4 ='))).toBe('2.5')
  })
  it('lists tools and says when there is none', async () => {
    expect(await say(user('list tools'))).toContain('- add: Adds two numbers.')
    expect(textOf(await ask([user('list tools')], { tools: [] }))).toBe('This agent has no tools.')
  })
  it('calls a tool when asked, also several at once and over several lines', async () => {
    const events = await ask([user('please:\nuse add {"a": 1,\n  "b": 2}\n/tool time')])
    expect(calls(events)).toEqual([
      { id: 'call_1', name: 'add', args: { a: 1, b: 2 } },
      { id: 'call_2', name: 'time', args: {} },
    ])
  })
  it('hands on arguments that are not JSON as they are', async () => {
    expect(calls(await ask([user('use add {"a": }')]))[0]?.args).toBe('{"a": }')
  })
  it('does not take every use of the word for a call', async () => {
    expect(calls(await ask([user('I use time wisely')]))).toEqual([])
    expect(calls(await ask([user('use your head')]))).toEqual([])
    expect(await say(user('/tool nonsense {}'))).toBe('There is no tool "nonsense". This agent has: add, time.')
  })
  it('numbers calls on, so that no id is used twice', async () => {
    const turns: Turn[] = [
      user('x'),
      { role: 'assistant', text: '', calls: [{ id: 'call_7', name: 'time', args: {} }] },
      { role: 'tool', callId: 'call_7', tool: 'time', text: 'noon', failed: false },
      assistant('time: noon'),
      user('use time'),
    ]
    expect(calls(await ask(turns))[0]?.id).toBe('call_8')
  })
  it('reports what tools gave, failures too', async () => {
    const turns: Turn[] = [
      user('use time\nuse add'),
      {
        role: 'assistant',
        text: '',
        calls: [
          { id: 'a', name: 'time', args: {} },
          { id: 'b', name: 'add', args: {} },
        ],
      },
      { role: 'tool', callId: 'a', tool: 'time', text: 'noon', failed: false },
      { role: 'tool', callId: 'b', tool: 'add', text: 'a is missing', failed: true },
    ]
    expect(await say(...turns)).toBe('time: noon\nadd failed: a is missing')
  })
  it('keeps to the limit of tokens and does not cut characters in two', async () => {
    const events = await ask([user(`echo abc${'😀'.repeat(20)}`)], { maxTokens: 1 })
    expect(textOf(events)).toBe('abc')
    expect(events.at(-1)).toMatchObject({ type: 'end', stop: 'length', usage: { output: 1 } })
  })
})

describe('arithmetic', () => {
  it.each([
    ['1+2*3', 7],
    ['(1+2)*3', 9],
    ['-2^2', 4],
    ['2^3^2', 512],
    ['7 % 4', 3],
    ['0.1+0.2', 0.3],
    ['2*-3', -6],
  ])('%s is %d', (text, value) => {
    expect(evaluate(text)).toBe(value)
  })
  it.each([
    '',
    '5',
    'a+b',
    '1+',
    '(1+2',
    '1 2 +',
    '1/0',
    'process.exit(1)',
    '1..2+3',
    `${'('.repeat(300)}1${')'.repeat(300)}`,
  ])('%s is none', (text) => {
    expect(evaluate(text)).toBeUndefined()
  })
})
