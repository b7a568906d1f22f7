import type { Heard, Scenario } from '../contract/provider.ts'
import type { HeardMedia } from './fake-media.ts'
import { refuseGemini } from './fake-gemini-rules.ts'
import type { GeminiBody } from './fake-gemini-rules.ts'
import { faulty, startVendor } from './vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from './vendor-server.ts'

/** Codes of google.rpc by the status of HTTP they are sent with. */
const CODES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}
interface Problem {
  readonly error: { readonly code: number; readonly message: string; readonly status: string }
}
const problem = (code: number, message: string, details: readonly object[] = []): Problem => ({
  error: { code, message, status: CODES[code] ?? 'UNKNOWN', ...(details.length > 0 && { details }) },
})
const event = (body: object): string => `data: ${JSON.stringify(body)}\r\n\r\n`
const parts = (list: readonly object[], more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts: list }, index: 0, ...more }],
  modelVersion: 'fake',
  responseId: 'r-1',
})
const USAGE = {
  negative: { promptTokenCount: -5, candidatesTokenCount: 3 },
  absurd: { promptTokenCount: 1e30, candidatesTokenCount: 3 },
  // The count of the candidates leaves out the thoughts; that of the prompt has what was cached in it.
  detailed: {
    promptTokenCount: 100,
    candidatesTokenCount: 30,
    thoughtsTokenCount: 20,
    cachedContentTokenCount: 80,
    totalTokenCount: 150,
  },
}

export interface FakeGemini extends VendorServer {
  play(scenario: Scenario): void
  /** The next picture, or why there is none. */
  playPicture(picture: Uint8Array | { readonly finishReason: string } | { readonly blockReason: string }): void
  heardPicture(): Omit<HeardMedia, 'path'>
  readonly completions: readonly RecordedCall[]
  heard(): Heard
}
/**
 * What comes before the models in a path, and whether a caller may come in: a refusal in Google's words, or nothing.
 */
export interface GeminiEntrance {
  readonly prefix: string
  admit(call: RecordedCall): Problem | undefined
  other?(call: RecordedCall, answer: Answering): boolean
}

/**
 * The Gemini API as its reference describes it: `generateContent`, lists and vectors, with a memory for the
 * signatures it gives out.
 */
