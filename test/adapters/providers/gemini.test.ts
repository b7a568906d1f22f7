import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'
import { failureInStream } from '../../../adapters/providers/gemini/errors.ts'
import { Decoder } from '../../../adapters/providers/gemini/decode.ts'
import { encode } from '../../../adapters/providers/gemini/encode.ts'
import { vertexAi } from '../../../adapters/providers/gemini/index.ts'
import { collect, request, textOf } from '../../contract/provider.ts'
import { openGemini, openVertex } from '../../support/gemini-stage.ts'
import type { Json } from '../../support/json.ts'

const never = new AbortController().signal
const event = (body: object): string => `data: ${JSON.stringify(body)}\n\n`
const said = (parts: readonly object[], more: object = {}): string =>
  event({ candidates: [{ content: { role: 'model', parts }, ...more }] })
const end = (finishReason: string): string =>
  event({ candidates: [{ finishReason }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } })
function decode(...pieces: readonly string[]): CompletionEvent[] {
  const decoder = new Decoder('gemini', request('hi'))
  return [...pieces.flatMap((piece) => [...decoder.feed(new TextEncoder().encode(piece))]), ...decoder.finish()]
}
const encoded = (more: Partial<CompletionRequest> = {}) =>
  JSON.parse(encode(request('hi', { model: 'gemini-2.5-flash', ...more }))) as Record<string, Json>

describe('what is sent', () => {
  it('the key goes in a header, never in the address', async () => {
    await using stage = await openGemini()
    await collect(stage.client, stage.play({ kind: 'text', deltas: ['x'] }))
    const [call] = stage.fake.completions
    expect(call?.headers['x-goog-api-key']).toBe('AIza-test-key')
    expect(call?.url.href).toMatch(/\/v1beta\/models\/gemini-3-flash-preview:streamGenerateContent\?alt=sse$/)
  })
  it.each([
    ['gemini-2.5-flash', true, { thinkingBudget: -1, includeThoughts: true }],
    ['gemini-2.5-flash', false, { thinkingBudget: 0 }],
    ['gemini-2.5-pro', false, { thinkingBudget: 128 }],
    ['gemini-3-pro-preview', true, { thinkingLevel: 'HIGH', includeThoughts: true }],
    ['gemini-3.8-flash', false, { thinkingLevel: 'LOW' }],
    ['gemini-flash-latest', true, { thinkingLevel: 'HIGH', includeThoughts: true }],
    ['gemini-2.0-flash', true, undefined],
    ['gemma-3-27b-it', true, undefined],
    ['gemini-2.5-flash', undefined, undefined],
  ])('%s asked to think: %s', (model, thinking, expected) => {
    expect(encoded({ model, ...(thinking !== undefined && { thinking }) }).generationConfig.thinkingConfig).toEqual(
      expected,
    )
  })
  it('a schema goes as JSON Schema without the name of its dialect, and not beside tools before generation 3', () => {
    const responseFormat = {
      type: 'json_schema' as const,
      name: 'x',
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { a: { type: 'number' } },
      },
    }
    expect(encoded({ responseFormat, tools: [] }).generationConfig).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object', properties: { a: { type: 'number' } } },
    })
    expect(encoded({ responseFormat }).generationConfig).toEqual({})
    expect(encoded({ responseFormat, model: 'gemini-3-flash' }).generationConfig.responseMimeType).toBe(
      'application/json',
    )
  })
  it('further fields are handed on and replace nothing', () => {
    const body = encoded({
      maxTokens: 5,
      extra: {
        contents: [],
        safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
        generationConfig: { topK: 3, maxOutputTokens: 99 },
      },
    })
    expect(body.contents).toHaveLength(1)
    expect(body.safetySettings).toHaveLength(1)
    expect(body.generationConfig).toEqual({ topK: 3, maxOutputTokens: 5 })
  })
  it('only calls of this turn that another model began carry what stands for a signature', () => {
    const called = (id: string): CompletionRequest['turns'] => [
      {
        role: 'assistant',
        text: '',
        calls: [
          { id, name: 'add', args: {} },
          { id: `${id}b`, name: 'add', args: {} },
        ],
      },
      { role: 'tool', callId: id, tool: 'add', text: '1', failed: false },
      { role: 'tool', callId: `${id}b`, tool: 'add', text: '2', failed: false },
    ]
    const turn = (text: string): CompletionRequest['turns'] => [{ role: 'user', parts: [{ type: 'text', text }] }]
    const { contents } = encoded({
      model: 'gemini-3-pro',
      turns: [...turn('a'), ...called('old'), ...turn('b'), ...called('new')],
    })
    const signatures = contents
      .flatMap(({ parts }: Json) => parts)
      .filter((part: Json) => part.functionCall)
      .map((part: Json) => part.thoughtSignature)
    expect(signatures).toEqual([undefined, undefined, 'skip_thought_signature_validator', undefined])
  })
})

