import { BedrockRuntimeClient, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'svc/sdk'
import type { CompletionRequest, ProviderClient, Turn } from 'svc/providers'
import { FrameReader } from '../../../adapters/providers/bedrock/frames.ts'
import type { Frame } from '../../../adapters/providers/bedrock/frames.ts'
import { bedrock } from '../../../adapters/providers/bedrock/index.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { collect, request } from '../../contract/provider.ts'
import { frame, ID, REGION, SECRET, startFakeBedrock } from '../../support/fake-bedrock.ts'
import type { FakeBedrock } from '../../support/fake-bedrock.ts'
import { outboundSettings } from '../../support/provider-stage.ts'

const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
const never = new AbortController().signal
let fake: FakeBedrock
let outbound: ReturnType<typeof createOutbound>
let client: ProviderClient
const connect = (config: object = {}, key: string | undefined = 'test-key'): ProviderClient =>
  bedrock.connect({
    name: 'bedrock',
    config: parse(bedrock.config, { region: REGION, ...config }),
    baseUrl: fake.origin,
    fetch: outbound.forOperator(),
    apiKey: async () => key,
  })

beforeEach(async () => {
  fake = await startFakeBedrock()
  outbound = createOutbound({ settings: () => outboundSettings })
  client = connect()
})
afterEach(async () => {
  await outbound[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})
const ask = (more: Partial<CompletionRequest> = {}) => collect(client, { ...request('hello'), model: CLAUDE, ...more })
const sent = () => fake.asked.at(-1) ?? {}
const user = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })

