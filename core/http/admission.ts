import type { Auth } from '../auth/bearer.ts'
import { checkOrigin, isLoopback } from '../auth/origin.ts'
import type { OriginRules } from '../auth/origin.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { clientAddress, foldAddress, limiterKey, trustedProxies } from '../limit/client.ts'
import type { TrustedProxies } from '../limit/client.ts'
import type { Limiter } from '../limit/gcra.ts'
import { enforced } from '../scope/enforcement.ts'
import type { HttpSettings } from './settings.ts'

/** The parts of a request or an upgrade that the first steps read. */
export interface Caller {
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly upgrade: boolean
  readonly peer: string
  header(name: string): string | undefined
  setCors(headers: readonly string[]): void
}

/** The steps before the handler, shared by requests and upgrades: Host and Origin, limiter, auth. */
export class Admission {
  readonly limiter: Limiter
  readonly auth: Auth
  #settings: () => HttpSettings
  #port: () => number | undefined
  readonly #onUntrustedProxy: (warning: string) => void
  readonly #isHomePass: (text: string) => boolean
  #rules: OriginRules = {
    host: '',
    port: undefined,
    keySet: true,
    allowedHosts: [],
    allowedOrigins: [],
    accepted: new Set(),
  }
  /** The first that forwarded a request and is not trusted. */
  #forwarder: string | undefined
  #proxies: { readonly from: readonly string[]; readonly trusted: TrustedProxies } | undefined

  /**
   * `port` is the listening port, once there is one. `onUntrustedProxy` is called once, with `untrustedProxy()`.
   * `isHomePass`: see `HomeLock.isPass`.
   */
  constructor(
    settings: () => HttpSettings,
    port: () => number | undefined,
    limiter: Limiter,
    auth: Auth,
    onUntrustedProxy: (warning: string) => void,
    isHomePass: (text: string) => boolean = () => false,
  ) {
    this.#settings = settings
    this.#port = port
    this.limiter = limiter
    this.auth = auth
    this.#onUntrustedProxy = onUntrustedProxy
    this.#isHomePass = isHomePass
  }

  /** Throws `forbidden` or `invalid_request`; sets the CORS headers of the answer. */
  origin(caller: Caller, crossSite = false): void {
    const { host, allowedHosts, allowedOrigins } = this.#settings()
    const port = this.#port()
    const keySet = this.auth.required()
    let rules = this.#rules
    if (
      rules.host !== host ||
      rules.port !== port ||
      rules.keySet !== keySet ||
      rules.allowedHosts !== allowedHosts ||
      rules.allowedOrigins !== allowedOrigins
    ) {
      rules = this.#rules = { host, port, keySet, allowedHosts, allowedOrigins, accepted: new Set() }
    }
    const cors = checkOrigin(rules, caller, crossSite)
    if (cors) caller.setCors(cors)
  }

  address(caller: Caller): string {
    const forwardedFor = caller.header('x-forwarded-for')
    if (forwardedFor === undefined) return foldAddress(caller.peer)
    const trusted = this.#trusted()
    if (this.#forwarder === undefined && !trusted(foldAddress(caller.peer))) {
      this.#forwarder = foldAddress(caller.peer)
      this.#onUntrustedProxy(this.untrustedProxy() ?? '')
    }
    return clientAddress(caller.peer, forwardedFor, trusted)
  }

  /** A warning once a request came through a proxy that is not trusted, until it is. */
  untrustedProxy(): string | undefined {
    if (this.#forwarder === undefined || this.#trusted()(this.#forwarder)) return undefined
    return (
      `X-Forwarded-For comes from ${this.#forwarder}, which is not in http.trusted_proxies: if that is your proxy or ` +
      'load balancer, add it, otherwise all its clients share one limit, and the wrong keys of one lock out all'
    )
  }

  #trusted(): TrustedProxies {
    const { trustedProxies: entries } = this.#settings()
    if (entries.length === 0) return noProxy
    if (this.#proxies?.from !== entries) this.#proxies = { from: entries, trusted: trustedProxies(entries) }
    return this.#proxies.trusted
  }

  /**
   * Throws `rate_limit`. A cost above the whole limit takes the whole limit; otherwise the route could never be called.
   */
  charge(limitKey: string, cost: number): void {
    const { tokensPerMinute } = this.#settings()
    this.limiter.resize(tokensPerMinute)
    if (this.limiter.take(limitKey, Math.min(cost, tokensPerMinute))) return
    enforced('gcra_rate_limiter')
    throw new Refusal('rate_limit', 'Rate limit exceeded', { retryAfterSecs: 60 })
  }

  /** Throws as `Auth.check`, and `unauthorized` where no key protects the daemon from other machines. */
  authenticate(
    level: 'public' | 'bearer' | 'signed',
    caller: Caller,
    address: string,
    token?: string,
    signed?: boolean,
  ): Principal {
    if (level === 'bearer' && token === undefined) this.#checkUnprotected(caller)
    return this.auth.check(level, caller, address, this.limitKey(caller, address), token, signed)
  }

  /**
   * What the limits count a caller by. A command of this home shares its address with all clients of a proxy on this
   * machine, and is counted apart from them: it has read the pass in the home, which a stranger cannot guess.
   */
  limitKey(caller: Pick<Caller, 'header'>, address: string): string {
    const pass = caller.header(PASS_HEADER)
    return pass !== undefined && this.#isHomePass(pass) ? 'this home' : limiterKey(address)
  }

  /** Without a key the daemon listens on this machine only; a proxy here must not let others in all the same. */
  #checkUnprotected(caller: Caller): void {
    if (this.auth.required() || this.#settings().allowNoAuth === true) return
    const hops = caller.header('x-forwarded-for')?.split(',') ?? []
    if (hops.every((hop) => isLoopback(foldAddress(hop.trim())))) return
    throw new Refusal(
      'unauthorized',
      'No API key is set, so only this machine is served, and a proxy says that the request comes from another: ' +
        'set api_key',
    )
  }
}

const PASS_HEADER = 'x-svc-home-pass'
const noProxy: TrustedProxies = () => false
