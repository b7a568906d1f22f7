import { randomUUID } from 'node:crypto'
import { STATUS_CODES, ServerResponse } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'

export const contentSecurityPolicy =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

/**
 * On every answer (Interface 8). The policy and the caching rule stand last, because an answer may tighten the one
 * and set the other.
 */
const fixed = [
  'X-Frame-Options',
  'DENY',
  'X-Content-Type-Options',
  'nosniff',
  'Strict-Transport-Security',
  'max-age=63072000; includeSubDomains',
  'Referrer-Policy',
  'no-referrer',
  'Cross-Origin-Resource-Policy',
  'same-origin',
  'Cross-Origin-Opener-Policy',
  'same-origin',
] as const
const usual: readonly string[] = [
  ...fixed,
  'Content-Security-Policy',
  contentSecurityPolicy,
  'Cache-Control',
  'no-store',
]
/** Names an answer cannot set itself. */
const kept = new Set([
  ...fixed.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
  'x-request-id',
  'server',
  'x-powered-by',
])

/**
 * The complete header list of an answer: ours, its own, and what CORS asks for. All lists are flat: name, value,
 * name, value.
 */
export function answerHeaders(
  requestId: string,
  own: readonly string[],
  cors: readonly string[] | undefined,
): string[] {
  const all = usual.slice()
  const policyAt = fixed.length + 1
  for (let at = 0; at < own.length; at += 2) {
    const name = own[at] ?? ''
    const value = own[at + 1] ?? ''
    const lower = name.toLowerCase()
    if (lower === 'cache-control') all[policyAt + 2] = value
    // Two policies in one header are both enforced by the union of their directives: an answer can only tighten.
    else if (lower === 'content-security-policy') all[policyAt] = `${contentSecurityPolicy}; ${value}`
    else if (!kept.has(lower)) all.push(name, value)
  }
  all.push('X-Request-Id', requestId)
  if (cors !== undefined) for (const part of cors) all.push(part)
  return all
}

/** A flat header list as `Headers`. */
export function toHeaders(flat: readonly string[]): Headers {
  const headers = new Headers()
  for (let at = 0; at < flat.length; at += 2) headers.append(flat[at] ?? '', flat[at + 1] ?? '')
  return headers
}

/** The response class of our server: every head it writes carries the headers, whoever answers (also Node itself). */
export class GuardedResponse extends ServerResponse {
  /** Set by the pipeline when it made the id that the body names. */
  requestId: string | undefined
  cors: readonly string[] | undefined

  override writeHead(
    status: number,
    reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    const given = typeof reason === 'object' ? reason : headers
    const own = Array.isArray(given) ? (given as string[]) : given === undefined ? [] : flatten(given)
    this.requestId ??= randomUUID()
    return super.writeHead(status, answerHeaders(this.requestId, own, this.cors))
  }
}
/** The same for a response of a server we could not give the class to (listhen makes its own). */
export function guardResponse(response: ServerResponse<IncomingMessage>): GuardedResponse {
  return Object.setPrototypeOf(
    Object.assign(response, { requestId: undefined, cors: undefined }),
    GuardedResponse.prototype,
  )
}

function flatten(headers: OutgoingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : Array.isArray(value) ? value.flatMap((one) => [name, one]) : [name, String(value)],
  )
}

/**
 * A complete answer for a bare socket: parser errors and refused upgrades have no response object. The connection
 * ends with it.
 */
export function rawAnswer(
  status: number,
  body: string,
  requestId: string,
  own: readonly string[] = [],
  cors?: readonly string[],
): string {
  const headers = answerHeaders(requestId, own, cors)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nDate: ${new Date().toUTCString()}\r\n${lines(headers)}`
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
}

function lines(headers: readonly string[]): string {
  let text = ''
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`
  return text
}
