import { expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import { openCohere } from '../../support/cohere-stage.ts'
import type { GeminiBody } from '../../support/fake-gemini-rules.ts'
import { openGemini, openVertex } from '../../support/gemini-stage.ts'

const usage = 'detailed' as const
const parts = (body: unknown) => ((body as GeminiBody).contents ?? []).flatMap((content) => content.parts ?? [])
const calls = {
  kind: 'calls' as const,
  calls: [
    { name: 'system_time', args: {} },
    { name: 'system_time', args: {} },
  ],
  thinking: ['let me look'],
}

it('an agent on Gemini signs every step of a turn with tools, and none of it is kept', async () => {
  await using vendor = await openGemini('gemini-3-flash-preview')
  await using stage = await openChat({
    config: {
      default_provider: 'gemini',
      default_model: 'gemini-3-flash-preview',
      providers: { gemini: { base_url: vendor.fake.origin, api_key: 'AIza-test-key' } },
    },
  })
  const agent = await stage.spawn('clock')
  for (const scenario of [
    calls,
    calls,
    { kind: 'text' as const, deltas: ['It is ', 'late ✓'], usage },
    { kind: 'text' as const, deltas: ['Again.'] },
  ])
    vendor.fake.play(scenario)
  const answer = (await (await stage.post(`/api/agents/${agent}/message`, { message: 'what time is it?' })).json()) as {
    response: string
    iterations: number
    input_tokens: number
    output_tokens: number
    cost_usd: number
  }
  // Two steps of 10 and 5 tokens, then one of 100 and 50, of which 80 came from the cache: USD 0.5 and 3 a million,
  // cached 0.05.
  expect(answer).toMatchObject({ response: 'It is late ✓', iterations: 3, input_tokens: 120, output_tokens: 60 })
  expect(answer.cost_usd).toBeCloseTo((40 * 0.5 + 80 * 0.05 + 60 * 3) / 1e6, 9)
  const signed = vendor.fake.completions.map(({ body }) =>
    parts(body)
      .filter(({ functionCall }) => functionCall)
      .map((part) => part.thoughtSignature),
  )
  expect(signed).toEqual([[], ['sig1+/==', undefined], ['sig1+/==', undefined, 'sig2+/==', undefined]])
  // The next turn is told what was called, not how it was thought of.
  expect(await (await stage.post(`/api/agents/${agent}/message`, { message: 'and now?' })).json()).toMatchObject({
    response: 'Again.',
  })
  const last = parts(vendor.fake.completions.at(-1)?.body)
  expect(last.filter(({ functionCall }) => functionCall)).toHaveLength(4)
  expect(last.some((part) => part.thoughtSignature !== undefined || part.functionCall?.id !== undefined)).toBe(false)
  expect(JSON.stringify(await stage.session(agent))).not.toContain('sig1')
})

it('an agent on Vertex AI works with a service account that was stored over the API', async () => {
  await using vendor = await openVertex()
  await using stage = await openChat({
    config: {
      default_provider: 'vertex-ai',
      default_model: 'gemini-2.5-pro',
      providers: { 'vertex-ai': { base_url: vendor.fake.origin } },
    },
  })
  expect((await stage.post('/api/providers/vertex-ai/key', { api_key: vendor.key })).status).toBe(200)
  expect(await (await stage.post('/api/providers/vertex-ai/test')).json()).toMatchObject({ status: 'ok' })
  vendor.fake.play({ kind: 'text', deltas: ['Hello'] })
  expect(await (await stage.post(`/api/agents/${stage.agent}/message`, { message: 'hi' })).json()).toMatchObject({
    response: 'Hello',
    provider: 'vertex-ai',
  })
  expect(vendor.grants()).toBe(1)
  const { body } = await stage.host.json('GET', '/api/providers')
  expect(JSON.stringify(body)).not.toContain('PRIVATE KEY')
})

it('an agent on Cohere gets its plan back with the results of its tools', async () => {
  await using vendor = await openCohere()
  await using stage = await openChat({
    config: {
      default_provider: 'cohere',
      default_model: 'command-a-03-2025',
      providers: { cohere: { base_url: `${vendor.fake.origin}/v2`, api_key: 'co-key' } },
    },
  })
  const agent = await stage.spawn('clock')
  for (const scenario of [calls, { kind: 'text' as const, deltas: ['late'] }]) vendor.fake.play(scenario)
  expect(
    await (await stage.post(`/api/agents/${agent}/message`, { message: 'what time is it?' })).json(),
  ).toMatchObject({ response: 'late' })
  const messages =
    (vendor.fake.completions.at(-1)?.body as { messages: { tool_plan?: string; role: string }[] } | undefined)
      ?.messages ?? []
  expect(messages.filter(({ tool_plan: plan }) => plan === 'let me look')).toHaveLength(1)
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
})
