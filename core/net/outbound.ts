import { lookup as systemLookup } from 'node:dns/promises'
import { Agent as HttpAgent, request as requestHttp, validateHeaderName, validateHeaderValue } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { callbackify } from 'node:util'
import type { ConsolaInstance } from 'consola'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { Fetch, OutboundRequest } from './fetch.ts'
import { Policy, portOf } from './policy.ts'
import type { OwnListeners } from './policy.ts'
import { follow } from './redirect.ts'
import type { Hop } from './redirect.ts'
import { Answer } from './response.ts'
import { Watchdog } from './watchdog.ts'

export interface OutboundSettings {
  /** Hosts, addresses and CIDRs that are permitted although they are private. Metadata addresses never are. */
  readonly allow: readonly string[]
  readonly headersTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Of a body after decompression. */
  readonly maxBytes: number
  readonly maxRedirects: number
  readonly connectTimeoutMs?: number
  /** For a whole exchange unless the request gives its own. Requests of operators have no limit but their own. */
  readonly totalTimeoutMs?: number
}
/** Every address of a name, both families. Rejects when there is none. */
export type Resolve = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>
export interface OutboundOptions {
  readonly settings: () => OutboundSettings
  readonly log?: ConsolaInstance
  readonly resolve?: Resolve
  /** Where the daemon itself is reached. */
  readonly own?: OwnListeners
}
export interface Outbound extends AsyncDisposable {
  readonly fetch: Fetch
  /** For addresses that the operator set, such as a provider's base URL: they may be loopback or private, never metadata. */
  forOperator(): Fetch
  /** Throws what a request there would be refused with, as far as that can be known now. Sends nothing. */
  admit(url: string | URL): Promise<void>
  /** A connection to the host and port of an address, under the rules of `fetch`. Whoever asks ends it. */
  connect(url: URL, signal: AbortSignal): Promise<Socket>
  /** Throws when the rules, as they are now, would not have let `connect` make this connection. */
  checkConnection(url: URL, socket: Socket): void
  /** The same for an address that the operator sets. */
  admitForOperator(url: string | URL): Promise<void>
}

const CONNECT_MS = 10_000
const TOTAL_MS = 300_000
/** Shorter than what servers commonly grant, so that it is this side that closes an idle connection. */
const IDLE_SOCKET_MS = 4000
const FREE_SOCKETS = 64
/** How long a name may take when nobody connects to it yet. */
const RESOLVE_MS = 2_000

