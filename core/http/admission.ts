import type { Auth } from '../auth/bearer.ts'
import { checkOrigin } from '../auth/origin.ts'
import type { OriginRules } from '../auth/origin.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { clientAddress, limiterKey, trustedProxies } from '../limit/client.ts'
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
  #rules: OriginRules = {
    host: '',
    port: undefined,
    keySet: true,
    allowedHosts: [],
    allowedOrigins: [],
    accepted: new Set(),
  }
  #proxies: { readonly from: readonly string[]; readonly trusted: TrustedProxies } | undefined

  /** `port` is the listening port, once there is one. */
  constructor(settings: () => HttpSettings, port: () => number | undefined, limiter: Limiter, auth: Auth) {
    this.#settings = settings
    this.#port = port
    this.limiter = limiter
    this.auth = auth
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
    const { trustedProxies: entries } = this.#settings()
    if (entries.length === 0) return clientAddress(caller.peer, undefined, noProxy)
    if (this.#proxies?.from !== entries) this.#proxies = { from: entries, trusted: trustedProxies(entries) }
    return clientAddress(caller.peer, caller.header('x-forwarded-for'), this.#proxies.trusted)
  }

  /**
   * Throws `rate_limit`. A cost above the whole limit takes the whole limit; otherwise the route could never be called.
   */
  charge(address: string, cost: number): void {
    const { tokensPerMinute } = this.#settings()
    this.limiter.resize(tokensPerMinute)
    if (this.limiter.take(limiterKey(address), Math.min(cost, tokensPerMinute))) return
    enforced('gcra_rate_limiter')
    throw new Refusal('rate_limit', 'Rate limit exceeded', { retryAfterSecs: 60 })
  }

  authenticate(
    level: 'public' | 'bearer' | 'signed',
    caller: Caller,
    address: string,
    token?: string,
    signed?: boolean,
  ): Principal {
    return this.auth.check(level, caller, address, limiterKey(address), token, signed)
  }
}

const noProxy: TrustedProxies = () => false
