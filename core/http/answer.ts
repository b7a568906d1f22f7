import { validateHeaderName, validateHeaderValue } from 'node:http'
import { FastResponse } from 'srvx'
import * as v from 'valibot'
import { errorBody } from '../errors/render.ts'
import type { Outcome } from '../errors/render.ts'
import type { AnyRoute, EventStream, Reply } from './route.ts'

export type Answer = Response
const json: [string, string] = ['content-type', 'application/json']

export function isStream(value: unknown): value is EventStream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && '~reply' in value && value['~reply'] === true
}

function bodyOf(method: string, status: number, body: string | Uint8Array | null, headers: [string, string][]): Answer {
  const none = body === null || status === 204 || status === 304
  if (method !== 'HEAD' && !none) return new FastResponse(body as BodyInit, { status, headers })
  // A HEAD answer says how long the body would have been.
  if (!none) headers.push(['content-length', String(Buffer.byteLength(body))])
  return new FastResponse(null, { status, headers })
}

/** A successful answer that is no stream. Throws when the handler broke its own contract: that is a defect. */
export function answerOf(route: AnyRoute, method: string, value: unknown, development: boolean): Answer {
  if (isReply(value)) {
    const headers = Object.entries(value.headers).map(([name, text]): [string, string] => {
      validateHeaderName(name)
      validateHeaderValue(name, text)
      return [name.toLowerCase(), text]
    })
    return bodyOf(method, value.status, value.body, headers)
  }
  if (development) {
    const result = v.safeParse(route.returns, value)
    if (!result.success) throw new Error(`${route.method} ${route.path} answered what its "returns" does not allow: ${v.summarize(result.issues)}`)
  }
  const status = route.status ?? 200
  if (value === undefined || status === 204) return new FastResponse(null, { status: 204 })
  return bodyOf(method, status, JSON.stringify(value), [json])
}

/** An error answer in the format of its code, or of the route when it has its own. */
export function errorAnswer(method: string, outcome: Outcome, route: AnyRoute | undefined, extra: readonly [string, string][] = []): Answer {
  const { problem, retryAfterSecs } = outcome
  const headers: [string, string][] = [json, ...extra]
  if (problem.status === 401) headers.push(['www-authenticate', 'Bearer'])
  if (retryAfterSecs !== undefined) headers.push(['retry-after', String(Math.max(1, Math.ceil(retryAfterSecs)))])
  return bodyOf(method, problem.status, JSON.stringify(route?.renderError ? route.renderError(problem) : errorBody(problem)), headers)
}

/** The answer that carries an event stream; `body` writes itself. */
export function streamAnswer(body: { pipe(out: never): unknown }): Answer {
  // The adapter takes anything with `pipe`, its type does not say so.
  return new FastResponse(body as unknown as BodyInit, { status: 200, headers: [['content-type', 'text/event-stream; charset=utf-8'], ['x-accel-buffering', 'no']] })
}