describe('embedding', () => {
  it('says what a text is for to the models that are told', async () => {
    await using stage = await openGemini()
    for (const [model, purpose, expected] of [
      ['gemini-embedding-001', 'query', 'RETRIEVAL_QUERY'],
      ['gemini-embedding-001', 'document', 'RETRIEVAL_DOCUMENT'],
      ['gemini-embedding-2', 'query', undefined],
    ] as const) {
      stage.play({ kind: 'embed', vectors: [[1]] })
      await stage.client.embed?.({ model, texts: ['x'], purpose }, never)
      expect(stage.fake.calls.at(-1)?.body).toEqual({
        requests: [
          { model: `models/${model}`, content: { parts: [{ text: 'x' }] }, ...(expected && { taskType: expected }) },
        ],
      })
    }
  })
})

describe('what comes back', () => {
  it.each([
    ['STOP', 'done'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'refused'],
    ['RECITATION', 'refused'],
    ['PROHIBITED_CONTENT', 'refused'],
    ['BLOCKLIST', 'refused'],
    ['SPII', 'refused'],
    ['OTHER', 'done'],
    ['SOMETHING_NEW', 'done'],
  ])('%s ends with %s', (finish, stop) => {
    expect(decode(said([{ text: 'x' }]), end(finish)).at(-1)).toMatchObject({ type: 'end', stop })
  })
  it.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])(
    '%s is a fault of the model that may be tried again',
    (finish) => {
      expect(() => decode(event({ candidates: [{ finishReason: finish, finishMessage: 'print(add(' }] }))).toThrow(
        expect.objectContaining({ reason: 'malformed', retry: 'later', message: expect.stringContaining(finish) }),
      )
    },
  )
  it('text that is signed and calls keep their order in what is given back, and thoughts are left out', () => {
    const events = decode(
      said([{ text: 'hm', thought: true }]),
      said([{ text: 'a' }]),
      said([{ text: 'b' }]),
      said([{ text: '', thoughtSignature: 's0' }]),
      said([{ functionCall: { id: 'f1', name: 'add', args: { a: 1 } }, thoughtSignature: 's1' }]),
      end('STOP'),
    )
    const last = events.at(-1)
    expect(last?.type === 'end' && JSON.parse(last.replay ?? '')).toEqual({
      parts: [
        { text: 'ab' },
        { text: '', thoughtSignature: 's0' },
        { functionCall: { id: 'f1', name: 'add', args: { a: 1 } }, thoughtSignature: 's1' },
      ],
    })
  })
  it('calls without ids get numbers that no earlier call of the conversation has', () => {
    const earlier = request('hi', {
      turns: [{ role: 'assistant', text: '', calls: [{ id: 'call_7', name: 'add', args: {} }] }],
    })
    const decoder = new Decoder('gemini', earlier)
    const events = [
      ...decoder.feed(
        new TextEncoder().encode(
          said([{ functionCall: { name: 'add' } }, { functionCall: { name: 'time', args: {} } }]) + end('STOP'),
        ),
      ),
      ...decoder.finish(),
    ]
    expect(events.flatMap((one) => (one.type === 'call' ? [one.call.id] : []))).toEqual(['call_8', 'call_9'])
  })
  it('reads an answer that comes in one event', () => {
    expect(
      textOf(decode(event({ candidates: [{ content: { parts: [{ text: 'all' }] }, finishReason: 'STOP' }] }))),
    ).toBe('all')
  })
})

