import type { FetchOptions } from 'ofetch'
import * as v from 'valibot'
import { readJson } from '../schema/nesting.ts'
import { omitUndefined } from '../schema/object.ts'

/** The daemon answered with an error. `code` and `message` are what it said. */
export class DaemonRefusal extends Error {
  override readonly name = 'DaemonRefusal'
  readonly status: number
  readonly code: string | undefined
  readonly retryAfterSecs: number | undefined
  /** The turn that failed, where a message had been accepted. */
  readonly turnId: string | undefined
  constructor(
    status: number,
    code: string | undefined,
    message: string,
    retryAfterSecs: number | undefined,
    turnId?: string,
  ) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterSecs = retryAfterSecs
    this.turnId = turnId
  }
}
/** Nobody listens at the address, or the connection broke. */
export class DaemonUnreachable extends Error {
  override readonly name = 'DaemonUnreachable'
  readonly url: string
  constructor(url: string, cause: unknown) {
    super(`no answer from ${url} (${reasonOf(cause)})`, { cause })
    this.url = url
  }
}

export interface DaemonCall {
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Milliseconds for the whole answer; default 30 seconds. 0 waits for ever. */
  readonly timeoutMs?: number
  /** By lower-case name, such as `idempotency-key`. */
  readonly headers?: Readonly<Record<string, string>>
}
export interface ServerEvent {
  readonly event: string
  readonly data: unknown
}

/** The REST API of a running daemon, as the command line uses it. Throws `DaemonRefusal` and `DaemonUnreachable`. */
export interface DaemonClient {
  readonly url: string
  /** The parsed answer; one that does not fit the schema is a plain error. */
  call<S extends v.GenericSchema>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH',
    path: string,
    schema: S,
    call?: DaemonCall,
  ): Promise<v.InferOutput<S>>
  /** Events of a streamed answer, each with its JSON parsed. Ending the iteration closes the connection. */
  stream(method: 'GET' | 'POST', path: string, call: DaemonCall): AsyncIterable<ServerEvent>
  /** An answer whatever its status, for a protocol that has its own errors. */
  exchange(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    call: DaemonCall & { readonly headers: Readonly<Record<string, string>> },
  ): Promise<RawExchange>
}
/** `messages`: the JSON of the answer, or of each event of a streamed one. */
export interface RawExchange {
  readonly status: number
  readonly headers: Headers
  messages(): AsyncIterable<unknown>
}

const ErrorBody = v.union([
  v.object({ error: v.object({ code: v.optional(v.string()), message: v.string() }) }),
  v.object({ error: v.string() }),
])

export function createDaemonClient(options: {
  readonly url: string
  readonly apiKey?: string | undefined
  /** Of `daemon.json`: the daemon limits its sender apart from others at the same address. */
  readonly pass?: string | undefined
}): DaemonClient {
  return new HttpDaemonClient(options.url.replace(/\/+$/, ''), options.apiKey, options.pass)
}

class HttpDaemonClient implements DaemonClient {
  readonly url: string
  readonly #headers: Readonly<Record<string, string>>

