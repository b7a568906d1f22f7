import type { Agent as HttpPool, ClientRequest, IncomingMessage } from 'node:http'
import type { Agent as HttpsPool } from 'node:https'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { OutboundRequest } from './fetch.ts'
import type { Policy } from './policy.ts'
import { http, https } from './node-http.ts'
import { follow } from './redirect.ts'
import type { Hop, Redirects } from './redirect.ts'
import { Answer } from './response.ts'
import type { Abandon, SharedExchanges } from './shared-exchanges.ts'
import type { Watch } from './watchdog.ts'

export interface ExchangeLimits {
  readonly connectMs: number
  readonly headersMs: number
  readonly idleMs: number
  /** For the whole exchange; 0 is no limit. */
  readonly totalMs: number
  readonly maxBytes: number
}
export interface ExchangeOptions {
  readonly shared: SharedExchanges
  /** The rules of this moment: a setting may change while the exchange is under way. */
  readonly policy: () => Policy
  readonly agent: HttpPool | HttpsPool
  /** The name or address of the hop's URL, checked. */
  readonly host: string
  readonly hop: Hop
  readonly request: OutboundRequest
  readonly limits: ExchangeLimits
}

/** Sends one request and settles with its answer. Throws at once when a header cannot be sent. */
export function sendRequest(options: ExchangeOptions): Promise<Answer> {
  return new OutboundExchange(options).answered
}

/** One request on its way, from the connection to the end of the answer's body. */
class OutboundExchange {
  readonly answered: Promise<Answer>
  readonly #options: ExchangeOptions
  readonly #outgoing: ClientRequest
  readonly #patience: Watch
  readonly #whole: Watch | undefined
  readonly #settled = Promise.withResolvers<Answer>()
  #answer: Answer | undefined
  #isConnected = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.answered = this.#settled.promise
    const { shared, hop, request, limits } = options
    this.#outgoing = openRequest(options)
    this.#patience = shared.dog.watch(limits.connectMs, this.#onLate)
    if (limits.totalMs > 0) this.#whole = shared.dog.watch(limits.totalMs, this.#onTotalTime)
    shared.open.add(this.#abandon)
    request.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (request.owner) shared.owners.enter(request.owner, this.#abandon)
    this.#outgoing.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => this.#onConnection(socket))
      else this.#onConnection(socket)
    })
    this.#outgoing.on('error', (error) => {
      if (!this.#answer) this.#abandon(failureOf(hop.url, error))
    })
    this.#outgoing.once('response', (message) => this.#onResponse(message))
    this.#outgoing.end(hop.body)
  }

  readonly #onLate = (): void => {
    const { connectMs, headersMs } = this.#options.limits
    this.#abandon(
      this.#isConnected
        ? this.#timedOut('did not answer in time', headersMs)
        : this.#timedOut('did not accept a connection', connectMs),
    )
  }
  readonly #onTotalTime = (): void =>
    this.#abandon(this.#timedOut('took longer than the whole exchange may', this.#options.limits.totalMs))
  readonly #onAbort = (): void => this.#abandon(this.#options.request.signal?.reason)

  /** Ends the exchange in whatever state it is, and its connection with it. */
  readonly #abandon: Abandon = (reason) => {
    this.#release()
    if (this.#answer) this.#answer.fail(reason)
    else this.#settled.reject(reason)
    this.#outgoing.destroy()
  }
  readonly #release = (): void => {
    const { shared, request } = this.#options
    this.#patience.end()
    this.#whole?.end()
    request.signal?.removeEventListener('abort', this.#onAbort)
    if (request.owner) shared.owners.leave(request.owner, this.#abandon)
    shared.open.delete(this.#abandon)
  }

  #onConnection(socket: Socket): void {
    const { policy, host, limits } = this.#options
    try {
      policy().checkAddress(host, socket.remoteAddress ?? '', socket.remotePort ?? 0)
    } catch (error) {
      return this.#abandon(error)
    }
    this.#isConnected = true
    this.#patience.extend(limits.headersMs)
  }

  #onResponse(message: IncomingMessage): void {
    const { shared, hop, limits } = this.#options
    this.#patience.end()
    const readLimits = { dog: shared.dog, idleMs: limits.idleMs, maxBytes: limits.maxBytes }
    this.#answer = new Answer(message, hop.url, readLimits, this.#release)
    this.#settled.resolve(this.#answer)
  }

  #timedOut(what: string, ms: number): UpstreamFailure {
    const { hostname } = this.#options.hop.url
    const message = `${hostname} ${what} (${Math.round(ms)} ms)`
    return new UpstreamFailure(hostname, message, { reason: 'timeout', retry: 'later' })
  }
}

