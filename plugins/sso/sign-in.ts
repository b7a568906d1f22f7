import { hash, randomBytes } from 'node:crypto'
import { AuthorizationResponseError } from 'oauth4webapi'
import * as v from 'valibot'
import type { Fetch } from 'svc/sdk'
import { refusalOf } from './config.ts'
import type { Identity, Provider } from './config.ts'
import { cookiesFor } from './cookie.ts'
import { unknownProvider } from './answers.ts'
import { Protocol } from './protocol.ts'
import { SealedCookie } from './sealed-cookie.ts'

/** How long a person may take at the provider, and their page to fetch the token afterwards. */
const SIGN_IN_MS = 600_000,
  HANDOVER_MS = 60_000
const MAX_USED_STATES = 10_000,
  MAX_HANDOVERS = 1_000

const Pending = v.object({
  state: v.string(),
  nonce: v.string(),
  verifier: v.string(),
  provider: v.string(),
  page: v.boolean(),
  until: v.number(),
})
type Pending = v.InferOutput<typeof Pending>

/** Why a sign-in failed; the page has a sentence for each. */
export type Failure = 'expired' | 'cancelled' | 'denied' | 'failed'
export class SignInFailed extends Error {
  override readonly name = 'SignInFailed'
  readonly failure: Failure
  /** Whether the chat page began it. */
  readonly page: boolean
  constructor(failure: Failure, page: boolean, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.failure = failure
    this.page = page
  }
}

/** The way to the provider and back. */
export class SignIn {
  readonly #protocols: ReadonlyMap<string, { readonly provider: Provider; readonly protocol: Protocol }>
  readonly #now: () => number
  readonly #sealed = new SealedCookie()
  /** Used states, until their expiry: each is accepted once. */
  #used = new Map<string, number>()
  /** Identities whose page has not fetched its token yet, by a digest of the code that it must send. */
  #handovers = new Map<string, { readonly identity: Identity; readonly until: number }>()

  constructor(
    providers: readonly Provider[],
    parts: { readonly fetch: Fetch; readonly timeoutMs: number; readonly now: () => number },
  ) {
    this.#protocols = new Map(
      providers.map((provider) => [provider.id, { provider, protocol: new Protocol(provider, parts) }]),
    )
    this.#now = parts.now
  }

  /** The address to send the browser to, and its cookie for the meantime. */
  async begin(id: string, page: boolean): Promise<{ readonly url: string; readonly cookie: string }> {
    const { provider, protocol } = this.#find(id)
    try {
      const { url, secrets } = await protocol.begin()
      const pending: Pending = { ...secrets, provider: id, page, until: this.#now() + SIGN_IN_MS }
      return {
        url,
        cookie: cookiesFor(provider.redirectUrl).set(this.#sealed.seal(pending), 'lax', SIGN_IN_MS / 1000),
      }
    } catch (cause) {
      throw new SignInFailed('failed', page, `The provider "${provider.displayName}" could not be reached`, { cause })
    }
  }

  /** The person who came back with this answer. Its state is used up, whatever the result. */
  async complete(
    answer: URLSearchParams,
    sealed: string | undefined,
  ): Promise<{ readonly identity: Identity; readonly page: boolean }> {
    const pending = this.#take(answer, sealed)
    const { provider, protocol } = this.#find(pending.provider)
    const { page } = pending
    let identity: Identity
    try {
      identity = await protocol.complete(answer, pending)
    } catch (cause) {
      // The provider's `error_description` is for its own page: here it could be anybody's text.
      if (cause instanceof AuthorizationResponseError)
        throw new SignInFailed('cancelled', page, `The provider refused: ${readErrorCode(cause.error)}`)
      throw new SignInFailed('failed', page, `The answer of the provider "${provider.displayName}" could not be used`, {
        cause,
      })
    }
    const refusal = refusalOf(identity, provider)
    if (refusal !== undefined) throw new SignInFailed('denied', page, refusal)
    return { identity, page }
  }

  /**
   * For a page, which cannot read the answer of a redirect: it brings the code of its address, and the cookie, within a
   * minute.
   */
  handOver(identity: Identity, redirectUrl: string): { readonly code: string; readonly cookie: string } {
    const now = this.#now()
    for (const [key, { until }] of this.#handovers)
      if (until <= now || this.#handovers.size >= MAX_HANDOVERS) this.#handovers.delete(key)
    const [code, binding] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
    this.#handovers.set(keyOf(code, binding), { identity, until: now + HANDOVER_MS })
    return { code, cookie: cookiesFor(redirectUrl).set(binding, 'strict', HANDOVER_MS / 1000) }
  }
  /** The identity for the page to sign in, once. */
  take(code: string, binding: string | undefined): Identity | undefined {
    const key = keyOf(code, binding ?? '')
    const found = this.#handovers.get(key)
    this.#handovers.delete(key)
    return found !== undefined && found.until > this.#now() ? found.identity : undefined
  }

  #take(answer: URLSearchParams, sealed: string | undefined): Pending {
    const parsed = v.safeParse(Pending, sealed === undefined ? undefined : this.#sealed.open(sealed))
    const pending = parsed.success ? parsed.output : undefined
    const expired = (): SignInFailed =>
      new SignInFailed(
        'expired',
        pending?.page ?? false,
        'This sign-in began too long ago, in another browser, or has ended: begin again at /api/auth/login',
      )
    const now = this.#now()
    // A holder of the cookie knows the state, and the cookie is checked here: comparing in constant time would gain
    // nothing.
    if (!pending || pending.until <= now || answer.get('state') !== pending.state || this.#used.has(pending.state))
      throw expired()
    for (const [state, until] of this.#used)
      if (until <= now || this.#used.size >= MAX_USED_STATES) this.#used.delete(state)
    this.#used.set(pending.state, pending.until)
    return pending
  }

  #find(id: string): { readonly provider: Provider; readonly protocol: Protocol } {
    const found = this.#protocols.get(id)
    if (!found) throw unknownProvider(id, this.#protocols.keys())
    return found
  }
}

/** Only the characters that an error code may have (RFC 6749, 4.1.2.1). */
function readErrorCode(code: string): string {
  return /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,64}$/.test(code) ? code : 'for a reason it did not name'
}

const keyOf = (code: string, binding: string): string => hash('sha256', `${code}.${binding}`, 'hex')