  constructor(url: string, apiKey: string | undefined, pass: string | undefined) {
    this.url = url
    this.#headers = {
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      ...(pass !== undefined && { 'x-svc-home-pass': pass }),
    }
  }

  async call<S extends v.GenericSchema>(
    method: string,
    path: string,
    schema: S,
    call: DaemonCall = {},
  ): Promise<v.InferOutput<S>> {
    const response = await this.#request(method, path, call, 'json')
    if (!response.ok) throw refusalOf(response, response._data)
    const parsed = v.safeParse(schema, response._data)
    if (parsed.success) return parsed.output
    const issue = parsed.issues[0]
    const place = v.getDotPath(issue) ?? 'body'
    throw new Error(
      `${this.url}${path} answered something else than expected (${place}: ${issue.message}); ` +
        'is it an svc of another version?',
    )
  }

  async *stream(method: string, path: string, call: DaemonCall): AsyncIterable<ServerEvent> {
    const response = await this.#request(method, path, { ...call, timeoutMs: 0 }, 'stream')
    const body = response._data as unknown
    if (!(body instanceof ReadableStream)) throw refusalOf(response, undefined)
    const text = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, unknown>)
    if (!response.ok) throw refusalOf(response, parseJson(await readAll(text)))
    const { EventSourceParserStream } = await import('eventsource-parser/stream')
    try {
      for await (const { event, data } of text.pipeThrough(new EventSourceParserStream()))
        yield { event: event ?? 'message', data: parseJson(data) }
    } catch (error) {
      call.signal?.throwIfAborted()
      throw new DaemonUnreachable(this.url, error)
    }
  }

  async exchange(
    method: string,
    path: string,
    call: DaemonCall & { readonly headers: Readonly<Record<string, string>> },
  ): Promise<RawExchange> {
    const response = await this.#request(method, path, { ...call, timeoutMs: 0 }, 'stream')
    const { status, headers } = response
    const body = response._data as unknown
    const text =
      body instanceof ReadableStream
        ? body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, unknown>)
        : undefined
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
    return { status, headers, messages: () => (isStream ? eventsIn(text) : jsonIn(text)) }
  }

  /** ofetch is loaded with the first request: most of the daemon never makes one here. */
  async #request(method: string, path: string, call: DaemonCall, responseType: 'json' | 'stream') {
    const { ofetch } = await import('ofetch')
    const timeoutMs = call.timeoutMs ?? 30_000
    const settings: FetchOptions<'json' | 'stream'> = {
      method,
      headers: { ...call.headers, ...this.#headers },
      responseType,
      retry: 0,
      ignoreResponseError: true,
      redirect: 'error',
      ...omitUndefined({
        body: call.body as Record<string, unknown> | undefined,
        signal: call.signal,
        timeout: timeoutMs > 0 && call.signal === undefined ? timeoutMs : undefined,
      }),
    }
    try {
      return await ofetch.raw(`${this.url}${path}`, settings)
    } catch (error) {
      call.signal?.throwIfAborted()
      throw new DaemonUnreachable(this.url, error)
    }
  }
}

async function* jsonIn(text: ReadableStream<string> | undefined): AsyncIterable<unknown> {
  const all = text ? await readAll(text) : ''
  if (all !== '') yield parseJson(all)
}
async function* eventsIn(text: ReadableStream<string> | undefined): AsyncIterable<unknown> {
  if (!text) return
  const { EventSourceParserStream } = await import('eventsource-parser/stream')
  for await (const { data } of text.pipeThrough(new EventSourceParserStream())) if (data !== '') yield parseJson(data)
}

function refusalOf(response: Response, body: unknown): DaemonRefusal {
  const parsed = v.safeParse(ErrorBody, body)
  const error = parsed.success ? parsed.output.error : undefined
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new DaemonRefusal(
    response.status,
    typeof error === 'object' ? error.code : undefined,
    messageOf(error) ?? `the daemon answered ${response.status} ${response.statusText}`.trim(),
    Number.isFinite(retryAfter) ? retryAfter : undefined,
    response.headers.get('x-turn-id') ?? undefined,
  )
}
function messageOf(error: v.InferOutput<typeof ErrorBody>['error'] | undefined): string | undefined {
  return typeof error === 'string' ? error : error?.message
}

async function readAll(stream: ReadableStream<string>): Promise<string> {
  let text = ''
  for await (const part of stream) text += part
  return text
}
function parseJson(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return text /* an error page of a proxy, or plain data */
  }
}
function reasonOf(error: unknown): string {
  let message = error instanceof Error ? error.message : String(error)
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    if ('code' in cause && typeof cause.code === 'string') return cause.code
    if (cause.name === 'TimeoutError') return 'timeout'
    // That of the last cause says most, such as "bad port".
    message = cause.message
  }
  return message
}