/** The only way out to the network. Connections are kept for reuse per origin and policy; proxies of the environment are ignored. */
export function createOutbound(options: OutboundOptions): Outbound {
  const resolve: Resolve = options.resolve ?? ((hostname) => systemLookup(hostname, { all: true }))
  const open = new Set<(reason: unknown) => void>()
  const owners = new Owners()
  const dog = new Watchdog()
  let closed = false
  const doors = [false, true].map((operator) => createDoor(operator))

  function createDoor(operator: boolean) {
    let policy: Policy | undefined
    let allow: readonly string[] | undefined
    const current = (): Policy => {
      const now = options.settings().allow
      if (policy === undefined || allow !== now) policy = new Policy((allow = now), operator, options.own)
      return policy
    }
    // Vetting happens where the address is used: the socket connects to nothing but what this function hands out.
    const vetted = async (hostname: string, port: number) => {
      const addresses = await resolve(hostname)
      for (const { address } of addresses) current().checkAddress(hostname, address, port)
      const [first] = addresses
      if (!first) throw Object.assign(new Error(`no address for ${hostname}`), { code: 'ENOTFOUND' })
      return { first, addresses: addresses.map(({ address, family }) => ({ address, family })) }
    }
    const vet = callbackify(vetted)
    /** A pool asks with a name alone, so what goes to a port that is the daemon's own as well has a lookup that knows the port. */
    const lookupFor =
      (port: number): LookupFunction =>
      (hostname, { all }, done) =>
        vet(hostname, port, (error, found) => {
          if (error) done(error, '', 0)
          else if (all) done(null, found.addresses)
          else done(null, found.first.address, found.first.family)
        })
    const agentOptions = {
      keepAlive: true,
      maxFreeSockets: FREE_SOCKETS,
      timeout: IDLE_SOCKET_MS,
      lookup: lookupFor(0),
    }
    const plain = new HttpAgent(agentOptions)
    const agentOf = (url: URL): HttpAgent | HttpsAgent => {
      const port = portOf(url)
      const isSecure = url.protocol === 'https:'
      if (current().isOwnPort(port)) return new (isSecure ? HttpsAgent : HttpAgent)({ lookup: lookupFor(port) })
      return isSecure ? (secure ??= new HttpsAgent(agentOptions)) : plain
    }
    // Made with the first request that needs it: TLS is a part of every start else.
    let secure: HttpsAgent | undefined

    /** A name that nobody knows now is let through: whoever connects to it later is refused what it leads to then. */
    async function admit(address: string | URL): Promise<void> {
      const url = URL.parse(address)
      if (!url) throw new Refusal('invalid_request', 'That is not an address a request can go to')
      const host = current().checkUrl(url)
      if (isIP(host) !== 0) return
      const found = await Promise.race([resolve(host), delay(RESOLVE_MS, [], { ref: false })]).catch(
        () => [] /* it has no address */,
      )
      if (found.length === 0) current().checkUnknown(host)
      for (const { address: one } of found) current().checkAddress(host, one, portOf(url))
    }

    async function fetch(address: string | URL, request: OutboundRequest = {}) {
      const url = URL.parse(address)
      if (!url) throw new Refusal('invalid_request', 'That is not an address a request can go to')
      const settings = options.settings()
      const total = request.totalTimeoutMs ?? (operator ? 0 : (settings.totalTimeoutMs ?? TOTAL_MS))
      let hop: Hop = {
        url,
        method: (request.method ?? 'GET').toUpperCase(),
        headers: request.headers ?? {},
        body: request.body,
      }
      const started = performance.now()
      for (let hops = 0; ; hops++) {
        const answer = await exchange(
          hop,
          request,
          settings,
          total === 0 ? 0 : Math.max(1, total - (performance.now() - started)),
        )
        const next = nextHop(hop, answer)
        if (!next) return answer
        answer.fail(new Error('redirected'))
        if (hops >= settings.maxRedirects)
          throw new UpstreamFailure(
            hop.url.hostname,
            `${hop.url.origin} redirected more than ${settings.maxRedirects} times`,
            { reason: 'malformed', retry: 'never' },
          )
        hop = next
      }
    }

    function exchange(
      hop: Hop,
      request: OutboundRequest,
      settings: OutboundSettings,
      totalMs: number,
    ): Promise<Answer> {
      const { signal, owner } = request
      const { url } = hop
      return new Promise((resolveAnswer, reject) => {
        if (closed)
          throw new UpstreamFailure(url.hostname, 'The daemon is stopping', { reason: 'network', retry: 'later' })
        signal?.throwIfAborted()
        owner?.throwIfAborted()
        const host = current().checkUrl(url)
        request.check?.(url)
        const outgoing = (url.protocol === 'https:' ? requestHttps : requestHttp)({
          agent: agentOf(url),
          host,
          port: url.port || undefined,
          path: url.pathname + url.search,
          method: hop.method,
          headers: wireHeaders(hop),
          ...(isIP(host) === 0 && { servername: host }),
        })
        let answer: Answer | undefined
        const connectMs = settings.connectTimeoutMs ?? CONNECT_MS
        const headersMs = request.headersTimeoutMs ?? settings.headersTimeoutMs
        let isConnected = false
        const patience = dog.watch(connectMs, () =>
          abandon(
            isConnected
              ? timedOut('did not answer in time', headersMs)
              : timedOut('did not accept a connection', connectMs),
          ),
        )
        const whole =
          totalMs > 0
            ? dog.watch(totalMs, () => abandon(timedOut('took longer than the whole exchange may', totalMs)))
            : undefined
        const timedOut = (what: string, ms: number) =>
          new UpstreamFailure(url.hostname, `${url.hostname} ${what} (${Math.round(ms)} ms)`, {
            reason: 'timeout',
            retry: 'later',
          })
        const stop = (): void => abandon(signal?.reason)
        const release = (): void => {
          patience.end()
          whole?.end()
          signal?.removeEventListener('abort', stop)
          if (owner) owners.leave(owner, abandon)
          open.delete(abandon)
        }
        /** Ends the exchange in whatever state it is, and its connection with it. */
        function abandon(reason: unknown): void {
          release()
          if (answer) answer.fail(reason)
          else reject(reason)
          outgoing.destroy()
        }
        open.add(abandon)
        signal?.addEventListener('abort', stop, { once: true })
        if (owner) owners.enter(owner, abandon)
        const connected = (socket: Socket): void => {
          try {
            current().checkAddress(host, socket.remoteAddress ?? '', socket.remotePort ?? 0)
          } catch (error) {
            return abandon(error)
          }
          isConnected = true
          patience.extend(headersMs)
        }
        outgoing.once('socket', (socket) => {
          if (socket.connecting) socket.once('connect', () => connected(socket))
          else connected(socket)
        })
        outgoing.on('error', (error) => {
          if (!answer) abandon(failureOf(url, error))
        })
        outgoing.once('response', (message) => {
          patience.end()
          answer = new Answer(
            message,
            url,
            {
              dog,
              idleMs: request.idleTimeoutMs ?? settings.idleTimeoutMs,
              maxBytes: request.maxBytes ?? settings.maxBytes,
            },
            release,
          )
          resolveAnswer(answer)
        })
        outgoing.end(hop.body)
      })
    }

    async function connect(url: URL, signal: AbortSignal): Promise<Socket> {
      if (closed)
        throw new UpstreamFailure(url.hostname, 'The daemon is stopping', { reason: 'network', retry: 'later' })
      signal.throwIfAborted()
      const host = current().checkUrl(url)
      const port = portOf(url)
      try {
        const addresses =
          isIP(host) === 0 ? (await vetted(host, port)).addresses : [{ address: host, family: isIP(host) }]
        const { connectTo } = await import('./connect.ts')
        const timeoutMs = options.settings().connectTimeoutMs ?? CONNECT_MS
        return await connectTo(host, port, addresses, { signal, timeoutMs })
      } catch (error) {
        throw error instanceof Error ? failureOf(url, error) : error
      }
    }

    return {
      fetch: fetch as Fetch,
      admit,
      connect,
      checkConnection(url: URL, { remoteAddress = '', remotePort = 0 }: Socket): void {
        current().checkAddress(current().checkUrl(url), remoteAddress, remotePort)
      },
      destroy() {
        plain.destroy()
        secure?.destroy()
      },
    }
  }

  const [guarded, operator] = doors
  if (!guarded || !operator) throw new Error('unreachable')
  return {
    fetch: guarded.fetch,
    forOperator: () => operator.fetch,
    admit: (url) => guarded.admit(url),
    connect: (url, signal) => guarded.connect(url, signal),
    checkConnection: (url, socket) => guarded.checkConnection(url, socket),
    admitForOperator: (url) => operator.admit(url),
    async [Symbol.asyncDispose]() {
      closed = true
      for (const abandon of open)
        abandon(new UpstreamFailure('outbound', 'The daemon is stopping', { reason: 'network', retry: 'later' }))
      for (const door of doors) door.destroy()
      dog.close()
    },
  }
}