export async function startFakeGemini({ prefix, admit, other }: GeminiEntrance): Promise<FakeGemini> {
  const scenarios: Scenario[] = []
  const pictures: Parameters<FakeGemini['playPicture']>[0][] = []
  const signatures = new Set<string>()
  const completions: RecordedCall[] = []

  async function handle(call: RecordedCall, answer: Answering): Promise<void> {
    const { pathname, searchParams } = call.url
    if (other?.(call, answer)) return
    if (searchParams.has('key'))
      return answer.json(400, problem(400, 'The key was sent in the address, where every log sees it.'))
    const refusal = admit(call)
    if (refusal) return answer.json(refusal.error.code, refusal)
    if (pathname === '/v1beta/models' && call.method === 'GET') {
      const second = searchParams.get('pageToken') === 'page 2'
      const names = second
        ? [['gemini-embedding-001', 'embedContent']]
        : [
            ['gemini-2.5-flash', 'generateContent'],
            ['gemini-3-pro', 'generateContent'],
          ]
      return answer.json(200, {
        models: names.map(([name, method]) => ({
          name: `models/${name}`,
          supportedGenerationMethods: [method, 'countTokens'],
        })),
        ...(!second && { nextPageToken: 'page 2' }),
      })
    }
    if (pathname === '/v1beta1/publishers/google/models')
      return answer.json(200, { publisherModels: [{ name: 'publishers/google/models/gemini-2.5-flash' }] })
    const [, model = '', method = ''] = new RegExp(`^${prefix}/([^/:]+):(\\w+)$`).exec(pathname) ?? []
    const body = call.body as GeminiBody
    if (method === 'countTokens') return answer.json(200, { totalTokens: 2 })
    if (method === 'batchEmbedContents') return embed(call, answer, model)
    if (method === 'predict') return predict(call, answer)
    if (method === 'generateContent' && call.method === 'POST') return draw(call, answer, model)
    if (method !== 'streamGenerateContent' || searchParams.get('alt') !== 'sse' || call.method !== 'POST')
      return answer.json(404, problem(404, `Unknown path ${call.method} ${pathname}`))
    completions.push(call)
    const wrong = refuseGemini(model, call.text, body, signatures)
    if (wrong) return answer.json(400, [problem(400, wrong)])
    const scenario = scenarios.shift()
    if (!scenario) throw new Error('nothing is scripted')
    await give(answer, scenario, !/^gemini-[12]/.test(model))
  }

  function embed(call: RecordedCall, answer: Answering, model: string): void {
    const scenario = scenarios.shift()
    if (scenario?.kind === 'status') return refusedBy(answer, scenario)
    const { requests } = call.body as { requests: { model: string; content: { parts: { text: string }[] } }[] }
    if (requests.length > 100) return answer.json(400, problem(400, 'at most 100 requests can be in one batch'))
    if (
      requests.some(
        (one) =>
          one.model !== `models/${model}` ||
          typeof one.content.parts[0]?.text !== 'string' ||
          one.content.parts[0].text === '',
      )
    )
      return answer.json(400, problem(400, 'BatchEmbedContentsRequest.requests[0].model: does not match.'))
    answer.json(200, { embeddings: (scenario?.kind === 'embed' ? scenario.vectors : []).map((values) => ({ values })) })
  }
  /** The platform's models of this family take one text a request; the next one is the next vector. */
  function predict(call: RecordedCall, answer: Answering): void {
    const scenario = scenarios.shift()
    if (scenario?.kind === 'status') return refusedBy(answer, scenario)
    const { instances } = call.body as { instances: { content: string }[] }
    if (instances.length !== 1 || typeof instances[0]?.content !== 'string')
      return answer.json(400, problem(400, 'Only one instance is supported.'))
    const [values = [], ...rest] = scenario?.kind === 'embed' ? scenario.vectors : []
    if (rest.length > 0) scenarios.unshift({ kind: 'embed', vectors: rest })
    answer.json(200, { predictions: [{ embeddings: { values, statistics: { token_count: 3, truncated: false } } }] })
  }

  /** A picture comes after the thoughts about it, which may have drafts. */
  function draw(call: RecordedCall, answer: Answering, model: string): void {
    completions.push(call)
    const wrong = refuseGemini(model, call.text, call.body as GeminiBody, signatures)
    if (wrong) return answer.json(400, problem(400, wrong))
    const scenario = scenarios.shift()
    if (scenario?.kind === 'status') return answer.json(scenario.status, problem(scenario.status, 'It failed.'))
    const picture = pictures.shift()
    if (!picture) throw new Error('no picture is scripted')
    if (!(picture instanceof Uint8Array)) {
      const { blockReason } = picture as { readonly blockReason?: string }
      return answer.json(
        200,
        blockReason ? { promptFeedback: { blockReason } } : parts([{ text: 'I cannot.' }], picture),
      )
    }
    const inlineData = { mimeType: 'image/png', data: Buffer.from(picture).toString('base64') }
    const draft = { mimeType: 'image/png', data: Buffer.from('a draft').toString('base64') }
    answer.json(200, {
      ...parts(
        [{ text: 'A kite?', thought: true }, { inlineData: draft, thought: true }, { text: 'Here.' }, { inlineData }],
        {
          finishReason: 'STOP',
        },
      ),
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 1_130,
        thoughtsTokenCount: 200,
        totalTokenCount: 1_340,
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1_120 }],
      },
    })
  }

  async function give(answer: Answering, scenario: Scenario, newer: boolean): Promise<void> {
    const stream = (pieces: readonly string[], line?: Parameters<Answering['stream']>[2]): Promise<void> =>
      answer.stream('text/event-stream', pieces, line)
    const said = (texts: readonly string[], thought = false): string[] =>
      texts.map((text) => event(parts([{ text, ...(thought && { thought: true }) }])))
    const end = (finishReason: string, usage: object | undefined, list: readonly object[] = [{ text: '' }]): string =>
      event({ ...parts(list, { finishReason }), ...(usage && { usageMetadata: usage }) })
    const usual = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
    switch (scenario.kind) {
      case 'text': {
        const usage =
          scenario.usage === undefined ? usual : scenario.usage === 'missing' ? undefined : USAGE[scenario.usage]
        return stream([
          ...said(scenario.thinking ?? [], true),
          ...said(scenario.deltas),
          end(scenario.stop === 'length' ? 'MAX_TOKENS' : scenario.stop === 'refused' ? 'SAFETY' : 'STOP', usage),
        ])
      }
      case 'calls': {
        const signature = `sig${signatures.size + 1}+/==`
        signatures.add(signature)
        // Calls come whole; parallel ones in one event or in several. Newer models number them and sign the first.
        const wire = scenario.calls.map(({ name, args }, index) => ({
          functionCall: { ...(newer && { id: `fc-${signatures.size}-${index}` }), name, args },
          ...(newer && index === 0 && { thoughtSignature: signature }),
        }))
        return stream([
          ...said(scenario.thinking ?? [], true),
          event(parts(wire.slice(0, 2))),
          ...wire.slice(2).map((part) => event(parts([part]))),
          end('STOP', usual),
        ])
      }
      case 'held':
        return stream(said(scenario.deltas), 'held')
      case 'status':
        // A prompt that is held back is an answer without a candidate.
        if (scenario.about === 'content_filter')
          return stream([
            event({
              promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
              usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
            }),
          ])
        return refusedBy(answer, scenario)
      case 'embed':
        throw new Error('vectors are asked for elsewhere')
      case 'fault':
        return faulty(answer, scenario.fault, {
          said: said(scenario.deltas),
          end: [end('STOP', usual)],
          overloaded: [event(problem(503, 'The model is overloaded. Please try again later.'))],
        })
    }
  }

  function refusedBy(answer: Answering, { status, headers, about }: Extract<Scenario, { kind: 'status' }>): void {
    const message =
      about === 'context_length'
        ? 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'
        : 'It failed.'
    answer.json(status, [problem(status, message)], headers)
  }

  const server = await startVendor(handle)
  return Object.assign(server, {
    play: (scenario: Scenario) => {
      scenarios.push(scenario)
    },
    playPicture: (picture: (typeof pictures)[number]) => {
      pictures.push(picture)
    },
    heardPicture: () => heardPictureOf(completions.at(-1)),
    completions,
    heard: () => heardOf(completions.at(-1)?.body as GeminiBody),
  })
}