describe('what fails', () => {
  it('an unknown key is an auth failure although Google answers 400', async () => {
    await using stage = await openGemini('gemini-2.5-flash', 'wrong')
    await expect(stage.client.probe(never)).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })
  it.each([
    [
      [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' }],
      { reason: 'rate_limit', retry: 'later', retryAfterSecs: 34.07 },
    ],
    [
      [
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }],
        },
      ],
      { reason: 'rate_limit', retry: 'never' },
    ],
  ])('a limit tells when it is over, and a daily one is not waited for', (details, expected) => {
    expect(
      failureInStream('gemini', { code: 429, message: 'Quota exceeded.', status: 'RESOURCE_EXHAUSTED', details }),
    ).toMatchObject(expected)
  })
})

describe('a project of Google Cloud', () => {
  it('one grant serves many requests, and calls at the same time share it', async () => {
    await using stage = await openVertex()
    const asked = Array.from({ length: 5 }, () => stage.play({ kind: 'text', deltas: ['x'] }))
    await Promise.all(asked.map((one) => collect(stage.client, one)))
    await stage.client.probe(never)
    expect(stage.grants()).toBe(1)
  })
  it('a token that ends is asked for again', async () => {
    await using stage = await openVertex({ expiresIn: 30 })
    for (let n = 0; n < 2; n++) await collect(stage.client, stage.play({ kind: 'text', deltas: ['x'] }))
    expect(stage.grants()).toBe(2)
  })
  it('a token that is not accepted any more fails once and the next call has a new one', async () => {
    await using stage = await openVertex()
    await collect(stage.client, stage.play({ kind: 'text', deltas: ['x'] }))
    stage.revoke()
    await expect(stage.client.probe(never)).rejects.toMatchObject({ reason: 'auth' })
    await stage.client.probe(never)
    expect(stage.grants()).toBe(2)
  })
  it('the project of the configuration comes before that of the account', async () => {
    await using stage = await openVertex({ project: 'other-project' })
    await collect(stage.client, stage.play({ kind: 'text', deltas: ['x'] }))
    expect(stage.fake.completions[0]?.url.pathname).toContain('/projects/other-project/locations/global/')
  })
  it('credentials that cannot be used are told apart, and nothing of them is told', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-vertex-'))
    try {
      await writeFile(join(folder, 'broken.json'), '{"type": "service_account", "private_key": "TOP-SECRET"')
      await writeFile(join(folder, 'wrong.json'), '{"type": "external_account", "client_secret": "TOP-SECRET"}')
      await writeFile(
        join(folder, 'bad-key.json'),
        JSON.stringify({
          type: 'service_account',
          client_email: 'a@b',
          private_key: 'TOP-SECRET',
          token_uri: 'http://127.0.0.1:9/token',
        }),
      )
      for (const [key, why] of [
        [join(folder, 'none.json'), 'ENOENT'],
        [join(folder, 'broken.json'), 'not JSON'],
        [join(folder, 'wrong.json'), 'service account'],
        [join(folder, 'bad-key.json'), 'private key'],
      ] as const) {
        await using stage = await openVertex({ key })
        const failure = await stage.client.probe(never).then(
          () => undefined,
          (error: unknown) => error,
        )
        expect(failure).toMatchObject({ reason: 'auth', retry: 'never', message: expect.stringContaining(why) })
        expect(String(failure)).not.toContain('TOP-SECRET')
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
  it('a region has an address of its own, and a key of express mode needs no project', async () => {
    const urls: string[] = []
    const client = (location: string, key: string) =>
      vertexAi.connect({
        name: 'vertex-ai',
        config: { location, project: key.startsWith('AIza') ? undefined : 'p' },
        baseUrl: 'https://aiplatform.googleapis.com',
        apiKey: async () => key,
        fetch: async (url, options) => {
          urls.push(`${url} ${Object.keys(options?.headers ?? {}).join(' ')}`)
          throw new Error('no network')
        },
      })
    for (const [location, key] of [
      ['europe-west4', 'key'],
      ['eu', 'key'],
      ['global', 'AIza-express'],
    ] as const)
      await client(location, key)
        .probe(never)
        .catch(() => {})
    expect(urls).toEqual([
      expect.stringContaining(
        'https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4/' +
          'publishers/google/models/gemini-2.5-flash:countTokens',
      ),
      expect.stringContaining('https://aiplatform.eu.rep.googleapis.com/'),
      expect.stringMatching(
        /^https:\/\/aiplatform\.googleapis\.com\/v1beta1\/publishers\/google\/models\/.*x-goog-api-key/,
      ),
    ])
  })
})