describe('the fake speaks as Bedrock does', () => {
  // AWS's client would speak HTTP/2 by itself; the fake, like a proxy, speaks the older one.
  const sdk = async () => {
    const { NodeHttpHandler } = await import('@smithy/node-http-handler')
    return new BedrockRuntimeClient({
      region: REGION,
      endpoint: fake.origin,
      credentials: { accessKeyId: ID, secretAccessKey: SECRET },
      maxAttempts: 1,
      requestHandler: new NodeHttpHandler(),
      authSchemePreference: ['aws.auth#sigv4'],
    })
  }

  it("AWS's own client signs for it and reads its stream", async () => {
    fake.script({ thinking: ['let me ', 'see'], text: ['Grüße ', '😀'], calls: [{ name: 'add', args: { a: 'ü' } }] })
    using runtime = {
      client: await sdk(),
      [Symbol.dispose]() {
        this.client.destroy()
      },
    }
    const { stream } = await runtime.client.send(
      new ConverseStreamCommand({
        modelId: CLAUDE,
        messages: [{ role: 'user', content: [{ text: 'go' }] }],
        inferenceConfig: { maxTokens: 4000 },
        toolConfig: { tools: [{ toolSpec: { name: 'add', inputSchema: { json: { type: 'object' } } } }] },
        additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2000 } },
      }),
    )
    const seen: object[] = []
    for await (const event of stream ?? []) seen.push(event)
    expect(seen.map((event) => Object.keys(event)[0])).toContain('messageStop')
    expect(
      seen
        .flatMap((event) =>
          'contentBlockDelta' in event
            ? [(event.contentBlockDelta as { delta: { text?: string } }).delta.text ?? '']
            : [],
        )
        .join(''),
    ).toBe('Grüße 😀')
    expect(seen.at(-1)).toMatchObject({ metadata: { usage: { inputTokens: 10, outputTokens: 20 } } })
    await expect(
      runtime.client.send(
        new ConverseStreamCommand({ modelId: 'none', messages: [{ role: 'user', content: [{ text: 'go' }] }] }),
      ),
    ).rejects.toMatchObject({ name: 'ValidationException' })
    fake.script({
      raw: [
        frame('messageStart', { role: 'assistant' }),
        frame('throttlingException', { message: 'slow down' }, 'exception'),
      ],
    })
    const throttled = await runtime.client.send(
      new ConverseStreamCommand({ modelId: CLAUDE, messages: [{ role: 'user', content: [{ text: 'go' }] }] }),
    )
    await expect(
      (async () => {
        for await (const event of throttled.stream ?? [])
          if ('throttlingException' in event) throw event.throttlingException
      })(),
    ).rejects.toMatchObject({ name: 'ThrottlingException' })
  })

  for (const [why, body, model = CLAUDE] of [
    [
      'roles that do not take turns',
      {
        messages: [
          { role: 'user', content: [{ text: 'a' }] },
          { role: 'user', content: [{ text: 'b' }] },
        ],
      },
    ],
    [
      'a result without a call',
      {
        toolConfig: { tools: [{ toolSpec: { name: 'a', inputSchema: { json: { type: 'object' } } } }] },
        messages: [{ role: 'user', content: [{ toolResult: { toolUseId: 'x', content: [{ text: '1' }] } }] }],
      },
    ],
    [
      'calls without tools',
      {
        messages: [
          { role: 'user', content: [{ text: 'a' }] },
          { role: 'assistant', content: [{ toolUse: { toolUseId: 'x', name: 'a', input: {} } }] },
          { role: 'user', content: [{ toolResult: { toolUseId: 'x', content: [{ text: '1' }] } }] },
        ],
      },
    ],
    ['blank text', { messages: [{ role: 'user', content: [{ text: ' ' }] }] }],
    [
      'a cache point for a model without a cache',
      { messages: [{ role: 'user', content: [{ text: 'a' }, { cachePoint: { type: 'default' } }] }] },
      'meta.llama3-3-70b-instruct-v1:0',
    ],
    ['a field it does not know', { max_tokens: 5, messages: [{ role: 'user', content: [{ text: 'a' }] }] }],
  ] as const) {
    it(`refuses ${why}`, async () => {
      const answer = await fetch(`${fake.origin}/model/${encodeURIComponent(model)}/converse-stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
        body: JSON.stringify(body),
      })
      expect(answer.status).toBe(400)
    })
  }
})

describe('keys', () => {
  for (const [how, config, key] of [
    ['an access key id whose secret stands beside it', { secret_access_key: SECRET }, ID],
    ['an access key id with its secret', {}, `${ID}:${SECRET}`],
    ['a key of a session', {}, `${ID}:${SECRET}:FwoGZXIvYXdzE//a:b+c==`],
    ['a Bedrock API key', { secret_access_key: SECRET }, 'test-key'],
  ] as const) {
    it(`${how} signs in, also for models whose id has to be encoded`, async () => {
      client = connect(config, key)
      expect((await ask()).at(-1)).toMatchObject({ type: 'end' })
      expect(await client.models?.(never)).toEqual([
        'amazon.nova-lite-v1:0',
        'meta.llama3-3-70b-instruct-v1:0',
        CLAUDE,
        'global.anthropic.claude-opus-5-5',
      ])
      expect(fake.calls.at(-1)?.headers['x-amz-security-token']).toBe(
        key.includes('FwoG') ? 'FwoGZXIvYXdzE//a:b+c==' : undefined,
      )
    })
  }
  it('an access key id without a secret is told what to do, and nothing is sent', async () => {
    client = connect({}, ID)
    await expect(ask()).rejects.toMatchObject({
      reason: 'auth',
      retry: 'never',
      message: expect.stringContaining('AWS_SECRET_ACCESS_KEY'),
    })
    expect(fake.calls).toHaveLength(0)
  })
  it('a wrong secret, and none, are refused as such', async () => {
    client = connect({}, `${ID}:wrong`)
    await expect(ask()).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
    client = bedrock.connect({
      name: 'bedrock',
      config: parse(bedrock.config, {}),
      baseUrl: fake.origin,
      fetch: outbound.forOperator(),
      apiKey: async () => undefined,
    })
    await expect(ask()).rejects.toMatchObject({ reason: 'auth' })
    expect(fake.calls.at(-1)?.headers.authorization).toBeUndefined()
  })
  it('the address is that of the region', () => {
    const at = (region?: string) => bedrock.address?.(parse(bedrock.config, region === undefined ? {} : { region }))
    expect([at(), at('eu-central-1'), at('cn-north-1')]).toEqual([
      'https://bedrock-runtime.us-east-1.amazonaws.com',
      'https://bedrock-runtime.eu-central-1.amazonaws.com',
      'https://bedrock-runtime.cn-north-1.amazonaws.com.cn',
    ])
    expect(() => at('evil.example/')).toThrow(/region/)
  })
  it('lists are asked of the service that has them, in the region of the address', async () => {
    const asked: string[] = []
    const elsewhere = bedrock.connect({
      name: 'bedrock',
      config: parse(bedrock.config, { region: REGION }),
      baseUrl: 'https://bedrock-runtime.ap-south-1.amazonaws.com/',
      apiKey: async () => `${ID}:${SECRET}`,
      fetch: async (url, { headers } = {}) => {
        asked.push(`${url} ${/\d{8}\/[^/]+/.exec(headers?.['authorization'] ?? '')?.[0].slice(9)}`)
        throw new Error('stop')
      },
    })
    await expect(elsewhere.models?.(never)).rejects.toThrow('stop')
    await expect(
      collect(elsewhere, { ...request('x'), model: 'arn:aws:bedrock:x:1:inference-profile/a' }),
    ).rejects.toThrow('stop')
    expect(asked).toEqual([
      'https://bedrock.ap-south-1.amazonaws.com/foundation-models' +
        '?byInferenceType=ON_DEMAND&byOutputModality=TEXT ap-south-1',
      'https://bedrock-runtime.ap-south-1.amazonaws.com/model/' +
        'arn%3Aaws%3Abedrock%3Ax%3A1%3Ainference-profile%2Fa/converse-stream ap-south-1',
    ])
  })
})