function openRequest({ hop, host, agent }: ExchangeOptions): ClientRequest {
  const { url } = hop
  const open = url.protocol === 'https:' ? https().request : http.request
  return open({
    agent,
    host,
    port: url.port || undefined,
    path: url.pathname + url.search,
    method: hop.method,
    headers: wireHeaders(hop),
    ...(isIP(host) === 0 && { servername: host }),
  })
}

/** Flat: name, value, name, value. Node takes that as it is, and an object name by name. */
function wireHeaders(hop: Hop): string[] {
  const headers = ['host', hop.url.host]
  const given = new Set<string>()
  for (const name in hop.headers) {
    const lower = name.toLowerCase()
    const value = hop.headers[name]
    // The host is the one that was checked, the length is counted here, and the connection belongs to the pool.
    if (value === undefined || RESERVED_HEADERS.has(lower) || given.has(lower)) continue
    http.validateHeaderName(name)
    http.validateHeaderValue(name, value)
    given.add(lower)
    headers.push(lower, value)
  }
  for (const [name, value] of DEFAULT_HEADERS) if (!given.has(name)) headers.push(name, value)
  if (hop.body !== undefined) headers.push('content-length', String(Buffer.byteLength(hop.body)))
  else if (hop.method !== 'GET' && hop.method !== 'HEAD') headers.push('content-length', '0')
  return headers
}
const RESERVED_HEADERS = new Set(['host', 'content-length', 'connection', 'transfer-encoding'])
/** What every request and WebSocket says of the daemon. */
export const IDENTITY = ['user-agent', 'svc'] as const
const DEFAULT_HEADERS = [IDENTITY, ['accept', '*/*'], ['accept-encoding', 'identity']] as const

/** What a failed connection is reported as; a refusal stays what it is. */
export function failureOf(url: URL, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Refusal || error instanceof UpstreamFailure) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const message = `${url.host} ${FAILURES.get(code) ?? describeFailure(code, error)}`
  return new UpstreamFailure(url.hostname, message, { reason: 'network', retry: 'later', cause: error })
}
const FAILURES = new Map([
  ['ECONNREFUSED', 'refused the connection'],
  ['ENOTFOUND', 'has no address that can be found'],
  ['EAI_AGAIN', 'has no address that can be found'],
  ['ECONNRESET', 'closed the connection before it answered'],
  ['EPIPE', 'closed the connection before it answered'],
])
function describeFailure(code: string, error: Error): string {
  if (/CERT|SSL|TLS/.test(code)) return `has no certificate that is trusted (${code})`
  return `cannot be reached (${code || error.message})`
}

/** The request that a redirect leads to; `undefined` for any other answer, which stays as it is. */
export function nextHop(hop: Hop, answer: Answer, { followed, max }: Redirects): Hop | undefined {
  try {
    const next = follow(hop, answer.status, answer.header('location'))
    if (!next) return undefined
    if (followed >= max) throw tooManyRedirects(hop.url, max)
    answer.fail(new Error('redirected'))
    return next
  } catch (error) {
    answer.fail(error)
    throw error
  }
}

function tooManyRedirects(url: URL, max: number): UpstreamFailure {
  const message = `${url.origin} redirected more than ${max} times`
  return new UpstreamFailure(url.hostname, message, { reason: 'malformed', retry: 'never' })
}
