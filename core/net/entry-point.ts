import type { Agent as HttpPool, AgentOptions as PoolOptions } from 'node:http'
import { isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { callbackify } from 'node:util'
import { Refusal, UpstreamFailure } from '../errors/error.ts'
import type { OutboundRequest } from './fetch.ts'
import { http, https } from './node-http.ts'
import type * as OutboundExchange from './outbound-exchange.ts'
import type { Resolve, OutboundSettings } from './outbound.ts'
import type { SharedExchanges } from './shared-exchanges.ts'
import { Policy, portOf } from './policy.ts'
import type { OwnListeners } from './policy.ts'
import type { Hop, Redirects } from './redirect.ts'
import type { Answer } from './response.ts'

const CONNECT_MS = 10_000
const TOTAL_MS = 300_000
/** Shorter than what servers commonly grant, so that this side closes an idle connection. */
const IDLE_SOCKET_MS = 4000
const MAX_FREE_SOCKETS = 64
/** How long a name may take when nobody connects to it yet. */
const RESOLVE_MS = 2_000
/** Loaded with the first request. */
let loadedExchange: Promise<typeof OutboundExchange> | undefined

export interface EntryPointDeps {
  readonly settings: () => OutboundSettings
  readonly resolve: Resolve
  readonly own: OwnListeners | undefined
  readonly shared: SharedExchanges
  readonly isClosed: () => boolean
}

/**
 * A way to the network under one set of rules. It uses Node's agents because undici's `Agent` does not show which
 * socket carries a request: here the address of that socket is checked for every request, on reused connections too.
 */
export class EntryPoint {
  readonly #deps: EntryPointDeps
  readonly #operator: boolean
  readonly #vet: (hostname: string, port: number, done: (error: Error | null, found: VettedAddresses) => void) => void
  readonly #poolOptions: PoolOptions & { readonly lookup: LookupFunction }
  readonly #plain: HttpPool
  /** Made with the first request that needs it: otherwise TLS is a part of every start. */
  #secure: HttpPool | undefined
  #policy: Policy | undefined
  #allow: readonly string[] | undefined

  /** `operator`: for addresses that the operator sets, which may be loopback or private. */
  constructor(operator: boolean, deps: EntryPointDeps) {
    this.#operator = operator
    this.#deps = deps
    this.#vet = callbackify((hostname: string, port: number) => this.#resolveVetted(hostname, port))
    this.#poolOptions = {
      keepAlive: true,
      maxFreeSockets: MAX_FREE_SOCKETS,
      timeout: IDLE_SOCKET_MS,
      lookup: this.#lookupFor(0),
    }
    this.#plain = newPool(false, this.#poolOptions)
  }

  /**
   * Throws the refusal that a request to this address would get. A name that has no address now passes: the connection
   * checks it again.
   */
  async admit(address: string | URL): Promise<void> {
    const url = parseUrl(address)
    const host = this.#currentPolicy().checkUrl(url)
    if (isIP(host) !== 0) return
    const found = await Promise.race([this.#deps.resolve(host), delay(RESOLVE_MS, [], { ref: false })]).catch(
      () => [] /* it has no address */,
    )
    if (found.length === 0) this.#currentPolicy().checkUnknown(host)
    for (const { address: one } of found) this.#currentPolicy().checkAddress(host, one, portOf(url))
  }

  async fetch(address: string | URL, request: OutboundRequest = {}): Promise<Answer> {
    const url = parseUrl(address)
    const settings = this.#deps.settings()
    const total = request.totalTimeoutMs ?? (this.#operator ? 0 : (settings.totalTimeoutMs ?? TOTAL_MS))
    const method = (request.method ?? 'GET').toUpperCase()
    let hop: Hop = { url, method, headers: request.headers ?? {}, body: request.body }
    const startedAt = performance.now()
    for (let hops = 0; ; hops++) {
      const leftMs = total === 0 ? 0 : Math.max(1, total - (performance.now() - startedAt))
      const { answer, next } = await this.#exchange(hop, request, settings, leftMs)
      const following = next({ followed: hops, max: settings.maxRedirects })
      if (!following) return answer
      hop = following
    }
  }

  /** `anyProtocol`: what goes over the connection is not HTTP, so no port is refused for its number. */
  async connect(url: URL, signal: AbortSignal, anyProtocol = false): Promise<Socket> {
    if (this.#deps.isClosed()) throw stopping(url.hostname)
    signal.throwIfAborted()
    const host = this.#checkTarget(url, anyProtocol)
    const { connectTo } = await import('./connect.ts')
    const resolve = async () => (await this.#resolveVetted(host, portOf(url))).addresses
    return await connectTo(url, host, { resolve, signal, timeoutMs: this.connectTimeoutMs })
  }

  checkConnection(url: URL, { remoteAddress = '', remotePort = 0 }: Socket, anyProtocol = false): void {
    this.#currentPolicy().checkAddress(this.#checkTarget(url, anyProtocol), remoteAddress, remotePort)
  }

  get connectTimeoutMs(): number {
    return this.#deps.settings().connectTimeoutMs ?? CONNECT_MS
  }

  #checkTarget(url: URL, anyProtocol: boolean): string {
    const policy = this.#currentPolicy()
    return anyProtocol ? policy.checkHost(url.hostname, portOf(url)) : policy.checkUrl(url)
  }

  destroy(): void {
    this.#plain.destroy()
    this.#secure?.destroy()
  }

  async #exchange(hop: Hop, request: OutboundRequest, settings: OutboundSettings, totalMs: number) {
    // Before the checks: nothing may end between them and the request.
    const { nextHop, sendRequest } = await (loadedExchange ??= import('./outbound-exchange.ts'))
    if (this.#deps.isClosed()) throw stopping(hop.url.hostname)
    request.signal?.throwIfAborted()
    request.owner?.throwIfAborted()
    const host = this.#currentPolicy().checkUrl(hop.url)
    request.check?.(hop.url)
    const answer = await sendRequest({
      shared: this.#deps.shared,
      policy: () => this.#currentPolicy(),
      agent: this.#poolFor(hop.url),
      host,
      hop,
      request,
      limits: {
        connectMs: this.connectTimeoutMs,
        headersMs: request.headersTimeoutMs ?? settings.headersTimeoutMs,
        idleMs: request.idleTimeoutMs ?? settings.idleTimeoutMs,
        maxBytes: request.maxBytes ?? settings.maxBytes,
        totalMs,
      },
    })
    return { answer, next: (redirects: Redirects) => nextHop(hop, answer, redirects) }
  }

  #currentPolicy(): Policy {
    const { allow } = this.#deps.settings()
    if (this.#policy === undefined || this.#allow !== allow) {
      this.#allow = allow
      this.#policy = new Policy(allow, this.#operator, this.#deps.own)
    }
    return this.#policy
  }

  /** Checks addresses where they are used: a socket connects to nothing but what this returns. */
  async #resolveVetted(hostname: string, port: number): Promise<VettedAddresses> {
    const addresses = await this.#deps.resolve(hostname)
    for (const { address } of addresses) this.#currentPolicy().checkAddress(hostname, address, port)
    const [first] = addresses
    if (!first) throw Object.assign(new Error(`no address for ${hostname}`), { code: 'ENOTFOUND' })
    return { first, addresses: addresses.map(({ address, family }) => ({ address, family })) }
  }

  /** A pool passes a name alone, so what goes to a port that the daemon listens on has a lookup that knows the port. */
  #lookupFor(port: number): LookupFunction {
    return (hostname, { all }, done) =>
      this.#vet(hostname, port, (error, found) => {
        if (error) done(error, '', 0)
        else if (all) done(null, [...found.addresses])
        else done(null, found.first.address, found.first.family)
      })
  }

  #poolFor(url: URL): HttpPool {
    const port = portOf(url)
    const isSecure = url.protocol === 'https:'
    if (this.#currentPolicy().isOwnPort(port)) return newPool(isSecure, { lookup: this.#lookupFor(port) })
    return isSecure ? (this.#secure ??= newPool(true, this.#poolOptions)) : this.#plain
  }
}

const newPool = (isSecure: boolean, options: PoolOptions): HttpPool => new (isSecure ? https() : http).Agent(options)

interface Address {
  readonly address: string
  readonly family: number
}
interface VettedAddresses {
  readonly first: Address
  readonly addresses: readonly Address[]
}

export function stopping(system: string): UpstreamFailure {
  return new UpstreamFailure(system, 'The daemon is stopping', { reason: 'network', retry: 'later' })
}

function parseUrl(address: string | URL): URL {
  const url = URL.parse(address)
  if (!url) throw new Refusal('invalid_request', 'That is not an address a request can go to')
  return url
}