describe('what is sent', () => {
  for (const model of [
    CLAUDE,
    'global.anthropic.claude-opus-5-5',
    'amazon.nova-lite-v1:0',
    'meta.llama3-3-70b-instruct-v1:0',
  ]) {
    it(`${model} takes a request with and without thinking, a temperature and a limit`, async () => {
      for (const thinking of [true, false, undefined])
        await ask({ model, temperature: 2, ...(thinking !== undefined && { thinking }) })
      expect(fake.calls).toHaveLength(3)
    })
  }
  it('cache points stand where the model has them, and nowhere when the cache is off', async () => {
    const points = () =>
      [
        sent()['system'],
        sent()['toolConfig'].tools,
        ...sent()['messages'].map(({ content }: { content: object[] }) => content),
      ].map((blocks: object[]) => blocks.some((block) => 'cachePoint' in block))
    const turns = [
      user('one'),
      { role: 'assistant', text: 'two', calls: [] },
      user('three'),
      { role: 'assistant', text: '', calls: [{ id: 'c', name: 'add', args: {} }] },
      { role: 'tool', callId: 'c', tool: 'add', text: '', failed: true },
    ] satisfies Turn[]
    await ask({ turns })
    expect(points()).toEqual([true, true, false, false, true, false, true])
    await ask({ turns, model: 'amazon.nova-lite-v1:0' })
    expect(points()).toEqual([true, false, false, false, true, false, true])
    await ask({ turns, model: 'meta.llama3-3-70b-instruct-v1:0' })
    expect(points()).not.toContain(true)
    client = connect({ prompt_caching: false })
    await ask({ turns })
    expect(points()).not.toContain(true)
    expect(sent()['messages'].at(-1).content).toEqual([
      { toolResult: { toolUseId: 'c', content: [{ text: '(no output)' }], status: 'error' } },
    ])
  })
  it('calls of earlier turns name their tools when none is offered any more', async () => {
    await ask({
      tools: [],
      turns: [
        user('a'),
        { role: 'assistant', text: '', calls: [{ id: 'a/b', name: 'gone', args: 'x' }] },
        { role: 'tool', callId: 'a/b', tool: 'gone', text: 'y', failed: false },
      ],
    })
    expect(sent()['toolConfig'].tools[0]).toMatchObject({ toolSpec: { name: 'gone' } })
    expect(sent()['messages'][1].content).toEqual([
      { toolUse: { toolUseId: 'a_b', name: 'gone', input: { input: 'x' } } },
    ])
  })
  it('a guardrail, further fields and a strict schema are handed on', async () => {
    client = connect({ guardrail: { id: 'gr-1', version: '3' } })
    const schema = { type: 'object', properties: {}, additionalProperties: false }
    await ask({
      maxTokens: 50,
      extra: {
        requestMetadata: { a: 'b' },
        messages: [],
        inferenceConfig: { topP: 0.5, maxTokens: 1 },
        additionalModelRequestFields: { top_k: 5 },
      },
      responseFormat: { type: 'json_schema', name: 'x', schema, strict: true },
    })
    expect(sent()).toMatchObject({
      guardrailConfig: { guardrailIdentifier: 'gr-1', guardrailVersion: '3' },
      requestMetadata: { a: 'b' },
      inferenceConfig: { topP: 0.5, maxTokens: 50 },
      additionalModelRequestFields: { top_k: 5 },
      outputConfig: {
        textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'x', schema: JSON.stringify(schema) } } },
      },
    })
    expect(sent()['messages']).toHaveLength(1)
  })
})

