import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dialects } from './dialects.ts'
import type { Dialect } from './dialects.ts'
import { refuse } from './fake-provider-rules.ts'
import type { ChatBody } from './fake-provider-rules.ts'
import { answerMedia, isMediaPath } from './fake-media.ts'
import type { HeardMedia, MediaAnswer } from './fake-media.ts'

/** What one request is answered with. Everything that is left out is what a healthy provider does. */
export interface Answer extends Omit<MediaAnswer, 'fault'> {
  /** Each string is one delta. An async iterable lets a test decide when the next one comes. */
  readonly text?: string | readonly string[] | AsyncIterable<string>
  /** Deltas of `reasoning_content`, before the text. */
  readonly reasoning?: readonly string[]
  /** `args` as an object is written as JSON; as a string it is sent as it is. */
  readonly calls?: readonly { readonly name: string; readonly args?: unknown; readonly id?: string }[]
  /** What texts are embedded to. */
  readonly vectors?: readonly (readonly number[])[]
  /** Characters of call arguments in one chunk. */
  readonly argsPiece?: number
  /** `null` leaves the usage out. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  readonly finish?: string
  /** Milliseconds before the headers and between two chunks. */
  readonly delayMs?: number
  readonly gapMs?: number
  /** An answer that is not a stream. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Written as they are after the headers of a stream, instead of anything made from the fields above. */
  readonly raw?: readonly (string | Uint8Array)[]
  /**
   * What goes wrong once `text` is said: `silent` sends no headers, `stall` stops without closing, `cut` closes in good
   * order without the end marker, `reset` breaks the connection off, `slow-bytes` sends every byte by itself, `split`
   * cuts chunks inside characters.
   */
  readonly fault?: 'silent' | 'stall' | 'cut' | 'reset' | 'slow-bytes' | 'split'
}
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: ChatBody
  /** What it asked for, when that was pictures or sound. */
  media?: HeardMedia | undefined
  /** Settles when the exchange is over: whether the whole answer went out. */
  readonly closed: Promise<boolean>
}
type Scripted = Answer | ((request: RecordedRequest) => Answer | Promise<Answer>)

export interface FakeProvider extends AsyncDisposable {
  /** The base URL, ending in `/v1`. */
  readonly url: string
  readonly origin: string
  readonly requests: readonly RecordedRequest[]
  /** Connections that were opened. */
  readonly connections: number
  /** The answers of the next requests, in order. After them `always` holds again. */
  script(...answers: readonly Scripted[]): void
  /** What is answered when nothing is scripted. */
  always(answer: Scripted): void
  /** Settles with the request of this number, counted from 0, when it is there. */
  request(index: number): Promise<RecordedRequest>
}
export interface FakeProviderOptions {
  /** Only this bearer key is accepted. Any, and none, when absent. */
  readonly key?: string
  readonly models?: readonly string[]
  /** Answers `GET /api/tags` as Ollama does. */
  readonly ollama?: boolean
  /** Whose wire it speaks where that departs from OpenAI's; then its own key is the only one that is accepted. */
  readonly dialect?: Dialect
}

