import { randomUUID } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { http } from '../net/node-http.ts'
import { framedPolicy, sandboxPolicy } from './sandboxed-document.ts'

const contentSecurityPolicy =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

/**
 * Headers of every answer (Interface 8). The policy and the cache rule come last, because an answer may tighten the
 * former and set the latter.
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
  // Chromium looks the host of a link up as soon as it is shown, and a hostile text can hold a secret there.
  'X-DNS-Prefetch-Control',
  'off',
] as const
const defaults: readonly string[] = [
  ...fixed,
  'Content-Security-Policy',
  contentSecurityPolicy,
  'Cache-Control',
  'no-store',
]
/** Headers that an answer cannot set itself. */
const kept = new Set([
  ...fixed.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
  'x-request-id',
  'server',
  'x-powered-by',
])

/**
 * The complete header list of an answer: the fixed headers, its own, and those of CORS. All lists are flat: name,
 * value, name, value.
 */
export function answerHeaders(
  requestId: string,
  own: readonly string[],
  cors: readonly string[] | undefined,
): string[] {
  const all = defaults.slice()
  const policyAt = fixed.length + 1
  const frameOptionsAt = 1
  const resourcePolicyAt = fixed.indexOf('Cross-Origin-Resource-Policy') + 1
  for (let at = 0; at < own.length; at += 2) {
    const name = own[at] ?? ''
    const value = own[at + 1] ?? ''
    const lower = name.toLowerCase()
    if (lower === 'cache-control') all[policyAt + 2] = value
    else if (lower === 'content-security-policy' && (value === sandboxPolicy || value === framedPolicy)) {
      // Stricter in all but styles, and in who may show it.
      all[policyAt] = value
      all[frameOptionsAt] = 'SAMEORIGIN'
      // To a document without an origin its own files are those of another one.
      if (value === framedPolicy) all[resourcePolicyAt] = 'cross-origin'
    }
    // Browsers enforce all directives of a combined policy, so an answer can only tighten it.
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

/** The response class of the server: every answer has the fixed headers, also those of Node itself. */
export class GuardedResponse extends http.ServerResponse {
  /** Set by the pipeline to the id that the body contains. */
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
/** Guards a response of a server that was not created with the class: listhen creates its own. */
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
 * A complete answer for a raw socket: parser errors and refused upgrades have no response object. The connection is
 * closed after it.
 */
export function rawAnswer(
  status: number,
  body: string,
  requestId: string,
  own: readonly string[] = [],
  cors?: readonly string[],
): string {
  const headers = answerHeaders(requestId, own, cors)
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}\r\n`,
    `Date: ${new Date().toUTCString()}\r\n`,
    lines(headers),
    'Content-Type: application/json\r\n',
    `Content-Length: ${Buffer.byteLength(body)}\r\n`,
    'Connection: close\r\n',
  ]
  return `${head.join('')}\r\n${body}`
}

function lines(headers: readonly string[]): string {
  let text = ''
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`
  return text
}