describe('what comes back', () => {
  it('ends as the vendor says', async () => {
    for (const [stop, expected] of [
      ['end_turn', 'done'],
      ['stop_sequence', 'done'],
      ['max_tokens', 'length'],
      ['model_context_window_exceeded', 'length'],
      ['guardrail_intervened', 'refused'],
      ['content_filtered', 'refused'],
      ['something_new', 'done'],
    ] as const) {
      fake.script({ text: ['x'], stop })
      expect((await ask()).at(-1)).toMatchObject({ type: 'end', stop: expected })
    }
    fake.script({ text: ['x'], stop: 'malformed_tool_use' })
    await expect(ask()).rejects.toMatchObject({ reason: 'malformed', retry: 'later' })
  })
  it('what was thought is given out with calls, hidden parts too, and goes back in its place', async () => {
    fake.script({ thinking: ['h', 'm'], redacted: 'hidden', text: ['I look.'], calls: [{ name: 'add' }] })
    const events = await ask({ thinking: true })
    const end = events.at(-1)
    if (end?.type !== 'end' || end.replay === undefined) throw new Error('no replay')
    const calls = events.flatMap((one) => (one.type === 'call' ? [one.call] : []))
    await ask({
      thinking: true,
      turns: [
        user('hello'),
        { role: 'assistant', text: 'I look.', calls, replay: end.replay },
        { role: 'tool', callId: calls[0]?.id ?? '', tool: 'add', text: '1', failed: false },
      ],
    })
    expect(sent()['messages'][1].content.map((block: object) => Object.keys(block)[0])).toEqual([
      'reasoningContent',
      'reasoningContent',
      'text',
      'toolUse',
    ])
    expect(sent()['messages'][1].content[1]).toMatchObject({ reasoningContent: { reasoningText: { text: 'hm' } } })
  })
  for (const [type, status, reason, retry] of [
    ['ThrottlingException', 429, 'rate_limit', 'later'],
    ['ServiceQuotaExceededException', 400, 'rate_limit', 'never'],
    ['ModelNotReadyException', 429, 'overloaded', 'later'],
    ['ModelTimeoutException', 408, 'timeout', 'later'],
    ['ModelErrorException', 424, 'server_error', 'later'],
    ['ExpiredTokenException', 403, 'auth', 'never'],
    ['ResourceNotFoundException', 404, 'not_found', 'never'],
  ] as const) {
    it(`${type} is ${reason}`, async () => {
      fake.script({ status, type })
      await expect(ask()).rejects.toMatchObject({ reason, retry })
    })
  }
  it('exceptions within an answer are told apart', async () => {
    for (const [type, reason] of [
      ['throttlingException', 'rate_limit'],
      ['modelStreamErrorException', 'server_error'],
      ['internalServerException', 'server_error'],
      ['validationException', 'invalid_request'],
    ] as const) {
      fake.script({ raw: [frame('messageStart', { role: 'assistant' }), frame(type, { message: 'no' }, 'exception')] })
      await expect(ask()).rejects.toMatchObject({ reason })
    }
  })
})

describe('frames', () => {
  const broken = (what: string): Error => new Error(what)
  const readAll = (chunks: readonly Uint8Array[]): Frame[] => {
    const frames: Frame[] = []
    const reader = new FrameReader(broken)
    for (const chunk of chunks) reader.feed(chunk, ({ headers, payload }) => frames.push({ headers, payload }))
    return frames
  }
  const bytes = Buffer.concat([
    frame('a', 'x'.repeat(50)),
    frame('a', ''),
    frame('b', 'y'.repeat(70_000)),
    frame('a', 'z'),
  ])

  it('are the same wherever the network cuts them', () => {
    const whole = readAll([bytes]).map(({ headers, payload }) => [headers[':event-type'], payload.length])
    expect(whole).toEqual([
      ['a', 50],
      ['a', 0],
      ['b', 70_000],
      ['a', 1],
    ])
    for (const step of [1, 3, 11, 12, 13, 1000, 70_001]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) =>
        bytes.subarray(at * step, (at + 1) * step),
      )
      expect(readAll(chunks).map(({ headers, payload }) => [headers[':event-type'], payload.length])).toEqual(whole)
    }
  })
  it('that are damaged anywhere are refused', () => {
    const one = Buffer.from(frame('contentBlockDelta', '{"a":1}'))
    for (let at = 0; at < one.length; at++) {
      const damaged = Buffer.from(one)
      damaged[at] = (damaged[at] ?? 0) ^ 0x40
      expect(() => readAll([damaged])).toThrow(/sent a (?:damaged )?frame/)
    }
  })
})