function heardPictureOf(call: RecordedCall | undefined): Omit<HeardMedia, 'path'> {
  const body = (call?.body ?? {}) as GeminiBody
  const { aspectRatio, imageSize } = body.generationConfig?.imageConfig ?? {}
  const size = [aspectRatio, imageSize].filter(Boolean).join('/')
  return {
    model: /([^/:]+):generateContent$/.exec(call?.url.pathname ?? '')?.[1] ?? '',
    prompt: String(body.contents?.[0]?.parts?.[0]?.text),
    count: 1,
    ...(size !== '' && { size }),
  }
}

function heardOf({ contents = [], systemInstruction, tools = [] }: GeminiBody): Heard {
  const all = contents.flatMap((content) => content.parts ?? [])
  return {
    system: String(systemInstruction?.parts?.[0]?.text ?? ''),
    texts: all.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])),
    images: all.flatMap(({ inlineData: image }) =>
      image ? [{ mime: String(image.mimeType), base64: String(image.data) }] : [],
    ),
    tools: tools.flatMap((tool) => tool.functionDeclarations ?? []).map(({ name }) => String(name)),
    calls: all.flatMap(({ functionCall: call }) => (call ? [{ name: String(call.name), args: call.args }] : [])),
    results: all.flatMap(({ functionResponse: answer }) =>
      answer ? [String(Object.values(answer.response ?? {})[0])] : [],
    ),
  }
}
export { problem as googleProblem }
