import * as v from 'valibot'
import { errorBody } from '../errors/render.ts'
import type { Outcome } from '../errors/render.ts'
import type { AnyRoute, ByteStream, EventStream, OtherAnswer, Reply } from './route.ts'
import type { StreamedBody } from './streamed-body.ts'
import { http } from '../net/node-http.ts'

/** What is sent: a flat header list (name, value, name, value) and a body that is whole, a stream, or none. */
export class Answer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | StreamedBody | null
  constructor(status: number, headers: readonly string[], body: string | Uint8Array | StreamedBody | null) {
    this.status = status
    this.headers = headers
    this.body = body
  }
}

export function isStream(value: unknown): value is EventStream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && '~reply' in value && value['~reply'] === true
}

/** A reply whose body is still to come. */
export function isStreamedReply(value: unknown): value is Reply & { readonly body: ByteStream } {
  return isReply(value) && isByteStream(value.body)
}
function isByteStream(body: Reply['body']): body is ByteStream {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}

function whole(method: string, status: number, body: string | Uint8Array | null, headers: string[]): Answer {
  if (status === 204 || status === 304) return new Answer(status, headers, null)
  headers.push('content-length', body === null ? '0' : String(Buffer.byteLength(body)))
  // A HEAD answer says how long the body would have been.
  return new Answer(status, headers, method === 'HEAD' ? null : body)
}

/** A successful answer that is no stream. Throws when the handler broke its own contract: that is a defect. */
export function answerOf(route: AnyRoute, method: string, value: unknown, development: boolean): Answer {
  if (isReply(value) && development) checkReply(route, value)
  if (isReply(value)) {
    if (isByteStream(value.body))
      throw new Error(`${route.method} ${route.path} keeps its answers, so it cannot answer with a stream of bytes`)
    return whole(method, value.status, value.body, flatten(value.headers))
  }
  if (development) {
    const result = v.safeParse(route.returns, value)
    if (!result.success)
      throw new Error(
        `${route.method} ${route.path} answered what its "returns" does not allow: ${v.summarize(result.issues)}`,
      )
  }
  const status = route.status ?? 200
  if (value === undefined || status === 204) return new Answer(204, [], null)
  return whole(method, status, JSON.stringify(value), ['content-type', 'application/json'])
}

/** An error answer in the format of its code, or of the route when it has its own. */
export function errorAnswer(
  method: string,
  outcome: Outcome,
  route: AnyRoute | undefined,
  extra: readonly string[] = [],
): Answer {
  const { problem, retryAfterSecs } = outcome
  const headers = ['content-type', 'application/json', ...extra]
  if (problem.status === 401) headers.push('www-authenticate', 'Bearer')
  if (retryAfterSecs !== undefined) headers.push('retry-after', String(Math.max(1, Math.ceil(retryAfterSecs))))
  return whole(
    method,
    problem.status,
    JSON.stringify(route?.renderError ? route.renderError(problem) : errorBody(problem)),
    headers,
  )
}

/** The answer that carries an event stream; `undefined` for HEAD. */
export function streamAnswer(body: StreamedBody | undefined, headers: EventStream['headers'] = {}): Answer {
  return new Answer(
    200,
    ['content-type', 'text/event-stream; charset=utf-8', 'x-accel-buffering', 'no', ...flatten(headers)],
    body ?? null,
  )
}

/** The answer of a reply that is sent as it comes; without `body` for HEAD. */
export function streamedReply({ status, headers }: Reply, body: StreamedBody | undefined): Answer {
  return new Answer(status, flatten(headers), body ?? null)
}

export function flatten(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, text]) => {
    http.validateHeaderName(name)
    http.validateHeaderValue(name, text)
    return name.toLowerCase() === 'content-length' ? [] : [name.toLowerCase(), text]
  })
}

/** Throws for what the OpenAPI document does not tell of. */
export function checkReply(route: AnyRoute, { status, headers, body }: Reply): void {
  const usual = status === (route.status ?? 200)
  const other: OtherAnswer | undefined = route.answers?.[status]
  if (!usual && !other) throw new Error(`${route.method} ${route.path} answers ${status}, which it does not declare`)
  const type = flatten(headers)
    .find((_, at, all) => all[at - 1]?.toLowerCase() === 'content-type')
    ?.split(';', 1)[0]
  const declared = usual ? ['application/json', route.produces] : [other?.json && 'application/json', other?.type]
  if (body !== null && !declared.includes('*/*') && !declared.some((one) => one?.split(';', 1)[0] === type))
    throw new Error(`${route.method} ${route.path} answers ${status} with ${type}, which it does not declare`)
}