function nextHop(hop: Hop, answer: Answer): Hop | undefined {
  try {
    return follow(hop, answer.status, answer.header('location'))
  } catch (error) {
    answer.fail(error)
    throw error
  }
}

/** Flat: name, value, name, value. Node takes that as it is, and an object name by name. */
function wireHeaders(hop: Hop): string[] {
  const headers = ['host', hop.url.host]
  const given = new Set<string>()
  for (const name in hop.headers) {
    const lower = name.toLowerCase()
    const value = hop.headers[name]
    // The host is the one that was checked, the length is counted here, and the connection belongs to the pool.
    if (value === undefined || ours.has(lower) || given.has(lower)) continue
    validateHeaderName(name)
    validateHeaderValue(name, value)
    given.add(lower)
    headers.push(lower, value)
  }
  for (const [name, value] of usual) if (!given.has(name)) headers.push(name, value)
  if (hop.body !== undefined) headers.push('content-length', String(Buffer.byteLength(hop.body)))
  else if (hop.method !== 'GET' && hop.method !== 'HEAD') headers.push('content-length', '0')
  return headers
}
const ours = new Set(['host', 'content-length', 'connection', 'transfer-encoding'])
const usual = [
  ['user-agent', 'svc'],
  ['accept', '*/*'],
  ['accept-encoding', 'identity'],
] as const

/** What ends with a signal that outlives many requests: one listener for all of them. */
class Owners {
  readonly #running = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>()
  enter(owner: AbortSignal, abandon: (reason: unknown) => void): void {
    const known = this.#running.get(owner)
    if (known) {
      known.add(abandon)
      return
    }
    const running = new Set([abandon])
    this.#running.set(owner, running)
    owner.addEventListener(
      'abort',
      () => {
        for (const each of running) each(owner.reason)
      },
      { once: true },
    )
  }
  leave(owner: AbortSignal, abandon: (reason: unknown) => void): void {
    this.#running.get(owner)?.delete(abandon)
  }
}

function failureOf(url: URL, error: Error): unknown {
  if (error instanceof Refusal || error instanceof UpstreamFailure) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const what =
    code === 'ECONNREFUSED'
      ? 'refused the connection'
      : code === 'ENOTFOUND' || code === 'EAI_AGAIN'
        ? 'has no address that can be found'
        : code === 'ECONNRESET' || code === 'EPIPE'
          ? 'closed the connection before it answered'
          : /CERT|SSL|TLS/.test(code)
            ? `has no certificate that is trusted (${code})`
            : `cannot be reached (${code || error.message})`
  return new UpstreamFailure(url.hostname, `${url.host} ${what}`, { reason: 'network', retry: 'later', cause: error })
}
