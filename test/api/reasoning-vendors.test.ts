import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { dialects } from '../support/dialects.ts'
import { startFakeAnthropic } from '../support/fake-anthropic.ts'
import { REGION, startFakeBedrock } from '../support/fake-bedrock.ts'
import { startFakeGemini } from '../support/fake-gemini.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startFakeResponses } from '../support/fake-responses.ts'
import type { Json } from '../support/json.ts'

const THOUGHT = ['Let me ', 'ponder.']
const SAID = ['It is', ' four.']
interface Vendor {
  readonly provider: string
  readonly model: string
  /** What the file says of it. */
  readonly config: Readonly<Record<string, unknown>>
  /** The next answer thinks and says these. */
  play(thinking: readonly string[], text: readonly string[]): void
  /** The body of the last request. */
  asked(): unknown
}
const stack = new AsyncDisposableStack()
let stage: ChatStage
const vendors = new Map<string, Vendor>()
let serial = 0

async function startVendors(): Promise<readonly Vendor[]> {
  const anthropic = stack.use(await startFakeAnthropic())
  const bedrock = stack.use(await startFakeBedrock())
  const gemini = stack.use(await startFakeGemini({ prefix: '/v1beta/models', admit: () => undefined }))
  const responses = stack.use(await startFakeResponses('test-key'))
  const compatible = async (provider: 'deepseek' | 'openrouter'): Promise<Vendor> => {
    const fake = stack.use(await startFakeProvider({ dialect: dialects[provider] }))
    return {
      provider,
      model: 'fake-1',
      config: { base_url: fake.origin + dialects[provider].base, api_key: 'test-key' },
      play: (reasoning, text) => fake.script({ reasoning, text }),
      asked: () => fake.requests.at(-1)?.body,
    }
  }
  return [
    {
      provider: 'anthropic',
      model: 'claude-sonnet-4-5-20250929',
      config: { base_url: anthropic.origin, api_key: 'test-key' },
      play: (thinking, text) => anthropic.script({ thinking, text }),
      asked: () => anthropic.asked.at(-1),
    },
    {
      provider: 'bedrock',
      model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
      config: { base_url: bedrock.origin, api_key: 'test-key', region: REGION },
      play: (thinking, text) => bedrock.script({ thinking, text }),
      asked: () => bedrock.asked.at(-1),
    },
    {
      provider: 'gemini',
      model: 'gemini-3-flash-preview',
      config: { base_url: gemini.origin, api_key: 'test-key' },
      play: (thinking, deltas) => gemini.play({ kind: 'text', thinking, deltas }),
      asked: () => gemini.completions.at(-1)?.body,
    },
    {
      provider: 'codex',
      model: 'gpt-5.3-codex',
      config: { base_url: `${responses.origin}/v1`, api_key: 'test-key' },
      play: (thinking, deltas) => responses.play({ kind: 'text', thinking, deltas }),
      asked: () => responses.asked.at(-1)?.body,
    },
    await compatible('deepseek'),
    await compatible('openrouter'),
    {
      provider: 'openai',
      model: 'fake-1',
      config: {},
      // A server of an open model writes it into the text.
      play: (thinking, text) => stage.fake.script({ text: ['<think>', ...thinking, '</think>', ...text] }),
      asked: () => stage.fake.requests.at(-1)?.body,
    },
  ]
}
beforeAll(async () => {
  const all = await startVendors()
  for (const vendor of all) vendors.set(vendor.provider, vendor)
  const fake = stack.use(await startFakeProvider())
  stage = stack.use(
    await openChat({
      fake,
      config: {
        providers: {
          openai: { base_url: fake.url, api_key: 'test-key' },
          ...Object.fromEntries(
            all.filter(({ provider }) => provider !== 'openai').map(({ provider, config }) => [provider, config]),
          ),
        },
      },
    }),
  )
})
afterAll(() => stack.disposeAsync())
const spawn = ({ provider, model }: Vendor) =>
  stage.spawn(
    `thinks-${serial++}`,
    [],
    `[model]\nprovider = "${provider}"\nmodel = "${model}"\nmax_tokens = 4000\n[thinking]\nenabled = true`,
  )
const thinking = (events: readonly { event: string; data: Json }[]) =>
  events.flatMap(({ event, data }) => (event === 'thinking' ? [data.content] : [])).join('')

describe.each([
  ['anthropic', 'thinking blocks'],
  ['bedrock', 'reasoning content'],
  ['gemini', 'thoughts'],
  ['codex', 'summaries of reasoning'],
  ['deepseek', 'reasoning_content'],
  ['openrouter', 'reasoning'],
  ['openai', '<think> in the text'],
])('%s, %s', (name) => {
  const vendor = (): Vendor => vendors.get(name) as Vendor

  it('reach the stream and the session, and are not sent again', async () => {
    const agent = await spawn(vendor())
    const path = `/api/agents/${agent}/message/stream`
    vendor().play(THOUGHT, SAID)
    const events = parseEvents(await (await stage.post(path, { message: 'What is 2 + 2?' })).text())
    expect(events.at(-1)?.event, JSON.stringify(events.at(-1))).toBe('done')
    expect(thinking(events)).toBe('Let me ponder.')
    expect((await stage.session(agent)).messages.at(-1)).toMatchObject({
      content: 'It is four.',
      thinking: 'Let me ponder.',
    })
    vendor().play([], ['Yes.'])
    expect((await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'Sure?' })).status).toBe(200)
    const asked = JSON.stringify(vendor().asked())
    expect(asked).toContain('It is four.')
    expect(asked).not.toContain('ponder')
  })

  it('reach clients of the OpenAI API, and the socket until /think off', async () => {
    const agent = await spawn(vendor())
    vendor().play(THOUGHT, SAID)
    const answer: Json = await (
      await stage.post('/v1/chat/completions', {
        model: agent,
        messages: [{ role: 'user', content: 'What is 2 + 2?' }],
      })
    ).json()
    expect(answer.choices[0].message).toMatchObject({
      content: 'It is four.',
      reasoning_content: 'Let me ponder.',
    })
    const frames: Json[] = []
    const socket = new WebSocket(`${stage.host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    const say = async (content: string) => {
      const from = frames.length
      socket.send(JSON.stringify({ type: 'message', content }))
      await expect.poll(() => frames.slice(from).some(({ type }) => type === 'response' || type === 'error')).toBe(true)
      // Other frames, such as `agents_updated`, may come at any time.
      return frames.slice(from).filter(({ type }) => type !== 'agents_updated')
    }
    const deltas = (all: Json[]) =>
      all.flatMap(({ type, content }) => (type === 'thinking_delta' ? [content] : [])).join('')
    try {
      await expect.poll(() => frames.some(({ type }) => type === 'connected')).toBe(true)
      vendor().play(THOUGHT, SAID)
      const shown = await say('What is 2 + 2?')
      expect(deltas(shown)).toBe('Let me ponder.')
      expect(shown.at(-1)).toMatchObject({ type: 'response', content: 'It is four.', thinking: 'Let me ponder.' })
      await say('/think off')
      vendor().play(THOUGHT, SAID)
      const hidden = await say('And now?')
      expect(hidden.at(-1)).toMatchObject({ type: 'response', content: 'It is four.' })
      expect(JSON.stringify(hidden)).not.toContain('ponder')
    } finally {
      socket.close()
      await closed
    }
  })
})