/** A real HTTP server that speaks OpenAI's wire and refuses what OpenAI refuses. */
export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const models = options.models ?? ['fake-1', 'fake-2']
  const dialect = options.dialect ?? dialects.openai
  const requests: RecordedRequest[] = []
  const scripted: Scripted[] = []
  const waiting = new Map<number, (request: RecordedRequest) => void>()
  let always: Scripted = { text: ['Hello', ' from', ' the', ' fake.'] }
  let connections = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const path = request.url ?? '/'
    const isMedia = isMediaPath(path)
    const text = isMedia ? '' : bytes.toString()
    const closed = new Promise<boolean>((resolve) => response.once('close', () => resolve(response.writableFinished)))
    let body: ChatBody = {}
    try {
      if (text) body = JSON.parse(text)
    } catch {
      return problem(response, 400, 'We could not parse the JSON body of your request.')
    }
    const recorded: RecordedRequest = { method: request.method ?? '', path, headers: request.headers, body, closed }
    const index = requests.push(recorded) - 1
    waiting.get(index)?.(recorded)
    if (options.ollama && path === '/api/tags') return json(response, 200, { models: models.map((name) => ({ name })) })
    const other = dialect.other?.(path, request.headers)
    if (other) {
      requests.pop()
      return json(response, other.status, other.body)
    }
    const refused = options.dialect
      ? dialect.admit(request.headers)
      : options.key !== undefined && request.headers.authorization !== `Bearer ${options.key}`
        ? 'Incorrect API key provided.'
        : undefined
    if (refused) return problem(response, 401, refused, 'invalid_api_key')
    if (path === `${dialect.base}/models` && request.method === 'GET')
      return json(response, 200, { object: 'list', data: models.map((id) => ({ id, object: 'model' })) })
    if (path === dialect.embeddings && request.method === 'POST')
      return embed(response, body, scripted.shift() ?? always)
    if (isMedia && request.method === 'POST') {
      const given = async (): Promise<MediaAnswer> => {
        const next = scripted.shift() ?? always
        const { images, audio, transcript, status, fault } = typeof next === 'function' ? await next(recorded) : next
        return Object.fromEntries(
          Object.entries({ images, audio, transcript, status, fault: fault === 'silent' ? fault : undefined }).filter(
            ([, value]) => value !== undefined,
          ),
        )
      }
      recorded.media = await answerMedia(
        response,
        { path, headers: request.headers, bytes, isMistral: options.dialect === dialects.mistral },
        given,
      )
      return
    }
    if (!dialect.chat(path) || request.method !== 'POST')
      return problem(response, 404, `Unknown request URL: ${request.method} ${path}.`)
    const refusal = refuse(body) ?? dialect.refuse?.(body, request.headers)
    if (refusal) return problem(response, 400, refusal)
    const next = scripted.shift() ?? always
    await give(response, body, typeof next === 'function' ? await next(recorded) : next, dialect)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.destroyed) response.destroy(error instanceof Error ? error : undefined)
    })
  })
  server.on('connection', () => {
    connections++
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}/v1`,
    origin,
    requests,
    get connections() {
      return connections
    },
    script: (...answers) => {
      scripted.push(...answers)
    },
    always: (answer) => {
      always = answer
    },
    request: (index) => {
      const there = requests[index]
      return there ? Promise.resolve(there) : new Promise((resolve) => waiting.set(index, resolve))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** `/embeddings` as OpenAI answers it; the order of its vectors is told by their numbers alone. */
function embed(response: ServerResponse, body: ChatBody, answer: Scripted): void {
  if (typeof answer === 'function') throw new Error('vectors are scripted as they are')
  if (answer.status !== undefined) return problem(response, answer.status, 'It failed.')
  const { input } = body
  if (
    !Array.isArray(input) ||
    input.length === 0 ||
    input.length > 2048 ||
    input.some((text) => typeof text !== 'string' || text === '')
  )
    return problem(response, 400, "'$.input' is invalid. Please check the API reference.")
  const data = (answer.vectors ?? input.map((text: string) => [text.length, 1]))
    .map((embedding, index) => ({ object: 'embedding', index, embedding }))
    .toReversed()
  json(response, 200, { object: 'list', data, model: body.model, usage: { prompt_tokens: 7, total_tokens: 7 } })
}

async function give(response: ServerResponse, body: ChatBody, answer: Answer, dialect: Dialect): Promise<void> {
  if (answer.fault === 'silent') return
  if (answer.delayMs) await sleep(answer.delayMs)
  if (response.destroyed) return
  if (answer.status !== undefined || answer.body !== undefined) {
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
    response.end(
      answer.body ??
        JSON.stringify({ error: { message: `status ${answer.status}`, type: 'server_error', code: null } }),
    )
    return
  }
  if (body.stream !== true) return json(response, 200, await whole(body, answer), answer.headers)
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...answer.headers })
  if (answer.raw) {
    for (const piece of answer.raw) {
      response.write(piece)
      await (answer.gapMs ? sleep(answer.gapMs) : turn())
    }
  } else await stream(response, body, answer, dialect)
  if (answer.fault === 'stall') return
  if (answer.fault === 'reset') {
    await turn()
    response.socket?.resetAndDestroy()
    return
  }
  if (!response.destroyed) response.end()
}

async function stream(
  response: ServerResponse,
  body: ChatBody,
  answer: Answer,
  { prelude = '', thought = (text) => ({ reasoning_content: text }), usageUnasked = false }: Dialect,
): Promise<void> {
  let pending = prelude
  const write = async (text: string): Promise<void> => {
    if (response.destroyed) return
    const bytes = Buffer.from(text)
    const step = answer.fault === 'slow-bytes' ? 1 : answer.fault === 'split' ? 7 : bytes.length
    for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
      const free = response.write(bytes.subarray(at, at + step))
      if (!free) await drained(response)
      if (step < bytes.length) await (answer.gapMs ? sleep(answer.gapMs) : turn())
    }
  }
  const send = async (data: unknown): Promise<void> => {
    pending += `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
    // Without a gap everything goes out in large pieces, as fast as the reader takes them.
    if (answer.gapMs === undefined && !live && pending.length < 65_536) return
    const text = pending
    pending = ''
    await write(text)
    if (answer.gapMs) await sleep(answer.gapMs)
  }
  const live = typeof answer.text === 'object' && Symbol.asyncIterator in answer.text
  const head = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 1_700_000_000, model: body.model }
  const chunk = (delta: unknown, finish: string | null = null): unknown => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  await send(chunk({ role: 'assistant', content: '' }))
  for (const [index, delta] of (answer.reasoning ?? []).entries()) await send(chunk(thought(delta, index)))
  let said = 0
  for await (const delta of deltas(answer.text)) {
    said += delta.length
    await send(chunk({ content: delta }))
  }
  const calls = wireCalls(answer)
  for (const [index, call] of calls.entries())
    await send(
      chunk({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] }),
    )
  const piece = answer.argsPiece ?? 6
  // Pieces of parallel calls arrive in turn, as some vendors send them.
  const longest = Math.max(0, ...calls.map((call) => call.args.length))
  for (let at = 0; at < longest; at += piece) {
    for (const [index, call] of calls.entries()) {
      if (at < call.args.length)
        await send(chunk({ tool_calls: [{ index, function: { arguments: call.args.slice(at, at + piece) } }] }))
    }
  }
  if (answer.fault !== 'stall' && answer.fault !== 'cut' && answer.fault !== 'reset') {
    await send(chunk({}, answer.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')))
    const usage = usageOf(answer, said)
    if (usage !== undefined && (body.stream_options?.include_usage === true || usageUnasked))
      await send({ ...head, choices: [], usage })
    await send('[DONE]')
  }
  await write(pending)
}

async function whole(body: ChatBody, answer: Answer): Promise<unknown> {
  let text = ''
  for await (const delta of deltas(answer.text)) text += delta
  const calls = wireCalls(answer).map(({ id, name, args }) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  }))
  const usage = usageOf(answer, text.length)
  return {
    id: 'chatcmpl-fake',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: body.model,
    choices: [
      {
        index: 0,
        finish_reason: answer.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
        message: { role: 'assistant', content: text || null, ...(calls.length > 0 && { tool_calls: calls }) },
      },
    ],
    ...(usage !== undefined && { usage }),
  }
}

async function* deltas(text: Answer['text']): AsyncGenerator<string> {
  if (typeof text === 'string') yield text
  else if (text !== undefined) yield* text
}
function wireCalls({ calls }: Answer): { id: string; name: string; args: string }[] {
  return (calls ?? []).map(({ name, args, id }, index) => ({
    id: id ?? `call_fake_${index}`,
    name,
    args: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
  }))
}
function usageOf(answer: Answer, said: number): unknown {
  if (answer.usage === null) return undefined
  return answer.usage ?? { prompt_tokens: 10, completion_tokens: said, total_tokens: 10 + said }
}
function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
function problem(response: ServerResponse, status: number, message: string, code: string | null = null): void {
  json(response, status, { error: { message, type: 'invalid_request_error', param: null, code } })
}
/** Settles when the reader has taken what was written, or is gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
